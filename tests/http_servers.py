"""Serves a started app on a real socket, by each of the gateway's HTTP servers."""

from gateway.web.server.hypercorn_server import hypercorn_config, serve_guarded
from gateway_uvicorn.server import serve_started


async def serve_by_hypercorn(app, listener, stop) -> None:
    async def without_lifespan(scope, receive, send):
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    config = hypercorn_config(listener)
    config.errorlog = None
    await serve_guarded(without_lifespan, config, stop)


# By the value of GATEWAY_SERVER; each takes an app, a listening socket, and a stop event.
SERVE = {"hypercorn": serve_by_hypercorn, "uvicorn": serve_started}
