"""No framework and no checks: uvicorn's own cost for responses of the gateway's size."""

import json
import sys
from pathlib import Path
from typing import Any

import uvicorn

PORT = int(sys.argv[1])
TERMS = json.loads((Path(__file__).parent / "terms.json").read_text())
# As large as the gateway's: the challenge in the header, and again in the body.
_REQUIRED = b"e" * 1500
_CHALLENGE = b" " * 1800
_TASK = json.dumps(TERMS["task"]).encode()


def _answer(method: str, path: str) -> tuple[int, bytes]:
    if method == "POST":
        return 402, _CHALLENGE
    return 200, b'{"status":"ok"}' if path == "/api/health" else _TASK


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Read the whole body, then respond."""
    if scope["type"] != "http":
        return
    while (await receive()).get("more_body"):
        pass
    status, body = _answer(scope["method"], scope["path"])
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"payment-required", _REQUIRED if status == 402 else b"-"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


uvicorn.run(
    app,
    host="127.0.0.1",
    port=PORT,
    loop="uvloop",
    http="httptools",
    access_log=False,
    lifespan="off",
    log_level="warning",
)
