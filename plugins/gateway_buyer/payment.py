"""Signs a gateway's terms: one EIP-3009 authorization, as an x402 version 2 payment."""

import base64
import json
import secrets
from typing import Any

from gateway.chain.keys import address_of
from gateway.chain.signatures import sign_authorization
from gateway.domain import Authorization
from gateway_buyer.terms import Terms


def authorize(terms: Terms, secret: bytes, *, now: float) -> Authorization:
    """Return the signed authorization of one payment; `now` is in Unix seconds.

    The EIP-712 domain is that of the network's USDC, whatever name the gateway gave.
    """
    unsigned = Authorization(
        sender=address_of(secret),
        recipient=terms.payee.lower(),
        value_units=terms.price_units,
        valid_after=0,
        valid_before=int(now) + terms.valid_s,
        nonce="0x" + secrets.token_hex(32),
        signature=b"",
    )
    return sign_authorization(secret, unsigned, terms.network)


def payment_header(terms: Terms, signed: Authorization) -> str:
    """Return the value of `PAYMENT-SIGNATURE`."""
    payload: dict[str, Any] = {
        "x402Version": 2,
        "accepted": terms.accepted,
        "payload": {
            "signature": "0x" + signed.signature.hex(),
            "authorization": {
                "from": signed.sender,
                "to": signed.recipient,
                "value": str(signed.value_units),
                "validAfter": str(signed.valid_after),
                "validBefore": str(signed.valid_before),
                "nonce": signed.nonce,
            },
        },
    }
    return base64.b64encode(json.dumps(payload, separators=(",", ":")).encode()).decode()
