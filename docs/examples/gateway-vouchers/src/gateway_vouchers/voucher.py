"""A voucher as a token: its content in canonical form, and the operator's signature.

A token is `base64url(JSON).base64url(HMAC-SHA256)`. Each voucher has exactly one token: a token
that is encoded differently is refused.
"""

import base64
import hmac
import json
import re
from collections.abc import Callable
from typing import Any

import attrs

from gateway import SettingsError

DEFAULT_NAME = "gateway"
SECRET_VARIABLE = "GATEWAY_VOUCHERS_SECRET"  # noqa: S105 - where it is, not what it is
NAME_VARIABLE = "GATEWAY_VOUCHERS_NAME"
# 10,000 USDC.
MAX_UNITS = 10_000_000_000
_MAX_TOKEN_CHARS = 1024
_MIN_SECRET_CHARS = 32
# The year 9999.
_MAX_TIME = 253_402_300_799
_SERIAL = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"[a-z0-9.-]{1,60}")
_ADDRESS = re.compile(r"0x(?!0{40})[0-9a-fA-F]{40}")
# Separates this signature from others that the operator may make with the same secret.
_PURPOSE = b"gateway-vouchers 1\n"


def _like(pattern: re.Pattern[str], wanted: str) -> Callable[[Any, Any, Any], None]:
    def check(_: Any, field: Any, value: Any) -> None:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{field.name} is not {wanted}")

    return check


def _up_to(most: int, unit: str) -> Callable[[Any, Any, Any], None]:
    def check(_: Any, field: Any, value: Any) -> None:
        # True is an int, too.
        if type(value) is not int or not 1 <= value <= most:
            raise ValueError(f"{field.name} is not 1 to {most} {unit}")

    return check


@attrs.frozen(kw_only=True)
class Voucher:
    """The content of a voucher. Raises `ValueError` for invalid content."""

    # 32 random hex digits, unique.
    serial: str = attrs.field(validator=_like(_SERIAL, "32 hex digits"))

    # 10⁻⁶ USDC.
    value_units: int = attrs.field(validator=_up_to(MAX_UNITS, "millionths of a USDC"))

    # Unix seconds. It expires then.
    expires: int = attrs.field(validator=_up_to(_MAX_TIME, "Unix seconds"))

    # The gateway that accepts it.
    gateway: str = attrs.field(validator=_like(_NAME, "a name"))

    # The address for refunds. None: the operator asks for it later.
    refund_to: str | None = attrs.field(
        default=None, validator=attrs.validators.optional(_like(_ADDRESS, "an address 0x…"))
    )


class Seal:
    """The operator's secret, which signs and verifies vouchers."""

    def __init__(self, secret: str) -> None:
        """Raise `SettingsError` for a secret that can be guessed."""
        if len(secret) < _MIN_SECRET_CHARS:
            raise SettingsError(
                f"{SECRET_VARIABLE} has fewer than {_MIN_SECRET_CHARS} characters, so vouchers "
                "could be forged. `openssl rand -hex 32` prints a good one."
            )
        self._secret = secret.encode()

    def token_of(self, voucher: Voucher) -> str:
        """Return a voucher's token."""
        said = _spelled(voucher)
        return f"{said}.{self._seal_of(said)}"

    def is_on(self, token: str) -> bool:
        """Whether a token was signed with this secret, in constant time."""
        said, _, seal = token.partition(".")
        return hmac.compare_digest(seal.encode(), self._seal_of(said).encode())

    def _seal_of(self, said: str) -> str:
        return _base64url(hmac.digest(self._secret, _PURPOSE + said.encode(), "sha256"))


def decode(token: str) -> Voucher:
    """Decode a token without verifying it. Raises `ValueError` if it is malformed."""
    if len(token) > _MAX_TOKEN_CHARS:
        raise ValueError("the token is too long")
    said = token.partition(".")[0]
    try:
        padded = said + "=" * (-len(said) % 4)
        members = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        voucher = Voucher(**members)
    except (TypeError, RecursionError) as error:
        raise ValueError("the token says what no voucher says") from error
    if _spelled(voucher) != said:
        raise ValueError("the token is spelled otherwise")
    return voucher


def checked_name(name: str) -> str:
    """Return a gateway's name; raises `SettingsError` if it is not valid in a voucher."""
    if not _NAME.fullmatch(name):
        raise SettingsError(
            f"{NAME_VARIABLE} is not 1 to 60 of a-z, 0-9, `.` and `-`. "
            f"Example: {NAME_VARIABLE}=gateway.example.com"
        )
    return name


def _spelled(voucher: Voucher) -> str:
    """Return the part of a token before the dot."""
    members = attrs.asdict(voucher, filter=lambda _, value: value is not None)
    return _base64url(json.dumps(members, separators=(",", ":"), sort_keys=True).encode())


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
