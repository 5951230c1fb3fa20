"""Signed x402 payments for the instant endpoint, prepared before they are sent."""

import base64
import functools
import json
import os
import time

from gateway_bench import INSTANT
from load import NextRequest, request_bytes
from place import WALLET

from gateway.chain.keys import address_of
from gateway.chain.smart_wallets import sign_digest
from gateway.domain import Authorization
from gateway.domain.eip3009 import BASE, authorization_digest, keccak

_VALID_S = 540  # the gateway takes up to 600
_BODY = '{"prompt":"A lighthouse at dusk"}'


@functools.cache
def _buyer(number: int) -> tuple[bytes, str]:
    key = keccak(b"buyer %d" % number)
    return key, address_of(key)


def signed_request(buyer: int) -> bytes:
    """Return a purchase with its own payment, by x402 v1."""
    key, address = _buyer(buyer)
    signed = {
        "sender": address,
        "recipient": WALLET,
        "value_units": INSTANT.price_units,
        "valid_after": 0,
        "valid_before": int(time.time()) + _VALID_S,
        "nonce": "0x" + os.urandom(32).hex(),
    }
    digest = authorization_digest(Authorization(**signed, signature=b""), BASE)
    signature = sign_digest(key, digest)
    payload = {
        "signature": "0x" + signature.hex(),
        "authorization": {
            "from": signed["sender"],
            "to": signed["recipient"],
            "value": str(signed["value_units"]),
            "validAfter": str(signed["valid_after"]),
            "validBefore": str(signed["valid_before"]),
            "nonce": signed["nonce"],
        },
    }
    envelope = {"x402Version": 1, "scheme": "exact", "network": BASE.name, "payload": payload}
    header = base64.b64encode(json.dumps(envelope).encode()).decode()
    return request_bytes(f"/api/x402/{INSTANT.slug}", _BODY, {"X-PAYMENT": header})


def purchases(buyer: int, ready: int) -> NextRequest:
    """Return a function for a buyer's next purchase; `ready` of them are signed in advance."""
    stock = [signed_request(buyer) for _ in range(ready)]
    return lambda: stock.pop() if stock else signed_request(buyer)
