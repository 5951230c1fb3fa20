"""Every setting: `gateway.toml` (or the file `GATEWAY_CONFIG` names), then the environment.

`docs/settings.md` is generated from this class; a new setting needs nothing else.
"""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
import typed_settings as ts
from typed_settings.converters import TSConverter
from typed_settings.exceptions import TsError

from gateway.errors import SettingsError
from gateway.usdc import NETWORKS, Network

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}")
_CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
_LIMIT = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)s")


def _setting(default: Any, about: str, *, example: str = "", shown: bool = True) -> Any:
    return attrs.field(default=default, repr=shown, metadata={"about": about, "example": example})


def _secret(about: str, *, example: str = "") -> Any:
    return attrs.field(
        default=ts.SecretStr(""),
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


def load_settings(**overrides: Any) -> Settings:
    """Read the settings from file and environment; `overrides` win over both.

    Raises `SettingsError` with one sentence for the first mistake.
    """
    named = os.environ.get("GATEWAY_CONFIG")
    if named and not Path(named).is_file():
        raise SettingsError(f"GATEWAY_CONFIG names {named}, but there is no such file.")
    try:
        loaded = ts.load_settings(
            Settings,
            loaders=[
                ts.FileLoader({"*": ts.TomlFormat(None)}, files=[named or "gateway.toml"]),
                ts.EnvLoader(prefix="GATEWAY_"),
            ],
            converter=TSConverter(strlist_sep=","),
        )
    except (ExceptionGroup, TsError) as error:
        raise SettingsError(_one_sentence(error)) from None
    settings = attrs.evolve(loaded, base_url=loaded.base_url.rstrip("/"), **overrides)
    check_settings(settings)
    return settings


def _one_sentence(error: Exception) -> str:
    """Return the first mistake of a failed load in one sentence, without any value."""
    first: BaseException = error
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    option = re.search(r"option '([\w.]+)'", str(first))
    if option is None:
        return f"The settings cannot be read: {first}"
    return f"{variable(option[1])} has a value of the wrong kind. {_hint(option[1])}"


def _hint(name: str) -> str:
    field = attrs.fields_dict(Settings).get(name.partition(".")[0])
    if field is None:
        return ""
    example = field.metadata["example"] or field.default
    return f"{field.metadata['about']} Example: {variable(field.name)}={example}"


def check_settings(settings: Settings) -> None:
    """Raise `SettingsError` for the first setting that cannot be right."""
    url = urlsplit(settings.base_url)
    one_of = {"network": tuple(NETWORKS), "log_format": ("json", "console")}
    at_least = {"workers": 1, "confirmations": 1, "min_free_disk_mb": 0}
    positive = (
        "rpc_timeout",
        "max_fee_gwei",
        "max_transfer_age_hours",
        "tx_patience",
        "retention_days",
    )
    checks: dict[str, bool] = {
        "base_url": url.scheme in ("http", "https") and bool(url.hostname) and not url.path,
        "wallet": bool(_ADDRESS.fullmatch(settings.wallet)) and int(settings.wallet, 16) != 0,
        "rpc_urls": bool(settings.rpc_urls)
        and all(urlsplit(rpc).scheme in ("http", "https") for rpc in settings.rpc_urls),
        "settlement_key": not settings.settlement_key or _is_key(settings.settlement_key),
        "bind": bool(re.fullmatch(r".+:[0-9]{1,5}", settings.bind)),
        "created": bool(re.fullmatch(r"\d{4}-\d\d-\d\d", settings.created)),
        "updated": bool(re.fullmatch(r"(\d{4}-\d\d-\d\d)?", settings.updated)),
        **{name: getattr(settings, name) in values for name, values in one_of.items()},
        **{name: getattr(settings, name) >= least for name, least in at_least.items()},
        **{name: getattr(settings, name) > 0 for name in positive},
        **{
            name: bool(_LIMIT.fullmatch(getattr(settings, name)))
            for name in ("limit_x402", "limit_direct", "limit_task", "limit_login")
        },
    }
    for name, is_right in checks.items():
        if not is_right:
            state = "is not set" if getattr(settings, name) == "" else "is not right"
            raise SettingsError(f"{variable(name)} {state}. {_hint(name)}")


def _is_key(text: str) -> bool:
    """Whether this is a private key of secp256k1."""
    return bool(_KEY.fullmatch(text)) and 0 < int(text, 16) < _CURVE_ORDER


def parse_limit(limit: str) -> tuple[int, int]:
    """Return (hits, window in seconds) of a checked limit such as `10/60s`."""
    match = _LIMIT.fullmatch(limit)
    if match is None:
        raise SettingsError(f"{limit!r} is not a rate limit such as 10/60s.")
    return int(match[1]), int(match[2])
