"""The core's settings: name, default, unit and purpose.

`make docs` writes docs/settings.md from this class; a new setting needs no other documentation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import typed_settings as ts

from gateway.domain.eip3009 import NETWORKS, Network
from gateway.settings.identity import IdentitySettings
from gateway.settings.sections import Section, check_section, read_section, secret, setting

ROLES = frozenset(("web", "worker", "signer"))


@attrs.frozen(kw_only=True)
class EndpointOverride:
    """One table `[endpoints.<slug>]`."""

    enabled: bool = True
    # USDC, such as "0.05".
    price: str | None = None
    # Your cost of one generation in US dollars, such as "0.04".
    cost: str | None = None
    # Whether a price below the cost is meant.
    allow_loss: bool = False
    title: str | None = None
    description: str | None = None
    model: str | None = None
    # USDC by resolution, such as {"4K": "0.20"}.
    prices: dict[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Settings(IdentitySettings):
    """The core's settings."""

    base_url: str = setting(
        "http://127.0.0.1:8080",
        "Public address of the gateway, without a path. Buyers reach the gateway there, so in "
        "production it starts with https.",
        example="https://gateway.example.com",
    )
    wallet: str = setting(
        "",
        "Address that receives the buyers' USDC. Required. The gateway never holds its key.",
        example="0x1111111111111111111111111111111111111111",
    )
    wallet_is_contract: bool = setting(
        False,
        "Set it to true if the wallet is a contract of yours that can send USDC on, such as a "
        "Safe. While it is false and the wallet has code, the gateway sells nothing, because a "
        "payment to most contracts is lost. The gateway reads the chain once after the start, "
        "at the latest before the first sale, and sells nothing until the chain has answered. An "
        "account that delegates to code (EIP-7702) does not need this setting.",
    )
    network: str = setting("base", "Chain on which buyers pay: `base` or `base-sepolia`.")
    # RPC providers put their API key into the address, so it is not shown.
    rpc_urls: tuple[str, ...] = setting(
        ("https://mainnet.base.org",),
        "JSON-RPC endpoints of that chain, separated by commas. The gateway asks them in this "
        "order; an endpoint that fails is asked last for some seconds. The default works without "
        "an account and is rate limited, so a shop puts an endpoint of its own before it.",
        example="https://base.example-rpc.com/v1/KEY,https://mainnet.base.org",
        shown=False,
    )
    rpc_timeout: float = setting(
        5.0, "Seconds after which an RPC call without an answer counts as failed."
    )
    data_dir: Path = setting(
        Path("gateway-data"),
        "Folder of the database and the outputs. In production it is on a volume that survives a "
        "restart.",
    )
    settlement: str = setting(
        "local",
        "Name of the settler that carries out x402 payments: `local` sends them with the "
        "settlement key, `facilitator` gives them to an x402 facilitator.",
    )
    settlement_key: ts.SecretStr = secret(
        "Private key that sends x402 payments to the chain and pays their gas. It holds a little "
        "ETH on the network and no USDC. `local` settlement needs it or a keystore.",
        example="0x followed by 64 hexadecimal digits",
    )
    settlement_keys: ts.SecretStr = secret(
        "Several settlement keys, separated by commas, instead of the one key: nodes keep only "
        "some waiting transactions of a sender, so more keys settle more payments a second. Each "
        "holds a little ETH.",
        example="0x followed by 64 hexadecimal digits,0x followed by 64 hexadecimal digits",
    )
    settlement_keystore: Path | None = setting(
        None,
        "Encrypted keystore file (Web3 Secret Storage) that holds the settlement key, instead of "
        "the plain key. `gateway encrypt-key` writes one.",
        example="/data/settlement.json",
    )
    settlement_keystore_password: ts.SecretStr = secret("Password of the settlement keystore.")
    settlement_batch: int = setting(
        1,
        "Most x402 payments that one transaction of a settlement key settles. 1: each payment has "
        "a transaction of its own. With more, payments that come while others are being sent go "
        "together, through Multicall3: that costs less gas, and one key settles more payments a "
        "second. Nobody waits longer than a second for others. At most 100.",
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
        "Name of a Coinbase Developer Platform key. The gateway signs a fresh token with that key "
        "for each request to the facilitator.",
    )
    facilitator_key_secret: ts.SecretStr = secret(
        "Secret of that key: a PEM (ES256), or 64 bytes in Base64 (Ed25519)."
    )
    erc6492_factories: tuple[str, ...] = setting(
        (),
        "Factories (ERC-6492), separated by commas, that may deploy a payer's smart wallet while "
        "its payment settles. The gateway pays the gas of the deployment, so the default allows "
        "no factory.",
        example="0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a",
    )
    require_payer_signature: bool = setting(
        False,
        "Whether a direct transfer pays only with its sender's `payerSignature`. A transfer's hash "
        "is public, so without the signature anybody can buy with a transfer of somebody else by "
        "sending its hash first. The default is false, because the specification knows no such "
        "field.",
    )
    refunds: str = setting(
        "",
        "How refunds are decided: `manual` by the operator, `automatic` by the gateway, up to the "
        "daily cap. Empty: `automatic` if there is a refund key.",
        example="manual",
    )
    refund_daily_cap: str = setting(
        "10", "Most USDC that automatic refunds may give back in 24 hours.", example="25.50"
    )
    refund_key: ts.SecretStr = secret(
        "Private key that sends refunds. It holds USDC for them and a little ETH, and it must not "
        "be the settlement key.",
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
        "Highest fee per unit of gas, in gwei, that a settlement may offer. Base usually asks for "
        "less than 0.1, so the default only stops fees that are far out of the usual.",
    )
    failed_gas_per_hour: float = setting(
        0.00001,
        "Most ETH of gas that reverted settlements, and batches with too much gas, may burn in an "
        "hour; a revert whose cause burns little does not count. Once it is burned, accounts with "
        "code pay by direct transfer only, and no batch is sent, until the hour is over.",
    )
    held_files_mb: int = setting(
        200,
        "Megabytes (10⁶ bytes) of documents that may wait for x402 payments to settle. They take "
        "space on the disk.",
    )
    client_ip_header: str = setting(
        "",
        "Header in which a trusted proxy sends the client's address, with or without a port, for "
        "the limits per address. "
        "Empty: the address that the connection comes from. Set it only behind such a proxy, "
        "because clients can forge a header.",
        example="Fly-Client-IP",
    )
    limit_x402: str = setting(
        "10/60s",
        "Rate limit of POST /api/x402/* per client address: requests and seconds.",
    )
    limit_price: str = setting(
        "",
        "Rate limit per client address of the requests to POST /api/x402/* that carry no payment "
        "and ask for the price. Empty: they count towards GATEWAY_LIMIT_X402. A purchase is a "
        "question and a paid request, so a shared 10/60s is five purchases a minute, and a program "
        "that only checks prices can lock out a buyer behind the same address.",
        example="60/60s",
    )
    limit_direct: str = setting(
        "5/60s",
        "Rate limit of POST /api/proxy-generate per client address: requests and seconds.",
    )
    limit_task: str = setting(
        "5/1s", "Rate limit of GET /api/task/* per client address: requests and seconds."
    )
    # It may hold a password, so it is not shown.
    limits_url: str = setting(
        "",
        "Redis in which the rate limits of all nodes on one database are counted together: "
        "`redis://` or `rediss://`. Empty: each node counts by itself, and so does each while "
        "Redis is silent. Logins are counted in the database either way. Needs the extra `redis` "
        "(it is in the image).",
        example="rediss://:password@redis.example.com:6379/0",
        shown=False,
    )
    max_long_polls: int = setting(
        250,
        "Requests to GET /api/task/* that may wait (`?wait=`) at the same time; more are answered "
        "at once. Keep it below the number of connections that the proxy in front passes on, which "
        "is 500 in fly.toml.",
    )
    max_long_polls_per_address: int = setting(
        20,
        "Requests to GET /api/task/* of one client address that may wait (`?wait=`) at the same "
        "time; more are answered at once.",
    )
    body_memory_mb: int = setting(
        64,
        "Megabytes (10⁶ bytes) of request bodies that are held in memory at the same time. One "
        "address may take half. Where there is no room for a body, unfinished bodies of addresses "
        "that take more are refused first, and then the body itself: with 503 and Retry-After. "
        "While bodies are decoded, the process takes up to twice as much memory for them.",
    )
    workers: int = setting(4, "Number of tasks that are generated at the same time.")
    bind: str = setting(
        "127.0.0.1:8080",
        "Address and port. Only this machine reaches the default; `[::]:8080` takes IPv4, too.",
        example="0.0.0.0:8080",
    )
    server: str = setting(
        "hypercorn",
        "HTTP server: `hypercorn`, or `uvicorn`, which takes less of "
        "the processor for a request and needs the extra `fast` (it is in the image).",
        example="uvicorn",
    )
    plugins_disabled: tuple[str, ...] = setting(
        (),
        "Plugins, separated by commas, that are not loaded although they are installed, by their "
        "names in `gateway plugins`. They sell nothing, and their settings are not read.",
        example="gateway_acme,gateway_kie",
    )
    sandbox: bool = setting(
        False,
        "Whether the sandbox image model is on sale. A program draws its pictures; it is not an AI "
        "model.",
    )
    confirmations: int = setting(
        1,
        "Depth in blocks that a direct transfer must have to pay. Its own block counts, so 1 takes "
        "a transfer as soon as it is mined.",
    )
    max_transfer_age_hours: float = setting(
        24.0, "Hours after which a transfer no longer pays in the direct flow."
    )
    tx_patience: float = setting(
        4.0,
        "Seconds to wait for a submitted transaction that the chain knows and has not mined. A "
        "transaction that the chain does not know counts as not found at once.",
    )
    retention_days: float = setting(7.0, "Days for which outputs are kept; then they are deleted.")
    outputs_url: str = setting(
        "",
        "Bucket for the outputs at any S3-compatible store, and a prefix in it. Empty: the outputs "
        "are kept in the data folder. `s3://` alone: the bucket that BUCKET_NAME names, as on Fly.",
        example="s3://my-bucket/outputs",
    )
    min_free_disk_mb: int = setting(
        200,
        "Megabytes (10⁶ bytes) that must be free in the data folder. With less, or with fewer "
        "than 300 free inodes, the gateway sells nothing, because it could not keep the outputs.",
    )
    allow_loopback_links: bool = setting(
        False,
        "Whether a vendor's result may be fetched from this machine (127.0.0.1, ::1 or localhost, "
        "by http as well), for the author of a plugin whose vendor is a program beside the "
        "gateway. It is refused unless base_url and bind are on this machine, and all of rpc_urls "
        "too or the network is base-sepolia: a gateway that others reach, or that sells for "
        "real money, never fetches from its own network.",
    )
    log_format: str = setting("json", "Format of log lines: `json`, or `console` for a terminal.")
    # It holds a password, so it is not shown.
    database_url: str = setting(
        "",
        "PostgreSQL shared by all machines, at a direct or session-pooled address. Empty: "
        "SQLite in the data folder. Needs the extra `postgres` (in the image) and "
        "GATEWAY_OUTPUTS_URL.",
        example="postgresql://gateway:password@db.example.com/gateway",
        shown=False,
    )
    database_connections: int = setting(
        8,
        "Most database connections of a machine; it opens two more. Keep the total below the "
        "server's max_connections.",
    )
    node: str = setting(
        "",
        "Unique name of this machine among those that share a database. Empty: "
        "FLY_MACHINE_ID, else the host name.",
        example="a",
    )
    role: str = setting(
        "all",
        "Work of this machine, separated by commas: `web` sells, `worker` runs tasks, "
        "`signer` may lead (refunds, webhooks, retention), `all`. Each is needed on some "
        "machine.",
        example="web,signer",
    )
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
    def roles(self) -> frozenset[str]:
        """The roles of this machine, of `ROLES`."""
        chosen = frozenset(word.strip() for word in self.role.split(","))
        return ROLES if "all" in chosen else chosen

    @property
    def refunds_automatically(self) -> bool:
        """Whether the gateway sends refunds without a decision, up to the daily cap."""
        has_key = bool(str(self.refund_key)) or self.refund_keystore is not None
        return self.refunds == "automatic" or (not self.refunds and has_key)

    @property
    def is_https(self) -> bool:
        """Whether callers reach the gateway over https."""
        return self.base_url.startswith("https://")
