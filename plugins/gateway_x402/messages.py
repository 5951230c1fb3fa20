"""The JSON of x402: the challenge, the payment header that answers it, and the receipt.

Source: x402 specification v1 and v2, scheme `exact` on EVM.
"""

import base64
import functools
import json
import re
import textwrap
from collections.abc import Mapping
from typing import Any

import attrs

from gateway import Challenge, Endpoint, Payment, PaymentRequired, Proof, Quote
from gateway.domain.eip3009 import checksum_address
from gateway.domain.listing import BAZAAR, UPFRONT, bazaar_of, resource_of
from gateway.domain.refund_promise import REFUND_POLICY
from gateway.domain.signed_header import (
    load_json,
    read_authorization,
    read_integer,
    read_object,
    read_text,
)
from gateway.errors import ValidationError

MAX_TIMEOUT_S = 300
# If the head of a response is longer than a memory page, nginx returns a 502. The other headers
# take 1,200 bytes, half of them for the MPP challenge. A longer challenge leaves out first the
# request's fields, then all of the description but its first sentence and the disclosure of a
# fallback, then the response. /openapi.json has all of it.
_MAX_CHARS = 2_780
# Written by `name_fallback`.
_DISCLOSURE = re.compile(r"In an outage of its provider, .+? may make it\.")
# An abbreviation such as "e.g." ends no sentence, nor do the first words.
_SENTENCE_END = re.compile(r"(?<=\w{3}[.!?])\s+(?=[A-Z])")
_MIN_SENTENCE_CHARS, _MAX_SENTENCE_CHARS = 40, 200
_IDENTIFIER = "payment-identifier"
_MIN_ID_CHARS, _MAX_ID_CHARS = 16, 128
_ID = re.compile(rf"[A-Za-z0-9_-]{{{_MIN_ID_CHARS},{_MAX_ID_CHARS}}}")
# Source: x402 specs/extensions/payment_identifier.md.
_IDENTIFIER_EXTENSION = {
    "info": {"required": False},
    "schema": {
        "type": "object",
        "properties": {
            "required": {"type": "boolean"},
            "id": {
                "type": "string",
                "pattern": f"^[a-zA-Z0-9_-]{{{_MIN_ID_CHARS},{_MAX_ID_CHARS}}}$",
            },
        },
        "required": ["required"],
    },
}


@attrs.frozen(kw_only=True, eq=False, repr=False)
class X402Proof(Proof):
    """An x402 payment header, decoded but not verified."""

    # 1 or 2.
    version: int
    scheme: str
    network: str

    # The next three are None in version 1.
    asset: str | None
    amount: str | None
    pay_to: str | None


def challenge(quote: Quote, reason: str | None, version: int, *, name: str = "") -> Challenge:
    """Return the 402: spec §2.4 in the body, the x402 v2 challenge in `PAYMENT-REQUIRED`.

    The body has a second entry with the token's address as asset: x402 v1 clients cannot sign for
    an asset "USDC", and x402-fetch and x402-axios search the entries for that address. Clients that
    take the first entry ask for `version` 1, which reverses the order. `name` is the gateway's. If
    nothing can be settled there are no entries, so that no buyer signs in vain.
    """
    token = checksum_address(quote.network.token)
    named = _build_entry_v1(quote, token)
    entries = [named, named | {"asset": token}]
    if version == 1:
        entries.reverse()
    can_settle = quote.selling == "everything"
    body = {
        "x402Version": 1,
        "error": reason or _describe_price(quote),
        "accepts": entries if can_settle else [],
        **quote.network.describe_money(),
    }
    extensions = {BAZAAR: bazaar_of(quote.endpoint), _IDENTIFIER: _IDENTIFIER_EXTENSION}
    header = {
        "x402Version": 2,
        "error": reason or ". ".join(filter(None, ("Payment required", quote.network.notice))),
        "resource": resource_of(quote.endpoint, quote.resource_url, name),
        "accepts": [_build_entry_v2(quote, token)] if can_settle else [],
        "extensions": extensions,
    }
    if quote.refund is not None:
        extensions[REFUND_POLICY] = quote.refund.extension()
    encoded = _encode_briefly(header, quote.endpoint)
    return Challenge(body=body, headers={"PAYMENT-REQUIRED": encoded})


def _describe_price(quote: Quote) -> str:
    """Return the sentences of a 402 for a reader: the price, and what becomes of it."""
    price = f"{quote.price_units / 10**6:.6f}".rstrip("0").rstrip(".")
    network, refund = quote.network, quote.refund.sentence if quote.refund is not None else ""
    asked = f"Payment required: {price} {network.money} on {network.name} to {quote.wallet}."
    return " ".join(filter(None, (asked, refund, network.notice)))


def _encode_briefly(header: dict[str, Any], endpoint: Endpoint) -> str:
    """Encode a challenge. If it is too long, it describes less of request, offer and response."""
    full = header["resource"]["description"]
    brief = _keep_first_sentence(full)
    no_fields = {"has_fields": False}
    no_output = no_fields | {"has_output": False}
    encoded = encode(header)
    # Without the response, there may be room for the whole description.
    for about, parts in (
        (full, no_fields),
        (brief, no_fields),
        (full, no_output),
        (brief, no_output),
    ):
        if len(encoded) <= _MAX_CHARS:
            break
        header["resource"]["description"] = about
        header["extensions"][BAZAAR] = bazaar_of(endpoint, **parts)
        encoded = encode(header)
    return encoded


def _keep_first_sentence(about: str) -> str:
    """Return the first sentence of a description, and who else may make it."""
    disclosure = _DISCLOSURE.search(about)
    own = _DISCLOSURE.sub("", about).strip()
    end = _SENTENCE_END.search(own, _MIN_SENTENCE_CHARS)
    first = own[: end.start()] if end else own
    first = textwrap.shorten(first, _MAX_SENTENCE_CHARS, placeholder="…")
    return f"{first} {disclosure[0]}" if disclosure else first


def _build_entry_v2(quote: Quote, token: str) -> dict[str, Any]:
    return {
        "scheme": "exact",
        "network": quote.network.caip2,
        "asset": token,
        "amount": str(quote.price_units),
        "payTo": quote.wallet,
        "maxTimeoutSeconds": MAX_TIMEOUT_S,
        "extra": _build_domain(quote) | UPFRONT,
    }


def _build_entry_v1(quote: Quote, token: str) -> dict[str, Any]:
    # The description names the fallback.
    about = quote.endpoint.description if quote.names_model else ""
    return {
        "scheme": "exact",
        "network": quote.network.name,
        "asset": "USDC",
        "amount": str(quote.price_units),
        "recipient": quote.wallet,
        "maxAmountRequired": str(quote.price_units),
        "payTo": quote.wallet,
        "resource": quote.resource_url,
        "description": about or quote.endpoint.title,
        "mimeType": "application/json",
        "maxTimeoutSeconds": MAX_TIMEOUT_S,
        "outputSchema": {
            "input": {"type": "http", "method": "POST", "bodyType": "json", "bodyFields": {}}
        },
        "extra": _build_domain(quote) | {"assetAddress": token},
    }


def _build_domain(quote: Quote) -> dict[str, str]:
    return {"name": quote.network.token_name, "version": quote.network.token_version}


def receipt(proof: X402Proof, payment: Payment, network: str) -> Mapping[str, str]:
    """Return the header that names the settlement's transaction."""
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


# A sale reads its header twice: it may be a repeat, which needs no price.
@functools.lru_cache(maxsize=32)
def decode(header: str) -> X402Proof:
    """Decode a payment header of either version.

    Raises `PaymentRequired` (`invalid_payload`, `invalid_x402_version`), and `ValidationError` for
    an identifier that breaks its specification.
    """
    envelope = read_object(load_json(header))
    version = envelope.get("x402Version")
    if type(version) is not int or version not in (1, 2):
        raise PaymentRequired("invalid_x402_version")
    terms = envelope if version == 1 else read_object(envelope.get("accepted"))
    payload = read_object(envelope.get("payload"))
    return X402Proof(
        version=version,
        scheme=read_text(terms.get("scheme")),
        network=read_text(terms.get("network")),
        asset=read_text(terms.get("asset")) if version == 2 else None,  # noqa: PLR2004 - x402 v2
        amount=str(read_integer(terms.get("amount"))) if version == 2 else None,  # noqa: PLR2004
        pay_to=read_text(terms.get("payTo")) if version == 2 else None,  # noqa: PLR2004
        authorization=read_authorization(
            read_object(payload.get("authorization")), payload.get("signature")
        ),
        idempotency_key=_read_identifier(envelope) if version == 2 else None,  # noqa: PLR2004
    )


def _read_identifier(envelope: Mapping[str, Any]) -> str | None:
    """Return the id of the extension `payment-identifier`, or None.

    Clients echo all extensions of the challenge, most of them without an id.
    """
    found: Any = envelope
    for name in ("extensions", _IDENTIFIER, "info", "id"):
        found = found.get(name) if isinstance(found, dict) else None
    if found is None:
        return None
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise ValidationError(
            f"The id of the extension {_IDENTIFIER} must have {_MIN_ID_CHARS} to {_MAX_ID_CHARS} "
            "letters, digits, hyphens and underscores."
        )
    return found
