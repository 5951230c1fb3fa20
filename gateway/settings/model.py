"""The core's settings: name, default, unit and purpose.

`make docs` writes docs/settings.md from this class; a new setting needs no other documentation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import typed_settings as ts

from gateway.domain.eip3009 import NETWORKS, Network
from gateway.settings.database import DatabaseSettings
from gateway.settings.identity import IdentitySettings
from gateway.settings.overrides import EndpointOverride
from gateway.settings.sections import Section, check_section, read_section, secret, setting


@attrs.frozen(kw_only=True)
class Settings(DatabaseSettings, IdentitySettings):
    """The core's settings."""

    base_url: str = setting(
        "http://127.0.0.1:8080",
        "Public address of the gateway, without a path; https in production.",
        example="https://gateway.example.com",
    )
    wallet: str = setting(
        "",
        "Address that receives the buyers' USDC. Required. The gateway never holds its key.",
        example="0x1111111111111111111111111111111111111111",
    )
    wallet_is_contract: bool = setting(
        False,
        "Confirms that the wallet is a contract that can send USDC on, such as a Safe. "
        "Otherwise a wallet with code stops all sales; EIP-7702 delegations need no "
        "confirmation.",
    )
    network: str = setting("base", "Chain on which buyers pay: `base` or `base-sepolia`.")
    # RPC providers put their API key into the address, so it is not shown.
    rpc_urls: tuple[str, ...] = setting(
        ("https://mainnet.base.org",),
        "JSON-RPC endpoints of that chain in order of preference, separated by commas. The "
        "default is rate limited, so put your own endpoint first.",
        example="https://base.example-rpc.com/v1/KEY,https://mainnet.base.org",
        shown=False,
    )
    rpc_timeout: float = setting(
        5.0, "Seconds after which an RPC call without an answer counts as failed."
    )
    data_dir: Path = setting(
        Path("gateway-data"),
        "Folder of database and outputs, in production on a persistent volume.",
    )
    settlement: str = setting(
        "local",
        "Settler of x402 payments: `local` (settlement key) or `facilitator`.",
    )
    settlement_key: ts.SecretStr = secret(
        "Private key that sends x402 payments and pays their gas. It holds a little ETH and "
        "no USDC. `local` settlement needs it or a keystore.",
        example="0x followed by 64 hexadecimal digits",
    )
    settlement_keys: ts.SecretStr = secret(
        "Several settlement keys instead of one, separated by commas, for more payments a "
        "second. Each holds a little ETH.",
        example="0x followed by 64 hexadecimal digits,0x followed by 64 hexadecimal digits",
    )
    settlement_keystore: Path | None = setting(
        None,
        "Encrypted keystore file with the settlement key, written by `gateway encrypt-key`.",
        example="/data/settlement.json",
    )
    settlement_keystore_password: ts.SecretStr = secret("Password of the settlement keystore.")
    settlement_batch: int = setting(
        1,
        "Most x402 payments per transaction, up to 100. Above 1, payments that arrive within "
        "a second share a transaction through Multicall3, which costs less gas.",
        example="50",
    )
    # Some facilitators put a key into the path, so the address is not shown.
    facilitator_url: str = setting(
        "",
        "Address of the x402 facilitator. Required for `facilitator` settlement.",
        example="https://facilitator.example.com",
        shown=False,
    )
    facilitator_token: ts.SecretStr = secret(
        "Bearer token for the facilitator, if the facilitator asks for one."
    )
    facilitator_key_id: str = setting(
        "",
        "Name of a Coinbase Developer Platform key that signs a token for each request to the "
        "facilitator.",
    )
    facilitator_key_secret: ts.SecretStr = secret(
        "Secret of that key: a PEM (ES256), or 64 bytes in Base64 (Ed25519)."
    )
    erc6492_factories: tuple[str, ...] = setting(
        (),
        "Factories (ERC-6492), separated by commas, that may deploy a payer's smart wallet at "
        "the gateway's cost.",
        example="0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a",
    )
    require_payer_signature: bool = setting(
        False,
        "Whether a transfer pays only with its sender's `payerSignature`. Without it, any "
        "client that sends the public hash first may use the transfer.",
    )
    refunds: str = setting(
        "",
        "`manual`, or `automatic` up to the daily cap. Empty: `automatic` if there is a "
        "refund key.",
        example="manual",
    )
    refund_daily_cap: str = setting(
        "10", "Most USDC that automatic refunds may give back in 24 hours.", example="25.50"
    )
    refund_key: ts.SecretStr = secret(
        "Private key that sends refunds, with USDC and a little ETH; not the settlement key.",
        example="0x followed by 64 hexadecimal digits",
    )
    refund_keystore: Path | None = setting(
        None,
        "Encrypted keystore file that holds the refund key, instead of the plain key.",
        example="/data/refunds.json",
    )
    refund_keystore_password: ts.SecretStr = secret("Password of the refund keystore.")
    max_fee_gwei: float = setting(
        5.0,
        "Highest fee per unit of gas, in gwei, of a settlement. Base usually asks for less "
        "than 0.1.",
    )
    failed_gas_per_hour: float = setting(
        0.00001,
        "Most ETH of gas that reverted settlements may burn in an hour. Beyond it, accounts "
        "with code pay by transfer only and no batch is sent.",
    )
    held_files_mb: int = setting(
        200,
        "Megabytes (10⁶ bytes) on disk of documents whose x402 payments are not settled.",
    )
    client_ip_header: str = setting(
        "",
        "Header with the client's address, set by a trusted proxy, for rate limits. Set it "
        "only behind such a proxy, because clients can forge it. Empty: the connection's "
        "address.",
        example="Fly-Client-IP",
    )
    admin_password: ts.SecretStr = secret(
        "Admin password in plain text. Prefer its hash, GATEWAY_ADMIN_PASSWORD_HASH."
    )
    admin_password_hash: ts.SecretStr = secret(
        "argon2 hash of the admin password, by `gateway hash-password`; single quotes in a "
        "shell keep its `$`. Without a password, the first start makes one and prints it "
        "once.",
        example="$argon2id$v=19$m=65536,t=3,p=4$...",
    )
    limit_x402: str = setting(
        "10/60s",
        "Rate limit of POST /api/x402/* per client address: requests and seconds.",
    )
    limit_price: str = setting(
        "",
        "Rate limit per client address of requests to POST /api/x402/* without a payment. "
        "Empty: they count for GATEWAY_LIMIT_X402, so price checks can block purchases.",
        example="60/60s",
    )
    limit_direct: str = setting(
        "5/60s",
        "Rate limit of POST /api/proxy-generate per client address: requests and seconds.",
    )
    limit_task: str = setting(
        "5/1s", "Rate limit of GET /api/task/* per client address: requests and seconds."
    )
    limit_login: str = setting(
        "5/300s", "Rate limit of POST /admin/login per client address: requests and seconds."
    )
    limit_login_total: str = setting(
        "60/300s",
        "Rate limit of POST /admin/login over all addresses. A browser known for 30 days has "
        "its own limit.",
    )
    # It may hold a password, so it is not shown.
    limits_url: str = setting(
        "",
        "Redis (`redis://` or `rediss://`) that counts rate limits over all nodes. Without "
        "it, or while it fails, each node counts alone. Needs the extra `redis` (in the "
        "image).",
        example="rediss://:password@redis.example.com:6379/0",
        shown=False,
    )
    max_long_polls: int = setting(
        250,
        "Requests to GET /api/task/* that may wait (`?wait=`) at once; others are answered "
        "immediately. Keep it below the proxy's connections (500 in fly.toml).",
    )
    max_long_polls_per_address: int = setting(
        20,
        "The same per client address.",
    )
    body_memory_mb: int = setting(
        64,
        "Megabytes (10⁶ bytes) of request bodies in memory; one address may use half. Beyond "
        "it, heavy users' bodies are dropped, or the request gets 503. Decoding may double "
        "it.",
    )
    workers: int = setting(4, "Number of tasks that are generated at the same time.")
    bind: str = setting(
        "127.0.0.1:8080",
        "Address and port. Only this machine reaches the default; `[::]:8080` takes IPv4, too.",
        example="0.0.0.0:8080",
    )
    server: str = setting(
        "hypercorn",
        "HTTP server: `hypercorn`, or `uvicorn`, which needs less processor time and the "
        "extra `fast` (in the image).",
        example="uvicorn",
    )
    plugins_disabled: tuple[str, ...] = setting(
        (),
        "Installed plugins, separated by commas, that are not loaded, by their names in "
        "`gateway plugins`.",
        example="gateway_acme,gateway_kie",
    )
    sandbox: bool = setting(
        False,
        "Whether the sandbox model is on sale: drawings by a program, not an AI model.",
    )
    confirmations: int = setting(
        1,
        "Blocks that a direct transfer needs, its own included.",
    )
    max_transfer_age_hours: float = setting(
        24.0, "Hours after which a transfer no longer pays in the direct flow."
    )
    tx_patience: float = setting(
        4.0,
        "Seconds to wait for a known, unmined transaction.",
    )
    retention_days: float = setting(7.0, "Days for which outputs are kept; then they are deleted.")
    outputs_url: str = setting(
        "",
        "S3-compatible bucket and prefix for outputs. Empty: the data folder. `s3://`: the "
        "bucket of BUCKET_NAME, as on Fly.",
        example="s3://my-bucket/outputs",
    )
    outputs_endpoint: str = setting(
        "",
        "Address of that store; buyers download from the same address. Empty: "
        "AWS_ENDPOINT_URL_S3, else Amazon's.",
        example="https://fly.storage.tigris.dev",
    )
    outputs_region: str = setting(
        "",
        "Region of the bucket. Empty: AWS_REGION, else `us-east-1` at Amazon and `auto` elsewhere.",
        example="eu-central-1",
    )
    outputs_addressing: str = setting(
        "auto",
        "Place of the bucket's name: `host`, `path`, or `auto` (`host` at Amazon and Tigris, "
        "else `path`).",
    )
    outputs_access_key_id: ts.SecretStr = secret(
        "Permanent key that may list, write, read and delete in the bucket; it signs links "
        "for a week. Empty: AWS_ACCESS_KEY_ID.",
        example="tid_...",
    )
    outputs_secret_access_key: ts.SecretStr = secret(
        "Secret of that key. Empty: AWS_SECRET_ACCESS_KEY.", example="tsec_..."
    )
    min_free_disk_mb: int = setting(
        200,
        "Megabytes (10⁶ bytes) that must be free in the data folder. Below it, or below 300 "
        "free inodes, nothing is sold.",
    )
    allow_loopback_links: bool = setting(
        False,
        "Whether results may be fetched from this machine, for authors of plugins. Refused if "
        "others reach the gateway or real money pays.",
    )
    log_format: str = setting("json", "Format of log lines: `json`, or `console` for a terminal.")
    endpoints: dict[str, EndpointOverride] = attrs.field(
        factory=dict,
        metadata={
            "about": "Tables `[endpoints.<slug>]` with `enabled`, `price` (USDC), `prices` (USDC "
            "by resolution), `title`, `description` and `model`. In the file only.",
            "example": "",
        },
    )

    # Other values of the file and the environment, mostly of plugins.
    plugin_values: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    # Those of their names that are in the file.
    unknown_in_file: tuple[str, ...] = ()

    def section(self, prefix: str, kind: type[Section]) -> Section:
        """Return the section that a plugin declared in `register_settings` under this prefix.

        Raises `SettingsError` for a value of the wrong kind, and for one that the class refuses.
        """
        section = read_section(self.plugin_values, prefix, kind)
        check_section(self, prefix, section)
        return section

    def changed(self, **values: Any) -> "Settings":
        """Return these settings with other values; names of plugins' settings may be among them."""
        own = {name: value for name, value in values.items() if name in attrs.fields_dict(Settings)}
        of_plugins = {name: value for name, value in values.items() if name not in own}
        if of_plugins:
            own["plugin_values"] = {**self.plugin_values, **of_plugins}
        return attrs.evolve(self, **own)

    @property
    def chain(self) -> Network:
        """The facts about the chosen network."""
        return NETWORKS[self.network]

    @property
    def wallet_key(self) -> str:
        """The wallet in lower case, as the chain's answers write addresses."""
        return self.wallet.lower()

    @property
    def refunds_automatically(self) -> bool:
        """Whether the gateway sends refunds without a decision, up to the daily cap."""
        has_key = bool(str(self.refund_key)) or self.refund_keystore is not None
        return self.refunds == "automatic" or (not self.refunds and has_key)

    @property
    def is_https(self) -> bool:
        """Whether callers reach the gateway over https."""
        return self.base_url.startswith("https://")
