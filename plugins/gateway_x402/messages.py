"""The JSON of x402: the challenge, the payment header that answers it, and the receipt.

Source: x402 specification v1 and v2, scheme `exact` on EVM.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

from gateway import Authorization, Challenge, Payment, PaymentRequired, Proof, Quote
from gateway.domain.eip3009 import checksum_address

# After Base64 decoding. A real header has about 700 bytes.
MAX_HEADER_BYTES = 8192
MAX_TIMEOUT_S = 300
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_BYTES32 = re.compile(r"0x[0-9a-fA-F]{64}")
_HEX = re.compile(r"0x([0-9a-fA-F]{2})*")
_UINT256 = 2**256


def challenge(quote: Quote, reason: str | None, version: int) -> Challenge:
    """Return the 402: spec §2.4 in the body, the x402 v2 challenge in `PAYMENT-REQUIRED`.

    With `version` 1, the first entry names the token's address as its asset: x402 v1 clients sign
    for the asset of the first entry that they can pay, and cannot sign for an asset "USDC".
    """
    token = checksum_address(quote.network.token)
    named = _build_entry_v1(quote, token)
    entries = [named | {"asset": token}, named] if version == 1 else [named]
    price = f"{quote.price_units / 10**6:.6f}".rstrip("0").rstrip(".")
    plain = f"Payment required: {price} USDC on {quote.network.name} to {quote.wallet}"
    body = {"x402Version": 1, "error": reason or plain, "accepts": entries}
    header = {
        "x402Version": 2,
        "error": reason or "Payment required",
        "resource": {
            "url": quote.resource_url,
            "description": quote.endpoint.title,
            "mimeType": "application/json",
        },
        "accepts": [
            {
                "scheme": "exact",
                "network": quote.network.caip2,
                "asset": token,
                "amount": str(quote.price_units),
                "payTo": quote.wallet,
                "maxTimeoutSeconds": MAX_TIMEOUT_S,
                "extra": _build_domain(quote),
            }
        ],
        "extensions": {},
    }
    return Challenge(body=body, headers={"PAYMENT-REQUIRED": encode(header)})


def _build_entry_v1(quote: Quote, token: str) -> dict[str, Any]:
    return {
        "scheme": "exact",
        "network": quote.network.name,
        "asset": "USDC",
        "amount": str(quote.price_units),
        "recipient": quote.wallet,
        "maxAmountRequired": str(quote.price_units),
        "payTo": quote.wallet,
        "resource": quote.resource_url,
        "description": quote.endpoint.title,
        "mimeType": "application/json",
        "maxTimeoutSeconds": MAX_TIMEOUT_S,
        "outputSchema": {
            "input": {"type": "http", "method": "POST", "bodyType": "json", "bodyFields": {}}
        },
        "extra": _build_domain(quote) | {"assetAddress": token},
    }


def _build_domain(quote: Quote) -> dict[str, str]:
    return {"name": quote.network.token_name, "version": quote.network.token_version}


def receipt(proof: Proof, payment: Payment, network: str) -> Mapping[str, str]:
    """Return the header that names the transaction of the settlement."""
    name = "X-PAYMENT-RESPONSE" if proof.version == 1 else "PAYMENT-RESPONSE"
    answer = {
        "success": True,
        # Empty while the outcome is unknown.
        "transaction": payment.paid_tx or "",
        "network": network,
        "payer": checksum_address(payment.payer),
    }
    return {name: encode(answer)}


def encode(value: Mapping[str, Any]) -> str:
    """Return Base64 of JSON."""
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()


def decode(header: str) -> Proof:
    """Decode a payment header of either version.

    Raises `PaymentRequired`: `invalid_payload`, `invalid_x402_version`.
    """
    envelope = _read_object(_load_json(header))
    version = envelope.get("x402Version")
    if type(version) is not int or version not in (1, 2):
        raise PaymentRequired("invalid_x402_version")
    terms = envelope if version == 1 else _read_object(envelope.get("accepted"))
    payload = _read_object(envelope.get("payload"))
    return Proof(
        version=version,
        scheme=_read_text(terms.get("scheme")),
        network=_read_text(terms.get("network")),
        asset=_read_text(terms.get("asset")) if version == 2 else None,  # noqa: PLR2004 - x402 v2
        amount=str(_read_integer(terms.get("amount"))) if version == 2 else None,  # noqa: PLR2004
        pay_to=_read_text(terms.get("payTo")) if version == 2 else None,  # noqa: PLR2004
        authorization=_read_authorization(payload),
    )


def _load_json(header: str) -> Any:
    """Return the JSON in standard or URL-safe Base64, with or without padding."""
    compact = header.strip().rstrip("=").replace("-", "+").replace("_", "/")
    if len(compact) > MAX_HEADER_BYTES * 4 // 3 + 4:
        raise PaymentRequired("invalid_payload")
    try:
        raw = base64.b64decode(compact + "=" * (-len(compact) % 4), validate=True)
        return json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, binascii.Error, RecursionError):
        raise PaymentRequired("invalid_payload") from None


def _refuse_constant(constant: str) -> None:
    # NaN and Infinity are not JSON.
    raise ValueError(constant)


def _read_authorization(payload: Mapping[str, Any]) -> Authorization:
    signed = _read_object(payload.get("authorization"))
    return Authorization(
        sender=_read_hex(signed.get("from"), _ADDRESS),
        recipient=_read_hex(signed.get("to"), _ADDRESS),
        value_units=_read_integer(signed.get("value")),
        valid_after=_read_integer(signed.get("validAfter")),
        valid_before=_read_integer(signed.get("validBefore")),
        nonce=_read_hex(signed.get("nonce"), _BYTES32),
        signature=bytes.fromhex(_read_hex(payload.get("signature"), _HEX)[2:]),
    )


def _read_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise PaymentRequired("invalid_payload")
    return value


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise PaymentRequired("invalid_payload")
    return value


def _read_hex(value: Any, pattern: re.Pattern[str]) -> str:
    """Return a hex string in lower case, with `0x` in front."""
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise PaymentRequired("invalid_payload")
    return value.lower()


def _read_integer(value: Any) -> int:
    """Return a uint256 from a JSON number, or from decimal digits in a string."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 78:  # noqa: PLR2004 - digits of 2²⁵⁶
        value = int(value)
    if type(value) is not int or not 0 <= value < _UINT256:
        raise PaymentRequired("invalid_payload")
    return value
