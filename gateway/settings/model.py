"""Every setting: its name, default, unit and what it does.

`docs/settings.md` is generated from this class; a new setting needs nothing else.
"""

from pathlib import Path
from typing import Any

import attrs
import typed_settings as ts

from gateway.usdc import NETWORKS, Network


def _setting(default: Any, about: str, *, example: str = "", shown: bool = True) -> Any:
    return attrs.field(default=default, repr=shown, metadata={"about": about, "example": example})


def _secret(about: str, *, example: str = "") -> Any:
    return attrs.field(
        default=ts.SecretStr(""),
        repr=False,
        metadata={"about": about, "example": example},
    )


@attrs.frozen(kw_only=True)
class EndpointOverride:
    """One table `[endpoints.<slug>]`: what the operator changes about an endpoint."""

    enabled: bool = True
    price: str | None = None  # USDC, such as "0.05"
    title: str | None = None
    description: str | None = None
    model: str | None = None


@attrs.frozen(kw_only=True)
class Settings:
    """What an operator may set."""

    base_url: str = _setting(
        "http://127.0.0.1:8080",
        "Public address of the gateway, without a path; https in production.",
        example="https://gateway.example.com",
    )
    wallet: str = _setting(
        "",
        "Address that receives USDC. The gateway never holds its key. Required.",
        example="0x1111111111111111111111111111111111111111",
    )
    network: str = _setting("base", "Chain that is paid on: `base` or `base-sepolia`.")
    rpc_urls: tuple[str, ...] = _setting(
        ("https://mainnet.base.org",),
        "JSON-RPC endpoints of that chain, comma-separated, tried in this order.",
        example="https://base.example-rpc.com/v1/KEY,https://mainnet.base.org",
        shown=False,  # providers put their API key into the address
    )
    rpc_timeout: float = _setting(5.0, "Seconds until one RPC call counts as unanswered.")
    data_dir: Path = _setting(
        Path("gateway-data"), "Folder of the database and the outputs; a volume in production."
    )
    settlement: str = _setting("local", "Name of the settler that makes x402 transfers happen.")
    settlement_key: ts.SecretStr = _secret(
        "Private key that pays the gas of x402 settlements: it holds a little ETH on the "
        "network and no USDC. Required for `local` settlement.",
        example="0x followed by 64 hexadecimal digits",
    )
    settlement_keystore: Path | None = _setting(
        None,
        "Encrypted keystore file (Web3 Secret Storage) instead of the plain settlement key; "
        "`gateway encrypt-key` writes one.",
        example="/data/settlement.json",
    )
    settlement_keystore_password: ts.SecretStr = _secret("Password of that file.")
    facilitator_url: str = _setting(
        "",
        "Address of the x402 facilitator. Required for `facilitator` settlement.",
        example="https://facilitator.example.com",
        shown=False,  # some put a key into the path
    )
    facilitator_token: ts.SecretStr = _secret("Bearer token for the facilitator, if it wants one.")
    facilitator_key_id: str = _setting(
        "", "Name of a Coinbase Developer Platform key; a fresh token is signed for each request."
    )
    facilitator_key_secret: ts.SecretStr = _secret(
        "That key's secret: a PEM (ES256), or 64 bytes in Base64 (Ed25519)."
    )
    erc6492_factories: tuple[str, ...] = _setting(
        (),
        "Factories (ERC-6492) that may deploy a payer's smart wallet while its payment settles, "
        "at our gas; empty: none.",
        example="0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a",
    )
    require_payer_signature: bool = _setting(
        False, "Take direct transfers only with the sender's `payerSignature`."
    )
    refunds: str = _setting(
        "manual",
        "Who decides about refunds: `manual` (the operator) or `automatic`, up to the daily cap.",
    )
    refund_daily_cap: str = _setting(
        "10", "USDC that automatic refunds may give back in 24 hours.", example="25.50"
    )
    refund_key: ts.SecretStr = _secret(
        "Private key that sends refunds: it holds USDC for them and a little ETH. "
        "Another than the settlement key.",
        example="0x followed by 64 hexadecimal digits",
    )
    refund_keystore: Path | None = _setting(
        None,
        "Encrypted keystore file instead of the plain refund key.",
        example="/data/refunds.json",
    )
    refund_keystore_password: ts.SecretStr = _secret("Password of that file.")
    max_fee_gwei: float = _setting(
        5.0, "Greatest fee per gas, in gwei, a settlement may bid; Base usually asks under 0.1."
    )
    client_ip_header: str = _setting(
        "",
        "Header that a trusted proxy sets to the client's address; empty: the peer's address.",
        example="Fly-Client-IP",
    )
    admin_password: ts.SecretStr = _secret("Admin password in plain; prefer the hash.")
    admin_password_hash: ts.SecretStr = _secret(
        "argon2 hash of the admin password, made by `gateway hash-password`. "
        "Without both, one is made at the first start and printed once.",
        example="$argon2id$v=19$m=65536,t=3,p=4$...",
    )
    limit_x402: str = _setting("10/60s", "Rate limit per address of POST /api/x402/*.")
    limit_direct: str = _setting("5/60s", "Rate limit per address of POST /api/proxy-generate.")
    limit_task: str = _setting("5/1s", "Rate limit per address of GET /api/task/*.")
    limit_login: str = _setting("5/300s", "Rate limit per address of POST /admin/login.")
    workers: int = _setting(4, "Tasks that are generated at the same time.")
    bind: str = _setting("127.0.0.1:8080", "Address and port to listen on.", example="0.0.0.0:8080")
    sandbox: bool = _setting(
        False, "Put the sandbox image model on sale; it draws, it is not an AI model."
    )
    openai_api_key: ts.SecretStr = _secret(
        "Key of OpenAI, or of a server with the same images API. It puts `openai-image` on sale.",
        example="sk-...",
    )
    openai_base_url: str = _setting(
        "https://api.openai.com/v1",
        "Address of that API. Another than OpenAI's own is on sale without a key, too.",
        example="http://127.0.0.1:8000/v1",
        shown=False,  # some put a key into the path
    )
    openai_image_model: str = _setting(
        "gpt-image-2", "Model that is asked; it must take any size whose sides divide by 16."
    )
    openai_image_price: str = _setting(
        "0.08", "USDC for one picture, whatever its resolution; see what the model costs you."
    )
    openai_image_resolutions: tuple[str, ...] = _setting(
        ("1K",), "Resolutions on sale, of 1K, 2K and 4K. Large ones cost you several times as much."
    )
    confirmations: int = _setting(
        1, "Blocks a direct transfer must be deep, its own block included."
    )
    max_transfer_age_hours: float = _setting(
        24.0, "Hours after which a transfer no longer pays in the direct flow."
    )
    tx_patience: float = _setting(
        4.0, "Seconds to look for a submitted transaction before it counts as not found."
    )
    retention_days: float = _setting(7.0, "Days that outputs are kept.")
    min_free_disk_mb: int = _setting(
        200, "Megabytes (10⁶ bytes) that must be free in the data folder to sell."
    )
    name: str = _setting("Generation Gateway", "Name in the agent manifest and in llms.txt.")
    created: str = _setting(
        "2026-11-21", "Date (YYYY-MM-DD) of the agent manifest's first version."
    )
    updated: str = _setting(
        "", "Date (YYYY-MM-DD) the catalogue last changed; empty: the same as `created`."
    )
    log_format: str = _setting("json", "Log lines as `json` or, for a terminal, `console`.")
    endpoints: dict[str, EndpointOverride] = attrs.field(
        factory=dict,
        metadata={
            "about": "Tables `[endpoints.<slug>]` with `enabled`, `price` (USDC), `title`, "
            "`description`, `model`. In the file only.",
            "example": "",
        },
    )

    @property
    def chain(self) -> Network:
        """The network by its facts."""
        return NETWORKS[self.network]

    @property
    def wallet_key(self) -> str:
        """The wallet in lower case, as compared with what the chain says."""
        return self.wallet.lower()

    @property
    def is_https(self) -> bool:
        """Whether callers reach us over https."""
        return self.base_url.startswith("https://")


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"GATEWAY_{name.upper()}"
