"""Serves an app by Hypercorn, the default server, behind a guard for each connection."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.utils import LifespanFailureError
from quart import Quart

from gateway.web.front.current import FAILURE
from gateway.web.server.connection_guard import Guard
from gateway.web.server.connection_limits import (
    BACKLOG,
    GRACE_S,
    IDLE_S,
    KEEP_ALIVE_S,
    MAX_HEAD_BYTES,
    MAX_REQUESTS,
    STOP_S,
)
from gateway.web.server.guarded_app import guarded


async def run(app: Quart, listener: socket.socket, stop: asyncio.Event) -> None:
    """Start the app, serve it until `stop` is set, and end it; takes the socket over.

    Raises what stopped the app's start.
    """
    try:
        await serve_guarded(app.asgi_app, hypercorn_config(listener), stop)
    except LifespanFailureError as error:
        raise app.extensions.get(FAILURE, error) from None


async def serve_guarded(app: Any, config: Config, stop: asyncio.Event) -> None:
    """Serve an ASGI app until `stop` is set, with a guard in front of each connection."""
    guards: set[Guard] = set()

    async def wait_for_stop() -> None:
        await stop.wait()
        for guard in guards:
            guard.stop()

    # Hypercorn's types describe an ASGI app by its shape, and Quart's does not fit.
    asgi: Any = guarded(app)
    with _guarding(int(config.bind[0].removeprefix("fd://")), guards):
        await serve(asgi, config, shutdown_trigger=wait_for_stop, mode="asgi")


@contextlib.contextmanager
def _guarding(listener_fd: int, guards: set[Guard]) -> Iterator[None]:
    """Put a guard in front of each connection to one listening socket.

    `asyncio.start_server`, which Hypercorn calls, asks the event loop for its server.
    """
    loop: Any = asyncio.get_running_loop()
    create_server = loop.create_server

    async def create_guarded(
        make_protocol: Callable[[], Any], *parts: Any, sock: Any = None, **options: Any
    ) -> Any:
        if sock is None or sock.fileno() != listener_fd:
            return await create_server(make_protocol, *parts, sock=sock, **options)
        # A child that outlives a killed gateway would keep the port busy for the next gateway.
        sock.set_inheritable(False)

        def make_guard() -> Guard:
            return Guard(make_protocol(), guards)

        return await create_server(make_guard, *parts, sock=sock, **options)

    loop.create_server = create_guarded
    try:
        yield
    finally:
        loop.create_server = create_server


def hypercorn_config(listener: socket.socket) -> Config:
    """Return Hypercorn's settings for a socket that listens already; they own the socket."""
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.backlog = BACKLOG
    # A guard closes idle connections before, and bounds all other times.
    config.keep_alive_timeout = KEEP_ALIVE_S + IDLE_S
    config.read_timeout = None
    config.keep_alive_max_requests = MAX_REQUESTS
    # h11's own view of the headers takes ten times as long to read.
    config.h11_pass_raw_headers = True
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    # Without end: a guard hands on a body as it is read.
    config.max_app_queue_size = 0
    config.graceful_timeout = GRACE_S
    config.shutdown_timeout = STOP_S
    config.include_server_header = False
    # The app writes its own line for each request, without the query string.
    config.accesslog = None
    config.errorlog = "-"
    config.loglevel = "WARNING"
    return config
