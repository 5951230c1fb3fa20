"""Serves an app by uvicorn, the faster server (`GATEWAY_SERVER=uvicorn`, extra `fast`)."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

from quart import Quart
from uvicorn import Config, Server

from gateway.web.server.connection_limits import BACKLOG, GRACE_S, KEEP_ALIVE_S, STOP_S
from gateway.web.server.open_connections import Connections
from gateway_uvicorn.protocol import GuardedProtocol


async def run(app: Quart, listener: socket.socket, stop: asyncio.Event) -> None:
    """Start the app, serve it until `stop` is set, and shut it down; takes over the socket.

    Raises the error that stopped startup.
    """
    await app.startup()
    try:
        await serve_started(app.asgi_app, listener, stop)
    finally:
        async with asyncio.timeout(STOP_S):
            await app.shutdown()


async def serve_started(app: Any, listener: socket.socket, stop: asyncio.Event) -> None:
    """Serve a started ASGI app until `stop` is set; takes over the socket."""
    server = _Server(uvicorn_config(app))
    stopping = asyncio.create_task(_stop(server, stop), name="stop-uvicorn")
    try:
        await server.serve(sockets=[listener])
    finally:
        stopping.cancel()


async def _stop(server: Server, stop: asyncio.Event) -> None:
    await stop.wait()
    server.should_exit = True


class _Server(Server):
    """uvicorn's server without its signal handlers: the gateway has its own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers."""
        yield


def uvicorn_config(app: Any) -> Config:
    """Return uvicorn's settings for an ASGI app that its caller starts and shuts down."""
    logging.getLogger("uvicorn.error").addFilter(_is_no_cancellation)
    return Config(
        app,
        # A class of its own, because uvicorn makes one instance per connection.
        http=type("CountedProtocol", (GuardedProtocol,), {"open_connections": Connections()}),
        ws="none",
        interface="asgi3",
        lifespan="off",
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACE_S,
        # Clients can forge `X-Forwarded-For`; GATEWAY_CLIENT_IP_HEADER names the trusted header.
        proxy_headers=False,
        server_header=False,
        # Otherwise uvicorn reads WEB_CONCURRENCY.
        workers=1,
        # The app logs requests itself, without the query string.
        access_log=False,
        log_config=None,
        log_level="error",
    )


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Drop tracebacks of requests that shutdown cancelled."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, asyncio.CancelledError)
