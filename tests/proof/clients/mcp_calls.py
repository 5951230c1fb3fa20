"""Purchases by tools of MCP, told as the purchases over HTTP that they stand for."""

import base64
import json
from collections.abc import Sequence

from tests.proof.clients.tap import Exchange

_TOOL = "sandbox_image"


def purchases(heard: Sequence[Exchange]) -> list[Exchange]:
    """Return each call of the tool as an exchange: 402 where it asked for money, 200 after it."""
    calls = [
        (one, _call(one))
        for one in heard
        if one.target.rstrip("/") == "/mcp" and one.method == "POST"
    ]
    return [_told(one, call) for one, call in calls if call.get("name") == _TOOL]


def _call(one: Exchange) -> dict:
    message = json.loads(one.sent)
    return message["params"] if message.get("method") == "tools/call" else {}


def _told(one: Exchange, call: dict) -> Exchange:
    # Of every revision; `structuredContent` has the same where the revision knows it.
    result = json.loads(json.loads(one.body)["result"]["content"][0]["text"])
    payment = call.get("_meta", {}).get("x402/payment")
    payments = {}
    if isinstance(payment, str):
        payments["_meta, Base64"] = payment
    elif payment is not None:
        payments["_meta"] = base64.b64encode(json.dumps(payment).encode()).decode()
    status = 402 if "accepts" in result else one.status
    return Exchange(one.method, one.target, payments, status, json.dumps(result).encode())
