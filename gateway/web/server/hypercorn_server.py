"""Serves an app by Hypercorn, the default server."""

import asyncio
import socket
import time
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config, Sockets
from hypercorn.utils import LifespanFailureError
from quart import Quart

from gateway.web.front.current import FAILURE
from gateway.web.server.connection_limits import BACKLOG, GRACE_S, IDLE_S, KEEP_ALIVE_S, STOP_S
from gateway.web.server.hypercorn_connection import watch_lightly
from gateway.web.server.hypercorn_protocol import speak_http1_only


async def run(app: Quart, listener: socket.socket, stop: asyncio.Event) -> None:
    """Start the app, serve it until `stop` is set, and end it; takes the socket over.

    Raises what stopped the app's start.
    """
    speak_http1_only()
    watch_lightly()
    # Hypercorn's types describe an ASGI app by its shape, and Quart's does not fit.
    asgi: Any = app.asgi_app
    try:
        await serve(asgi, hypercorn_config(listener), shutdown_trigger=stop.wait)
    except LifespanFailureError as error:
        raise app.extensions.get(FAILURE, error) from None


class _Config(Config):
    """Hypercorn's settings, where they are not enough."""

    _made_at = 0
    _made: list[tuple[bytes, bytes]] = []  # noqa: RUF012 - never changed

    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        """Return what Hypercorn adds to each answer: the date, made anew each second."""
        second = int(time.time())
        if second != self._made_at:
            self._made_at, self._made = second, super().response_headers(protocol)
        return self._made

    def create_sockets(self) -> Sockets:
        """Return Hypercorn's sockets, closed in every child process.

        A child that outlives a killed gateway would keep the port busy for the next gateway.
        """
        sockets = super().create_sockets()
        for listener in sockets.insecure_sockets:
            listener.set_inheritable(False)
        return sockets


def hypercorn_config(listener: socket.socket) -> Config:
    """Return Hypercorn's settings for a socket that listens already; they own the socket."""
    config = _Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.backlog = BACKLOG
    config.keep_alive_timeout = KEEP_ALIVE_S
    config.keep_alive_max_requests = 10_000
    # From a request's head on. Hypercorn counts it in the middle of an answer, too, and a request
    # may wait half a minute for its task (`?wait=30`).
    config.read_timeout = 2 * IDLE_S
    config.graceful_timeout = GRACE_S
    config.shutdown_timeout = STOP_S
    config.include_server_header = False
    # The app writes its own line for each request, without the query string.
    config.accesslog = None
    config.errorlog = "-"
    config.loglevel = "WARNING"
    return config
