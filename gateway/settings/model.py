"""The core's settings: name, default, unit and purpose.

`make docs` writes docs/settings.md from this class; a new setting needs no other documentation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import typed_settings as ts

from gateway.domain.eip3009 import NETWORKS, Network, play_network
from gateway.settings.page import PageSettings
from gateway.settings.sections import Section, check_section, read_section, secret, setting

ROLES = frozenset(("web", "worker", "signer"))
# Coinbase's factories of smart wallets, 1 and 1.1, at the same addresses on Base and Base Sepolia.
COINBASE_FACTORIES = (
    "0x0BA5ED0c6AA8c49038F819E587E2633c4A9F428a",
    "0xBA5ED110eFDBa3D005bfC882d75358ACBbB85842",
)


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
class Settings(PageSettings):
    """The core's settings."""

    base_url: str = setting(
        "http://127.0.0.1:8080",
        "Public address of the gateway, without a path; in production https.",
        example="https://gateway.example.com",
    )
    wallet: str = setting(
        "",
        "Address that receives the buyers' USDC. Required. The gateway never holds its key.",
        example="0x1111111111111111111111111111111111111111",
    )
    wallet_is_contract: bool = setting(
        False,
        "True if the wallet is a contract of yours that can send USDC on, such as a Safe. If it is "
        "false and the wallet has code, nothing is sold, because a payment to most contracts is "
        "lost. EIP-7702 accounts do not need it.",
    )
    network: str = setting("base", "Chain on which buyers pay: `base` or `base-sepolia`.")
    # RPC providers put their API key into the address, so it is not shown.
    rpc_urls: tuple[str, ...] = setting(
        ("https://mainnet.base.org",),
        "JSON-RPC endpoints of that chain, separated by commas, the best first. The default is "
        "rate limited: put one of your own before it, with state of the last two hours and logs of "
        "500 blocks per request. `gateway check` tries both.",
        example="https://base.example-rpc.com/v1/KEY,https://mainnet.base.org",
        shown=False,
    )
    rpc_timeout: float = setting(5.0, "Seconds after which an RPC call counts as failed.")
    data_dir: Path = setting(
        Path("gateway-data"),
        "Folder of the database and the outputs, on a volume that survives a restart.",
    )
    settlement: str = setting(
        "local",
        "Settler of x402 payments: `local` sends them with the settlement key, `facilitator` gives "
        "them to an x402 facilitator.",
    )
    settlement_key: ts.SecretStr = secret(
        "Private key that sends x402 payments and pays their gas. It holds a little ETH and no "
        "USDC. `local` settlement needs it or a keystore.",
        example="0x followed by 64 hexadecimal digits",
    )
    settlement_keys: ts.SecretStr = secret(
        "Several settlement keys, separated by commas, instead of one: more keys settle more "
        "payments a second ([how many](scale.md#settlement-keys)). Each holds a little ETH.",
        example="0x followed by 64 hexadecimal digits,0x followed by 64 hexadecimal digits",
    )
    settlement_keystore: Path | None = setting(
        None,
        "Encrypted keystore file (Web3 Secret Storage) with the settlement key, made by `gateway "
        "encrypt-key`.",
        example="/data/settlement.json",
    )
    settlement_keystore_password: ts.SecretStr = secret("Password of the settlement keystore.")
    settlement_batch: int = setting(
        1,
        "Maximum x402 payments in one transaction, up to 100 ([batches](payments.md#batches)).",
        example="50",
    )
    # Some facilitators put a key into the path, so the address is not shown.
    facilitator_url: str = setting(
        "",
        "Address of the x402 facilitator. `facilitator` settlement needs it.",
        example="https://facilitator.example.com",
        shown=False,
    )
    facilitator_token: ts.SecretStr = secret(
        "Bearer token for the facilitator, if it requires one."
    )
    facilitator_key_id: str = setting(
        "",
        "Name of a Coinbase Developer Platform key, which signs a token for each request to the "
        "facilitator.",
    )
    facilitator_key_secret: ts.SecretStr = secret(
        "Secret of that key: a PEM (ES256), or 64 bytes in Base64 (Ed25519)."
    )
    erc6492_factories: tuple[str, ...] = setting(
        COINBASE_FACTORIES,
        "Factories (ERC-6492), separated by commas, that may deploy a payer's smart wallet in its "
        "settlement, at the gateway's expense. The default are Coinbase's, for Base Account.",
    )
    deployments_per_day: int = setting(
        100,
        "Maximum number of smart wallets that settlements deploy in 24 hours. One costs 190,000 to "
        "290,000 gas more than a plain settlement. 0: none.",
    )
    require_payer_signature: bool = setting(
        False,
        "Whether a direct transfer pays only with its sender's `payerSignature`. A hash is public: "
        "without the signature, anybody who sends it first can buy with another's transfer.",
    )
    refunds: str = setting(
        "",
        "`manual`: the operator decides; `automatic`: the gateway, up to the daily cap. Empty: "
        "`automatic` if there is a refund key.",
        example="manual",
    )
    refund_daily_cap: str = setting(
        "10", "Maximum USDC of automatic refunds in 24 hours.", example="25.50"
    )
    refund_key: ts.SecretStr = secret(
        "Private key that sends refunds; not the settlement key. It holds USDC for them and a "
        "little ETH.",
        example="0x followed by 64 hexadecimal digits",
    )
    refund_keystore: Path | None = setting(
        None,
        "Encrypted keystore file with the refund key.",
        example="/data/refunds.json",
    )
    refund_keystore_password: ts.SecretStr = secret("Password of the refund keystore.")
    max_fee_gwei: float = setting(
        5.0,
        "Maximum fee per unit of gas, in gwei, that a settlement offers. Base usually takes less "
        "than 0.1.",
    )
    failed_gas_per_hour: float = setting(
        0.00001,
        "Maximum ETH of gas that reverted settlements and oversized batches may burn in an hour. "
        "Beyond it, accounts with code pay by direct transfer only, and no batch is sent.",
    )
    held_files_mb: int = setting(
        200,
        "Megabytes (10⁶ bytes) of documents on disk that may wait for x402 payments to settle.",
    )
    client_ip_header: str = setting(
        "",
        "Header in which a trusted proxy sends the client's address, for the limits per address. "
        "Empty: the connection's address. Without such a proxy clients can forge it.",
        example="Fly-Client-IP",
    )
    limit_x402: str = setting(
        "10/60s",
        "Rate limit of POST /api/x402/* per address: requests and seconds.",
    )
    limit_price: str = setting(
        "",
        "Rate limit of such requests without a payment, which return the price. Empty: they count "
        "towards GATEWAY_LIMIT_X402, where a purchase takes two.",
        example="60/60s",
    )
    limit_direct: str = setting(
        "5/60s",
        "Rate limit of POST /api/proxy-generate per address.",
    )
    limit_task: str = setting("5/1s", "Rate limit of GET /api/task/* per address.")
    # It may hold a password, so it is not shown.
    limits_url: str = setting(
        "",
        "Redis (`redis://` or `rediss://`, extra `redis`, in the image) that counts the rate "
        "limits of all nodes together. Empty, or while Redis is silent: each node counts alone. "
        "Logins are counted in the database.",
        example="rediss://:password@redis.example.com:6379/0",
        shown=False,
    )
    max_long_polls: int = setting(
        250,
        "Maximum waiting requests to GET /api/task/* (`?wait=`); more are answered at once. Keep "
        "it below the proxy's connections.",
    )
    max_long_polls_per_address: int = setting(
        20,
        "The same, of one address.",
    )
    body_memory_mb: int = setting(
        64,
        "Megabytes (10⁶ bytes) of request bodies in memory; half for one address. Beyond it, "
        "unfinished bodies of heavier addresses are refused first, then new ones: 503 with "
        "Retry-After.",
    )
    sandbox_memory_mb: int = setting(
        0,
        "Megabytes (10⁶ bytes) for the processes that read files and check results. 0: the "
        "memory of the machine or container without 350 MB, and at least half of it.",
    )
    workers: int = setting(4, "Number of tasks that are generated concurrently.")
    bind: str = setting(
        "127.0.0.1:8080",
        "Address and port. The default is for this machine only; `[::]:8080` accepts IPv4, too.",
        example="0.0.0.0:8080",
    )
    server: str = setting(
        "hypercorn",
        "HTTP server: `hypercorn`, or `uvicorn`, which uses less processor time and needs the "
        "extra `fast` (in the image).",
        example="uvicorn",
    )
    plugins_disabled: tuple[str, ...] = setting(
        (),
        "Installed plugins, separated by commas, that are not loaded, by their names in `gateway "
        "plugins`.",
        example="gateway_acme,gateway_kie",
    )
    sandbox: bool = setting(
        False,
        "Whether the sandbox's endpoints are on sale. A program draws their pictures, not an AI "
        "model.",
        on_page=True,
    )
    confirmations: int = setting(
        1,
        "Blocks that a direct transfer must have, its own included; 1 accepts it once mined. Base "
        "makes five a second since 2026-11-05, and made one in two seconds before.",
    )
    max_transfer_age_hours: float = setting(
        24.0, "Hours for which a transfer pays in the direct flow."
    )
    tx_patience: float = setting(
        4.0,
        "Seconds to wait for a transaction that the chain knows and has not mined.",
    )
    retention_days: float = setting(7.0, "Days for which outputs are kept.")
    outputs_url: str = setting(
        "",
        "S3-compatible bucket and prefix for the outputs. Empty: the data folder. `s3://`: the "
        "bucket in BUCKET_NAME, as on Fly.",
        example="s3://my-bucket/outputs",
    )
    min_free_disk_mb: int = setting(
        200,
        "Megabytes (10⁶ bytes) that must be free in the data folder. Below it, or below 300 free "
        "inodes, nothing is sold.",
    )
    allow_loopback_links: bool = setting(
        False,
        "Whether vendors' results may be fetched from this machine, also by http, for a vendor "
        "that is a program beside the gateway. Refused unless base_url and bind are on this "
        "machine, and so are all rpc_urls or the network is base-sepolia.",
    )
    log_format: str = setting(
        "auto", "Format of log lines: `json`, `console`, or `auto`: `console` on a terminal only."
    )
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
        "Most database connections of a machine; it opens up to four more. Keep the total below "
        "the server's max_connections.",
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
    # The presentation to buyers and registries.
    name: str = setting(
        "Generation Gateway",
        "Name for buyers: in the agent manifest, llms.txt, the 402 and Bazaars.",
        on_page=True,
    )
    created: str = setting("2026-11-21", "Date (YYYY-MM-DD) of the first agent manifest.")
    updated: str = setting(
        "",
        "Date (YYYY-MM-DD) of the catalogue's last change. Empty: GATEWAY_CREATED.",
    )
    contact_email: str = setting(
        "",
        "E-mail address that buyers are given, in /openapi.json, the ERC-8004 file and after a "
        "failure. Registries such as x402scan verify ownership by it.",
        example="operator@example.com",
        on_page=True,
    )
    ownership_proofs: tuple[str, ...] = setting(
        (),
        "A registry's proofs of your ownership, separated by commas, for /openapi.json.",
        example="0x5f1c...",
    )
    agent_registrations: tuple[str, ...] = setting(
        (),
        "Registrations in ERC-8004 identity registries, separated by commas (chain, registry, "
        "agent's number), for /.well-known/agent-registration.json.",
        example="eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432/22",
    )
    play_key: str = setting(
        "",
        "Private key with play money, shown to all visitors, for `gateway demo`. Every document "
        "then states that the money has no value. Refused unless base_url, bind and rpc_urls are "
        "on this machine.",
        example="0x followed by 64 hexadecimal digits",
        shown=False,
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
        network = NETWORKS[self.network]
        return play_network(network) if self.play_key else network

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
