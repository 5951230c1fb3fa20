"""The baselines: one bare route, with the gateway's Hypercorn settings.

`plain`, the baseline of a start, has Hypercorn's own settings and imports nothing of the gateway.
"""

import asyncio
import sys
from typing import Any

import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart


def quart_app() -> Quart:
    """Return an app with a single route, which returns a small dict."""
    app = Quart("bare")

    @app.route("/api/health")
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


def _config(kind: str, bind: str) -> Config:
    if kind == "plain":
        config = Config()
        config.bind = [bind]
        return config
    from gateway.web.server.hypercorn_server import hypercorn_config
    from gateway.web.server.serve import listen

    return hypercorn_config(listen(bind))


def main() -> None:
    kind, port = sys.argv[1:]
    app: Any = asgi_app if kind == "asgi" else quart_app()
    config = _config(kind, f"127.0.0.1:{port}")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(app, config))


if __name__ == "__main__":
    main()
