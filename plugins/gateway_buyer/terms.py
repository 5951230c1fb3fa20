"""The price and the payee in a gateway's 402, checked before anything is signed.

Source: x402 specification v2, scheme `exact` on EVM, header `PAYMENT-REQUIRED`.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from gateway.domain.eip3009 import NETWORKS, Network, checksum_address
from gateway.domain.listing import UPFRONT
from gateway.domain.refund_promise import REFUND_POLICY, promise_in_words
from gateway_buyer.answers import shorten
from gateway_buyer.errors import NotBought

# A real one has 3,500.
_MAX_HEADER_CHARS = 64_000
# The longest validity of a signature, whatever the gateway asks for.
_MAX_VALID_S = 600
_MIN_VALID_S = 30
_AFTER, _UPFRONT = "authorization", UPFRONT["paymentFlow"]
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_AMOUNT = re.compile(r"[1-9][0-9]{0,17}")
_BY_CAIP2 = {network.caip2: network for network in NETWORKS.values()}


@attrs.frozen(kw_only=True)
class Terms:
    """A gateway's price for one generation, in a USDC that this program knows."""

    price_units: int

    # With its checksum.
    payee: str
    network: Network

    # For how many seconds the payment is valid.
    valid_s: int

    # Whether the gateway settles before it generates. False: it states that it settles afterwards.
    is_upfront: bool

    # The gateway's promise for a failed generation, in words.
    refund: str

    # The gateway's entry of `accepts`, unchanged: the payment repeats it.
    accepted: Mapping[str, Any]


def read_terms(header: str | None, refusal: str = "") -> Terms:
    """Return the first offer of a 402 that this program can pay; raises `NotBought`.

    `refusal` is the message in the body.
    """
    if header is None:
        raise NotBought(
            "The 402 has no header PAYMENT-REQUIRED: this is not x402 version 2."
            + (f" The gateway says: {refusal}" if refusal else "")
        )
    challenge, entries = _load_challenge(header)
    refund = _read_refund(challenge)
    for entry in entries:
        terms = _read_entry(entry, refund)
        if terms is not None:
            return terms
    if not entries:
        reason = shorten(_text(challenge, "error")) or refusal or "The gateway gives no reason."
        raise NotBought(f"The gateway takes no payment now: {reason}")
    asked = "; ".join(_describe(entry) for entry in entries[:3])
    raise NotBought(
        "This program cannot make the payment that the gateway asks for. It pays USDC on "
        f"{' and '.join(NETWORKS)} by the scheme exact. The gateway takes: {shorten(asked)}."
    )


def check_price(
    terms: Terms, max_units: int, *, way_out: str = "To pay that much, use --max {price}."
) -> None:
    """Raise `NotBought` if the price is above the buyer's limit. `way_out` is a hint."""
    if terms.price_units > max_units:
        price = format_usdc(terms.price_units)
        raise NotBought(
            f"The price is {price} USDC, above the limit of {format_usdc(max_units)} USDC. "
            f"Nothing was signed. {way_out.format(price=price)}"
        )


def format_usdc(units: int) -> str:
    """Return units of 10⁻⁶ USDC as a decimal number, such as `0.02`."""
    whole, fraction = divmod(units, 10**6)
    decimals = f"{fraction:06}".rstrip("0").ljust(2, "0")
    return f"{whole}.{decimals}"


def _load_challenge(header: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a challenge and the entries of its `accepts`; raises `NotBought`."""
    challenge: object = None
    if len(header) <= _MAX_HEADER_CHARS:
        try:
            challenge = json.loads(base64.b64decode(header, validate=True))
        except (ValueError, binascii.Error, RecursionError):
            challenge = None
    entries = challenge.get("accepts") if isinstance(challenge, dict) else None
    if not isinstance(challenge, dict) or not isinstance(entries, list):
        raise NotBought("The 402's header PAYMENT-REQUIRED is not an x402 challenge.")
    return challenge, [entry for entry in entries if isinstance(entry, dict)]


def _read_refund(challenge: Mapping[str, Any]) -> str:
    """Return the promise for a failed generation, in words."""
    promised: object = challenge
    for name in ("extensions", REFUND_POLICY, "info", "onFailure"):
        promised = promised.get(name) if isinstance(promised, dict) else None
    return promise_in_words(promised)


def _read_entry(entry: Mapping[str, Any], refund: str) -> Terms | None:
    """Return the terms of one entry; None if this program cannot or must not sign it."""
    network = _BY_CAIP2.get(_text(entry, "network"))
    amount, payee = _text(entry, "amount"), _text(entry, "payTo")
    if network is None or _text(entry, "scheme") != "exact":
        return None
    if _text(entry, "asset").lower() != network.token:
        return None
    if not _AMOUNT.fullmatch(amount) or not _ADDRESS.fullmatch(payee):
        return None
    extra, valid_s = entry.get("extra"), entry.get("maxTimeoutSeconds")
    method = extra.get("assetTransferMethod") if isinstance(extra, dict) else None
    # x402 has other ways to move a token, which need other signatures.
    if method not in (None, "eip3009") or type(valid_s) is not int or valid_s < _MIN_VALID_S:
        return None
    # x402's default is `authorization`. Unknown flows are refused.
    flow = extra.get("paymentFlow", _AFTER) if isinstance(extra, dict) else _AFTER
    if flow not in (_AFTER, _UPFRONT):
        return None
    return Terms(
        price_units=int(amount),
        payee=checksum_address(payee),
        network=network,
        valid_s=min(valid_s, _MAX_VALID_S),
        is_upfront=flow == _UPFRONT,
        refund=refund,
        accepted=entry,
    )


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def _describe(entry: Mapping[str, Any]) -> str:
    parts = [
        shorten(_text(entry, name)) or "?" for name in ("scheme", "network", "asset", "amount")
    ]
    return "{} on {}, asset {}, amount {}".format(*parts)
