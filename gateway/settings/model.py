"""Every setting: its name, default, unit and what it does.

`docs/settings.md` is generated from this class; a new setting needs nothing else.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import typed_settings as ts

from gateway.domain.eip3009 import NETWORKS, Network
from gateway.settings.sections import Section, read_section, secret, setting


@attrs.frozen(kw_only=True)
class EndpointOverride:
    """One table `[endpoints.<slug>]`: what the operator changes about an endpoint."""

    enabled: bool = True
    price: str | None = None  # USDC, such as "0.05"
    title: str | None = None
    description: str | None = None
    model: str | None = None
    prices: dict[str, str] = attrs.field(factory=dict)  # by resolution: {"4K": "0.20"}


@attrs.frozen(kw_only=True)
class Settings:
    """What an operator may set."""

    base_url: str = setting(
        "http://127.0.0.1:8080",
        "Public address of the gateway, without a path; https in production.",
        example="https://gateway.example.com",
    )
    wallet: str = setting(
        "",
        "Address that receives USDC. The gateway never holds its key. Required.",
        example="0x1111111111111111111111111111111111111111",
    )
    wallet_is_contract: bool = setting(
        False,
        "The wallet is a contract of yours that can send USDC on, such as a Safe. Without this "
        "nothing is sold while the wallet has code: a payment to most contracts is lost. It is "
        "looked up once after the start, at the latest before the first sale; while the chain is "
        "silent nothing is sold. An account that delegates to code (EIP-7702) does not need this.",
    )
    network: str = setting("base", "Chain that is paid on: `base` or `base-sepolia`.")
    rpc_urls: tuple[str, ...] = setting(
        ("https://mainnet.base.org",),
        "JSON-RPC endpoints of that chain, comma-separated, tried in this order; one that fails is "
        "asked last for some seconds.",
        example="https://base.example-rpc.com/v1/KEY,https://mainnet.base.org",
        shown=False,  # providers put their API key into the address
    )
    rpc_timeout: float = setting(5.0, "Seconds until one RPC call counts as unanswered.")
    data_dir: Path = setting(
        Path("gateway-data"), "Folder of the database and the outputs; a volume in production."
    )
    settlement: str = setting("local", "Name of the settler that makes x402 transfers happen.")
    settlement_key: ts.SecretStr = secret(
        "Private key that pays the gas of x402 settlements: it holds a little ETH on the "
        "network and no USDC. Required for `local` settlement.",
        example="0x followed by 64 hexadecimal digits",
    )
    settlement_keystore: Path | None = setting(
        None,
        "Encrypted keystore file (Web3 Secret Storage) instead of the plain settlement key; "
        "`gateway encrypt-key` writes one.",
        example="/data/settlement.json",
    )
    settlement_keystore_password: ts.SecretStr = secret("Password of that file.")
    facilitator_url: str = setting(
        "",
        "Address of the x402 facilitator. Required for `facilitator` settlement.",
        example="https://facilitator.example.com",
        shown=False,  # some put a key into the path
    )
    facilitator_token: ts.SecretStr = secret("Bearer token for the facilitator, if it wants one.")
    facilitator_key_id: str = setting(
        "", "Name of a Coinbase Developer Platform key; a fresh token is signed for each request."
    )
    facilitator_key_secret: ts.SecretStr = secret(
        "That key's secret: a PEM (ES256), or 64 bytes in Base64 (Ed25519)."
    )
    erc6492_factories: tuple[str, ...] = setting(
        (),
        "Factories (ERC-6492) that may deploy a payer's smart wallet while its payment settles, "
        "at our gas; empty: none.",
        example="0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a",
    )
    require_payer_signature: bool = setting(
        False, "Take direct transfers only with the sender's `payerSignature`."
    )
    refunds: str = setting(
        "manual",
        "Who decides about refunds: `manual` (the operator) or `automatic`, up to the daily cap.",
    )
    refund_daily_cap: str = setting(
        "10", "USDC that automatic refunds may give back in 24 hours.", example="25.50"
    )
    refund_key: ts.SecretStr = secret(
        "Private key that sends refunds: it holds USDC for them and a little ETH. "
        "Another than the settlement key.",
        example="0x followed by 64 hexadecimal digits",
    )
    refund_keystore: Path | None = setting(
        None,
        "Encrypted keystore file instead of the plain refund key.",
        example="/data/refunds.json",
    )
    refund_keystore_password: ts.SecretStr = secret("Password of that file.")
    max_fee_gwei: float = setting(
        5.0, "Greatest fee per gas, in gwei, a settlement may bid; Base usually asks under 0.1."
    )
    failed_gas_per_hour: float = setting(
        0.00001,
        "ETH that reverted settlements of accounts with code may burn in an hour; beyond it such "
        "accounts pay by direct transfer only.",
    )
    held_files_mb: int = setting(
        200, "Megabytes (10⁶ bytes) of documents that may wait for x402 payments to settle."
    )
    client_ip_header: str = setting(
        "",
        "Header that a trusted proxy sets to the client's address; empty: the peer's address.",
        example="Fly-Client-IP",
    )
    admin_password: ts.SecretStr = secret("Admin password in plain; prefer the hash.")
    admin_password_hash: ts.SecretStr = secret(
        "argon2 hash of the admin password, made by `gateway hash-password`; in a shell it goes "
        "between single quotes, which keep its `$`. "
        "Without both, one is made at the first start and printed once.",
        example="$argon2id$v=19$m=65536,t=3,p=4$...",
    )
    limit_x402: str = setting("10/60s", "Rate limit per address of POST /api/x402/*.")
    limit_price: str = setting(
        "",
        "Rate limit per address of those requests to POST /api/x402/* that carry no payment and "
        "ask for the price; empty: they share GATEWAY_LIMIT_X402. A purchase is a question and a "
        "paid request, so a shared 10/60s is five purchases a minute, and a program that only "
        "checks prices can lock out a buyer behind the same address.",
        example="60/60s",
    )
    limit_direct: str = setting("5/60s", "Rate limit per address of POST /api/proxy-generate.")
    limit_task: str = setting("5/1s", "Rate limit per address of GET /api/task/*.")
    limit_login: str = setting("5/300s", "Rate limit per address of POST /admin/login.")
    limit_login_total: str = setting(
        "60/300s",
        "Rate limit of POST /admin/login over all addresses together; a browser that has opened "
        "the admin page in the last 30 days is counted by itself.",
    )
    max_long_polls: int = setting(
        250,
        "Requests to GET /api/task/* that may wait (`?wait=`) at the same time; more are answered "
        "at once. Keep it under what the proxy in front passes on, which is 500 in fly.toml.",
    )
    max_long_polls_per_address: int = setting(
        20, "The same, of one address: more waiting requests of it are answered at once."
    )
    body_memory_mb: int = setting(
        64,
        "Megabytes (10⁶ bytes) of request bodies that are held in memory at the same time; one "
        "address may take half. Where there is no room, unfinished bodies of addresses that take "
        "more than the one that asks make way. What is beyond is answered 503 with Retry-After. "
        "The process takes up to twice as much for them while they are read.",
    )
    workers: int = setting(4, "Tasks that are generated at the same time.")
    bind: str = setting("127.0.0.1:8080", "Address and port to listen on.", example="0.0.0.0:8080")
    sandbox: bool = setting(
        False, "Put the sandbox image model on sale; it draws, it is not an AI model."
    )
    confirmations: int = setting(
        1, "Blocks a direct transfer must be deep, its own block included."
    )
    max_transfer_age_hours: float = setting(
        24.0, "Hours after which a transfer no longer pays in the direct flow."
    )
    tx_patience: float = setting(
        4.0,
        "Seconds to wait for a submitted transaction that the chain knows and has not mined; one "
        "that it does not know counts as not found at once.",
    )
    retention_days: float = setting(7.0, "Days that outputs are kept.")
    outputs_url: str = setting(
        "",
        "Bucket that outputs are kept in, of any S3-compatible store, and a prefix in it; empty: "
        "the data folder. `s3://` alone: the bucket that BUCKET_NAME names, as on Fly.",
        example="s3://my-bucket/outputs",
    )
    outputs_endpoint: str = setting(
        "",
        "Address of that store, as buyers reach it too; empty: AWS_ENDPOINT_URL_S3, else Amazon's.",
        example="https://fly.storage.tigris.dev",
    )
    outputs_region: str = setting(
        "",
        "Region of the bucket; empty: AWS_REGION, else `us-east-1` at Amazon, `auto` elsewhere.",
        example="eu-central-1",
    )
    outputs_addressing: str = setting(
        "auto",
        "Where the bucket's name goes in an address: `host`, `path`, or `auto`, which is `host` "
        "at Amazon and Tigris and `path` elsewhere.",
    )
    outputs_access_key_id: ts.SecretStr = secret(
        "Key that may list, write, read and delete in the bucket; empty: AWS_ACCESS_KEY_ID. "
        "It signs links that last a week, so it must not be a temporary one.",
        example="tid_...",
    )
    outputs_secret_access_key: ts.SecretStr = secret(
        "That key's secret; empty: AWS_SECRET_ACCESS_KEY.", example="tsec_..."
    )
    min_free_disk_mb: int = setting(
        200, "Megabytes (10⁶ bytes) that must be free in the data folder to sell."
    )
    name: str = setting("Generation Gateway", "Name in the agent manifest and in llms.txt.")
    created: str = setting("2026-11-21", "Date (YYYY-MM-DD) of the agent manifest's first version.")
    updated: str = setting(
        "", "Date (YYYY-MM-DD) the catalogue last changed; empty: the same as `created`."
    )
    log_format: str = setting("json", "Log lines as `json` or, for a terminal, `console`.")
    endpoints: dict[str, EndpointOverride] = attrs.field(
        factory=dict,
        metadata={
            "about": "Tables `[endpoints.<slug>]` with `enabled`, `price` (USDC), `prices` "
            "(by resolution), `title`, `description`, `model`. In the file only.",
            "example": "",
        },
    )

    plugin_values: Mapping[str, Any] = attrs.field(factory=dict, repr=False)  # none of ours
    unknown_in_file: tuple[str, ...] = ()  # the names of those that stand in the file

    def section(self, prefix: str, kind: type[Section]) -> Section:
        """Return a plugin's own settings, as it named them in `register_settings`.

        Raises `SettingsError` for a value of the wrong kind.
        """
        return read_section(self.plugin_values, prefix, kind)

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
