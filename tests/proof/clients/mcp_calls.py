"""Purchases by MCP tools, converted to the equivalent purchases over HTTP."""

import base64
import json
from collections.abc import Sequence

from tests.proof.clients.tap import Exchange

_TOOL = "sandbox_image"


def purchases(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """Return each tool call as an exchange: 402 if it asked for money, 200 after it."""
    calls = [
        (one, _call(one))
        for one in exchanges
        if one.target.rstrip("/") == "/mcp" and one.method == "POST"
    ]
    return [_unpacked(one, call) for one, call in calls if call.get("name") == _TOOL]


def _call(one: Exchange) -> dict:
    message = json.loads(one.sent)
    return message["params"] if message.get("method") == "tools/call" else {}


def _unpacked(one: Exchange, call: dict) -> Exchange:
    # In every revision; `structuredContent` has the same if the revision knows it.
    result = json.loads(json.loads(one.body)["result"]["content"][0]["text"])
    payment = call.get("_meta", {}).get("x402/payment")
    payments = {}
    if isinstance(payment, str):
        payments["_meta, Base64"] = payment
    elif payment is not None:
        payments["_meta"] = base64.b64encode(json.dumps(payment).encode()).decode()
    status = 402 if "accepts" in result else one.status
    return Exchange(one.method, one.target, payments, status, json.dumps(result).encode())
