"""What settings must be like; a mistake is one sentence with an example."""

import math
import re
from urllib.parse import urlsplit

import attrs

from gateway.domain import usdc
from gateway.domain.eip3009 import NETWORKS
from gateway.errors import SettingsError
from gateway.settings.bucket import bucket_verdicts
from gateway.settings.model import Settings
from gateway.settings.sections import variable
from gateway.settings.wallet import check_wallet

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_KEY = re.compile(r"(0x)?[0-9a-fA-F]{64}")
_CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
# The PHC string of argon2-cffi: kind, version, costs, salt and hash, both in Base64 without "=".
_ARGON2 = re.compile(
    r"\$argon2(id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{11,}\$[A-Za-z0-9+/]{6,}"
)
_LIMIT = re.compile(r"([1-9][0-9]*)/([1-9][0-9]*)s")


def hint(name: str) -> str:
    """Return what a setting is for, and an example."""
    field = attrs.fields_dict(Settings).get(name.partition(".")[0])
    if field is None:
        return ""
    example = field.metadata["example"] or field.default
    return f"{field.metadata['about']} Example: {variable(field.name)}={example}"


def check_settings(settings: Settings) -> None:
    """Raise `SettingsError` for the first setting that cannot be right."""
    for name, is_right in _verdicts(settings).items():
        if not is_right:
            state = "is not set" if getattr(settings, name) == "" else "is not right"
            raise SettingsError(f"{variable(name)} {state}. {hint(name)}")
    check_wallet(settings)


_ONE_OF = {
    "network": tuple(NETWORKS),
    "log_format": ("json", "console"),
    "refunds": ("manual", "automatic"),
}
_AT_LEAST = {
    "workers": 1,
    "confirmations": 1,
    "min_free_disk_mb": 0,
    "max_long_polls": 0,
    "max_long_polls_per_address": 0,
    "body_memory_mb": 24,  # two of the largest bodies
    "held_files_mb": 8,  # one of the largest files
    "failed_gas_per_hour": 0,  # nor "nan", of which nothing is more
}
_POSITIVE = (
    "rpc_timeout",
    "max_fee_gwei",
    "max_transfer_age_hours",
    "tx_patience",
    "retention_days",
)
_LIMITS = ("limit_x402", "limit_direct", "limit_task", "limit_login", "limit_login_total")


def _verdicts(settings: Settings) -> dict[str, bool]:
    """Return which settings are right."""
    url = urlsplit(settings.base_url)
    return {
        "base_url": url.scheme in ("http", "https") and bool(url.hostname) and not url.path,
        "wallet": bool(_ADDRESS.fullmatch(settings.wallet)) and int(settings.wallet, 16) != 0,
        "rpc_urls": bool(settings.rpc_urls)
        and all(urlsplit(rpc).scheme in ("http", "https") for rpc in settings.rpc_urls),
        **{name: not value or is_key(value) for name, value in _keys(settings).items()},
        "admin_password_hash": _is_argon2_hash(str(settings.admin_password_hash)),
        "facilitator_url": _is_address_of_facilitator(settings.facilitator_url),
        "erc6492_factories": all(map(_ADDRESS.fullmatch, settings.erc6492_factories)),
        "refund_daily_cap": _is_amount(settings.refund_daily_cap),
        "bind": bool(re.fullmatch(r".+:[0-9]{1,5}", settings.bind)),
        **bucket_verdicts(settings),
        "created": bool(re.fullmatch(r"\d{4}-\d\d-\d\d", settings.created)),
        "updated": bool(re.fullmatch(r"(\d{4}-\d\d-\d\d)?", settings.updated)),
        **{name: getattr(settings, name) in values for name, values in _ONE_OF.items()},
        **{name: getattr(settings, name) >= least for name, least in _AT_LEAST.items()},
        **{name: 0 < getattr(settings, name) < math.inf for name in _POSITIVE},
        **{name: bool(_LIMIT.fullmatch(getattr(settings, name))) for name in _LIMITS},
        "limit_price": not settings.limit_price or bool(_LIMIT.fullmatch(settings.limit_price)),
    }


def _keys(settings: Settings) -> dict[str, str]:
    return {"settlement_key": settings.settlement_key, "refund_key": settings.refund_key}


def _is_address_of_facilitator(text: str) -> bool:
    """Whether this is empty or an address; unencrypted only on this machine."""
    url = urlsplit(text)
    is_local = url.hostname in ("127.0.0.1", "localhost", "::1")
    return not text or (bool(url.hostname) and (url.scheme == "https" or is_local))


def _is_argon2_hash(text: str) -> bool:
    """Whether this is empty or an argon2 hash that a password can be compared with."""
    # Four characters of Base64 are three bytes; one character alone is none.
    is_cut_off = any(len(part) % 4 == 1 for part in text.split("$")[-2:])
    return not text or (bool(_ARGON2.fullmatch(text)) and not is_cut_off)


def _is_amount(text: str) -> bool:
    """Whether this is a positive amount of USDC."""
    try:
        return usdc(text) > 0
    except ValueError:
        return False


def is_key(text: str) -> bool:
    """Whether this is a private key of secp256k1."""
    return bool(_KEY.fullmatch(text)) and 0 < int(text, 16) < _CURVE_ORDER


def parse_limit(limit: str) -> tuple[int, int]:
    """Return (hits, window in seconds) of a checked limit such as `10/60s`."""
    match = _LIMIT.fullmatch(limit)
    if match is None:
        raise SettingsError(f"{limit!r} is not a rate limit such as 10/60s.")
    return int(match[1]), int(match[2])
