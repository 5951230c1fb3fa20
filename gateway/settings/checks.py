"""Checks values of settings; a mistake becomes one sentence with an example."""

import contextlib
import importlib.util
import math
import re
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

import attrs

from gateway.domain import usdc
from gateway.domain.eip3009 import NETWORKS, checksum_address
from gateway.errors import SettingsError
from gateway.installed import BUNDLED_OPENERS, check_opener, check_scheme, find_opener
from gateway.settings.model import ROLES, Settings
from gateway.settings.page import is_strong
from gateway.settings.sections import variable, wrong

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}")
_CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
# One "@" with a dot after it: other typos only show when an e-mail is sent.
_EMAIL = re.compile(r"([^@\s<>,]+@[^@\s<>,]+\.[^@\s<>,.]+)?")
# CAIP-10 of the registry's contract, and the number of the agent in it.
_REGISTRATION = re.compile(r"eip155:[1-9][0-9]{0,19}:0x[0-9a-fA-F]{40}/[0-9]{1,78}")
_LIMIT = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)s")
# A token of RFC 9110 without quotes, or empty.
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&*+.^_|~-]*")
_THIS_MACHINE = ("127.0.0.1", "localhost", "::1")


def check_settings(settings: Settings, *, needs_wallet: bool = True) -> None:
    """Raise `SettingsError` for the first setting that cannot be right."""
    may_miss = () if needs_wallet or settings.wallet else ("wallet",)
    for name, is_right in _check_values(settings).items():
        if not is_right and name not in may_miss:
            state = "is not set" if getattr(settings, name) == "" else "is not right"
            raise wrong(name, attrs.fields_dict(Settings)[name], state)
    for name, (group, _) in _ADDRESSES.items():
        if address := getattr(settings, name):
            check_scheme(group, variable(name), address)
    _check_tables(settings)
    _check_wallet(settings)


def _check_tables(settings: Settings) -> None:
    """Raise `SettingsError` for an empty text in a table `[endpoints.<slug>]`."""
    for slug, override in settings.endpoints.items():
        for name in ("title", "description", "model"):
            text = getattr(override, name)
            if text is not None and not text.strip():
                raise SettingsError(
                    f"[endpoints.{slug}] {name} is empty. Write a text, or remove the line."
                )


def check_openers(settings: Settings) -> None:
    """Raise `SettingsError` if shared limits or outputs lack their plugin, or Redis its client."""
    _check_opener(settings, "limits_url", "redis", extra="redis")
    _check_opener(settings, "outputs_url")


def check_database(settings: Settings) -> None:
    """Raise `SettingsError` if a shared database cannot be used with the other settings."""
    if not settings.database_url:
        if settings.roles != ROLES:
            raise SettingsError(
                f"GATEWAY_ROLE is {settings.role}, but this machine is the only one on its "
                "database: unset it, or name the database that others share, GATEWAY_DATABASE_URL."
            )
        return
    _check_opener(settings, "database_url", "psycopg", extra="postgres")
    if not settings.outputs_url:
        raise SettingsError(
            "GATEWAY_DATABASE_URL is set, but outputs would stay on this machine's disk, where the "
            "others cannot read them. Name a bucket: GATEWAY_OUTPUTS_URL=s3://my-bucket/outputs"
        )


def _check_opener(settings: Settings, name: str, library: str = "", *, extra: str = "") -> None:
    """Raise `SettingsError` if a plugin is missing for an address, or a bundled one's library."""
    address, (group, _) = getattr(settings, name), _ADDRESSES[name]
    if not address:
        return
    place = check_opener(group, variable(name), address, settings.plugins_disabled)
    is_bundled = place in BUNDLED_OPENERS[group].values()
    if is_bundled and library and importlib.util.find_spec(library) is None:
        raise SettingsError(
            f"{variable(name)} is set, but {library} cannot be found: run pip install "
            f"'generation-gateway[{extra}]', or unset the variable."
        )


_ONE_OF = {
    "network": tuple(NETWORKS),
    "log_format": ("auto", "json", "console"),
    "refunds": ("", "manual", "automatic"),
}
# What fits into the most gas that Base lets one transaction have.
_MAX_IN_BATCH = 100
_AT_LEAST = {
    "workers": 1,
    "sandbox_memory_mb": 0,
    "database_connections": 1,
    "confirmations": 1,
    "min_free_disk_mb": 0,
    "max_long_polls": 0,
    "max_long_polls_per_address": 0,
    # Two of the largest bodies.
    "body_memory_mb": 24,
    # One of the largest files.
    "held_files_mb": 8,
    # This refuses "nan", too: no comparison with it is true.
    "failed_gas_per_hour": 0,
    "deployments_per_day": 0,
}
_POSITIVE = (
    "rpc_timeout",
    "max_fee_gwei",
    "max_transfer_age_hours",
    "tx_patience",
    "retention_days",
)
_LIMITS = ("limit_x402", "limit_direct", "limit_task")


def _check_values(settings: Settings) -> dict[str, bool]:
    """Return for each checked setting whether its value is right."""
    url = urlsplit(settings.base_url)
    return {
        "base_url": url.scheme in ("http", "https") and bool(url.hostname) and not url.path,
        "wallet": bool(_ADDRESS.fullmatch(settings.wallet)) and int(settings.wallet, 16) != 0,
        "play_key": not settings.play_key or _is_play(settings),
        "rpc_urls": bool(settings.rpc_urls)
        and all(urlsplit(rpc).scheme in ("http", "https") for rpc in settings.rpc_urls),
        "settlement_key": not settings.settlement_key or is_key(settings.settlement_key),
        "refund_key": not settings.refund_key or is_key(settings.refund_key),
        "settlement_keys": all(map(is_key, parse_keys(settings.settlement_keys))),
        "facilitator_url": _is_facilitator_address(settings.facilitator_url),
        "settlement_batch": 1 <= settings.settlement_batch <= _MAX_IN_BATCH,
        "erc6492_factories": all(map(_ADDRESS.fullmatch, settings.erc6492_factories)),
        "refund_daily_cap": _is_amount(settings.refund_daily_cap),
        "bind": is_host_and_port(settings.bind),
        "server": settings.server == "hypercorn"
        or bool(find_opener("gateway.servers", settings.server)),
        "client_ip_header": bool(_HEADER_NAME.fullmatch(settings.client_ip_header)),
        "allow_loopback_links": not settings.allow_loopback_links or _is_test_only(settings),
        "created": bool(re.fullmatch(r"\d{4}-\d\d-\d\d", settings.created)),
        "updated": bool(re.fullmatch(r"(\d{4}-\d\d-\d\d)?", settings.updated)),
        "contact_email": bool(_EMAIL.fullmatch(settings.contact_email)),
        "agent_registrations": all(map(_REGISTRATION.fullmatch, settings.agent_registrations)),
        "role": settings.roles <= ROLES,
        "settings_secret": is_strong(str(settings.settings_secret)),
        **{name: getattr(settings, name) in values for name, values in _ONE_OF.items()},
        **{name: getattr(settings, name) >= least for name, least in _AT_LEAST.items()},
        **{name: 0 < getattr(settings, name) < math.inf for name in _POSITIVE},
        **{name: is_limit(getattr(settings, name)) for name in _LIMITS},
        "limit_price": not settings.limit_price or is_limit(settings.limit_price),
        **{name: _is_address(getattr(settings, name), *rule) for name, rule in _ADDRESSES.items()},
    }


def _is_address(text: str, group: str, is_right: Callable[[SplitResult], bool]) -> bool:
    """Whether this is empty or an address. A third party's opener checks those of its scheme."""
    with contextlib.suppress(ValueError):
        url = urlsplit(text)
        is_others = url.scheme not in BUNDLED_OPENERS[group]
        return not text or ("://" in text and (is_others or is_right(url)))
    return False


# The group of the plugins that open an address, and the check of those of the bundled plugins.
_ADDRESSES: dict[str, tuple[str, Callable[[SplitResult], bool]]] = {
    "database_url": ("gateway.stores", lambda url: bool(url.path.strip("/"))),
    # Reading a wrong port raises `ValueError`.
    "limits_url": ("gateway.limits", lambda url: url.port != 0 and bool(url.hostname)),
    "outputs_url": ("gateway.outputs", lambda _: True),
}


def parse_keys(text: str) -> list[str]:
    """Return the private keys of a list with commas, each as it was written."""
    return [key.strip() for key in text.split(",")] if text else []


def _is_facilitator_address(text: str) -> bool:
    """Whether this is empty or an address; http is right on this machine only."""
    url = urlsplit(text)
    is_local = url.hostname in _THIS_MACHINE
    return not text or (bool(url.hostname) and (url.scheme == "https" or is_local))


def is_host_and_port(text: str) -> bool:
    """Whether this is an address and a port to listen on."""
    return bool(re.fullmatch(r".+:[0-9]{1,5}", text))


def _is_test_only(settings: Settings) -> bool:
    """Whether only this machine reaches the gateway, and no real money pays it."""
    has_test_money = settings.network == "base-sepolia" or is_chain_local(settings)
    return is_local_only(settings) and has_test_money


def _is_play(settings: Settings) -> bool:
    """Whether the play key is one, and gateway and chain are reached on this machine alone."""
    return is_key(settings.play_key) and is_local_only(settings) and is_chain_local(settings)


def is_chain_local(settings: Settings) -> bool:
    """Whether the chain is read on this machine only."""
    return all(urlsplit(rpc).hostname in _THIS_MACHINE for rpc in settings.rpc_urls)


def is_local_only(settings: Settings) -> bool:
    """Whether the gateway listens on this machine only, and names itself by an address of it."""
    reached_at = urlsplit(settings.base_url).hostname
    listens_on = settings.bind.rpartition(":")[0].strip("[]")
    return {reached_at, listens_on} <= set(_THIS_MACHINE)


def _is_amount(text: str) -> bool:
    """Whether this is a positive amount of USDC."""
    try:
        return usdc(text) > 0
    except ValueError:
        return False


def _check_wallet(settings: Settings) -> None:
    """Raise `SettingsError` for a mistyped wallet, and for the address of a token contract."""
    digits = settings.wallet.removeprefix("0x")
    is_mixed_case = digits not in (digits.lower(), digits.upper())
    if is_mixed_case and settings.wallet != checksum_address(settings.wallet):
        raise SettingsError(
            f"GATEWAY_WALLET is {settings.wallet}, whose upper and lower case do not fit its "
            "digits (EIP-55), so a character of it is wrong: copy the address again."
        )
    for network in NETWORKS.values():
        if settings.wallet_key == network.token:
            raise SettingsError(
                f"GATEWAY_WALLET is the address of the USDC contract on {network.name}, where "
                "every payment would be lost: set the address of your own wallet."
            )


def is_key(text: str) -> bool:
    """Whether this is a private key of the curve secp256k1."""
    return bool(_KEY.fullmatch(text)) and 0 < int(text, 16) < _CURVE_ORDER


def is_limit(text: str) -> bool:
    """Whether this is a rate limit such as `10/60s`."""
    return bool(_LIMIT.fullmatch(text))


def parse_limit(limit: str) -> tuple[int, int]:
    """Return (hits, window in seconds) of a limit such as `10/60s`."""
    match = _LIMIT.fullmatch(limit)
    if match is None:
        raise SettingsError(f"{limit!r} is not a rate limit such as 10/60s.")
    return int(match[1]), int(match[2])
