"""The baselines of the HTTP part: one bare route, with the gateway's Hypercorn settings."""

import asyncio
import sys
from typing import Any

import uvloop
from hypercorn.asyncio import serve
from quart import Quart

from gateway.web.server.hypercorn_server import hypercorn_config
from gateway.web.server.serve import listen


def quart_app() -> Quart:
    """Return an app with a single route, which returns a small dict."""
    app = Quart("bare")

    @app.route("/bare", methods=["GET", "POST"])
    async def bare() -> dict[str, str]:
        return {"status": "ok"}

    return app


async def asgi_app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Send a small body, without a framework."""
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    headers = [(b"content-type", b"application/json"), (b"content-length", b"15")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"status":"ok"}'})


def main() -> None:
    kind, port = sys.argv[1:]
    app: Any = {"quart": quart_app, "asgi": lambda: asgi_app}[kind]()
    config = hypercorn_config(listen(f"127.0.0.1:{port}"))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(app, config))


if __name__ == "__main__":
    main()
