"""Parses the JSON of an untrusted payment header: limited in size, strict about types.

Every reader raises `PaymentRequired("invalid_payload")` for invalid input.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from gateway.domain.records import Authorization
from gateway.errors import PaymentRequired

# After Base64 decoding. A header has about 700 bytes, or 3 KB if the client returns the challenge's
# extensions; clients may add their own extensions.
MAX_HEADER_BYTES = 32 * 1024
# Limits opening brackets. A real header has 60; the decoder recurses into each.
_MAX_BRACKETS = 1_000
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_BYTES32 = re.compile(r"0x[0-9a-fA-F]{64}")
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*")
_UINT256 = 2**256


def load_json(header: str) -> Any:
    """Decode JSON from standard or URL-safe Base64, with or without padding."""
    compact = header.strip().rstrip("=").replace("-", "+").replace("_", "/")
    if len(compact) > MAX_HEADER_BYTES * 4 // 3 + 4:
        raise PaymentRequired("invalid_payload")
    try:
        raw = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
        if raw.count(b"[") + raw.count(b"{") > _MAX_BRACKETS:
            raise PaymentRequired("invalid_payload")
        return json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, binascii.Error, RecursionError):
        raise PaymentRequired("invalid_payload") from None


def _refuse_constant(constant: str) -> None:
    # NaN and Infinity are not JSON.
    raise ValueError(constant)


def read_authorization(signed: Mapping[str, Any], signature: Any) -> Authorization:
    """Return an EIP-3009 authorization from its fields and its signature in hex."""
    return Authorization(
        sender=_read_hex(signed.get("from"), _ADDRESS),
        recipient=_read_hex(signed.get("to"), _ADDRESS),
        value_units=read_integer(signed.get("value")),
        valid_after=read_integer(signed.get("validAfter")),
        valid_before=read_integer(signed.get("validBefore")),
        nonce=_read_hex(signed.get("nonce"), _BYTES32),
        signature=bytes.fromhex(_read_hex(signature, _HEX)[2:]),
    )


def read_object(value: Any) -> Mapping[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise PaymentRequired("invalid_payload")
    return value


def read_text(value: Any) -> str:
    """Return a string."""
    if not isinstance(value, str):
        raise PaymentRequired("invalid_payload")
    return value


def _read_hex(value: Any, pattern: re.Pattern[str]) -> str:
    """Return a hex string in lower case, including `0x`."""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise PaymentRequired("invalid_payload")
    return value.lower()


def read_integer(value: Any) -> int:
    """Return a uint256 from a JSON number or a decimal string."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 78:  # noqa: PLR2004 - digits of 2²⁵⁶
        value = int(value)
    if type(value) is not int or not 0 <= value < _UINT256:
        raise PaymentRequired("invalid_payload")
    return value
