"""Serves an app by Hypercorn, the default server, with a guard for each connection."""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.utils import LifespanFailureError
from quart import Quart

from gateway.web.front import Asgi, Message, Receive, Send
from gateway.web.front.answers import WHOLE_ANSWER
from gateway.web.front.current import FAILURE
from gateway.web.server.connection_guard import CONNECTION, Guard
from gateway.web.server.connection_limits import (
    BACKLOG,
    GRACE_S,
    IDLE_S,
    KEEP_ALIVE_S,
    MAX_HEAD_BYTES,
    MAX_REQUESTS,
    OUTBOX,
    STOP_S,
    WRITE_BUFFER_BYTES,
)
from gateway.web.server.dates import date_line
from gateway.web.server.open_connections import Connections

# Statuses without a body.
_BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_CLOSE = (b"connection", b"close")


async def run(app: Quart, listener: socket.socket, stop: asyncio.Event) -> None:
    """Start the app, serve it until `stop` is set, and shut it down; takes over the socket.

    Raises the error that stopped startup.
    """
    try:
        await serve_guarded(app.asgi_app, hypercorn_config(listener), stop)
    except LifespanFailureError as error:
        raise app.extensions.get(FAILURE, error) from None


async def serve_guarded(app: Any, config: Config, stop: asyncio.Event) -> None:
    """Serve an ASGI app until `stop` is set, with a guard for each connection."""
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
    """Wrap the protocol of each connection to one listening socket in a guard.

    Hypercorn calls `asyncio.start_server`, which calls `loop.create_server`.
    """
    loop: Any = asyncio.get_running_loop()
    create_server = loop.create_server
    connections = Connections()

    async def create_guarded(
        make_protocol: Callable[[], Any], *parts: Any, sock: Any = None, **options: Any
    ) -> Any:
        if sock is None or sock.fileno() != listener_fd:
            return await create_server(make_protocol, *parts, sock=sock, **options)
        # Otherwise a child that outlives a killed gateway keeps the port busy.
        sock.set_inheritable(False)

        def make_guard() -> Guard:
            return Guard(make_protocol(), guards, connections)

        return await create_server(make_guard, *parts, sock=sock, **options)

    loop.create_server = create_guarded
    try:
        yield
    finally:
        loop.create_server = create_server


def hypercorn_config(listener: socket.socket) -> Config:
    """Return Hypercorn's settings for a listening socket, which they own."""
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.backlog = BACKLOG
    # Guards enforce the timeouts earlier.
    config.keep_alive_timeout = KEEP_ALIVE_S + IDLE_S
    config.read_timeout = None
    config.keep_alive_max_requests = MAX_REQUESTS
    # h11's own header type takes ten times as long to read.
    config.h11_pass_raw_headers = True
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    # Unlimited: the guard passes on a body as the app reads it.
    config.max_app_queue_size = 0
    config.graceful_timeout = GRACE_S
    config.shutdown_timeout = STOP_S
    config.include_server_header = False
    # The app logs requests itself, without the query string.
    config.accesslog = None
    config.errorlog = "-"
    config.loglevel = "WARNING"
    return config


def guarded(app: Asgi) -> Asgi:
    """Wrap an app so that each connection's `Guard` learns of reads and answers."""

    async def guarded_app(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        headers = [(name.lower(), value) for name, value in scope["headers"]]
        # A copy: the server's own would keep the exchange in a reference cycle.
        scope = {**scope, "headers": headers}
        exchange = _Exchange(CONNECTION.get(), scope, receive, send)
        scope["extensions"] = {WHOLE_ANSWER: exchange.write_whole, OUTBOX: exchange.guard.outbox}
        try:
            await app(scope, exchange.receive, exchange.send)
        finally:
            if exchange.is_written:
                await exchange.notify_server()

    return guarded_app


def _is_event_stream(start: Message) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in start.get("headers", ())
    )


class _Exchange:
    """One request and its answer."""

    # Whether an answer was written without the server.
    is_written = False
    _is_over = False

    def __init__(self, guard: Guard, scope: Message, receive: Receive, send: Send) -> None:
        self.guard = guard
        self._method: str = scope["method"]
        # Whether the client may send another request.
        self._is_kept = scope["http_version"] == "1.1" and all(
            name != b"connection" or value.lower() == b"keep-alive"
            for name, value in scope["headers"]
        )
        self._receive = receive
        self._send = send
        # Messages that the app has not got yet.
        self._received: deque[Message] = deque()
        self._is_read = False
        # Two tasks may read at the same time. One alone would get the last message.
        self._reading = asyncio.Lock()

    async def receive(self) -> Message:
        """Return the next message of the request, then `http.disconnect`."""
        if not (self._received or self._is_read):
            self.guard.request_body()
            await self._receive_next()
        if self._received:
            return self._received.popleft()
        if not self._is_over:
            await self.guard.wait_for_disconnect()
        return {"type": "http.disconnect"}

    async def _receive_next(self) -> None:
        async with self._reading:
            if self._is_read:
                return
            message = await self._receive()
            self._is_read = not message.get("more_body", False)
            self._is_over |= message["type"] == "http.disconnect"
            self._received.append(message)

    async def send(self, message: Message) -> None:
        """Send a message of the answer."""
        if message["type"] == "http.response.start":
            await self._read_to_end()
            if self.guard.is_body_missing or self.guard.is_stopping:
                # The rest of the request is dropped, and the connection closed.
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE]}
            self.guard.begin_answer(is_event_stream=_is_event_stream(message))
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._end()

    async def _read_to_end(self) -> None:
        """Read the rest of the request that has arrived, so that the connection is kept."""
        if self.guard.body is None or self.guard.body.is_empty:
            return
        self.guard.request_body()
        while not (self._is_read or self.guard.is_body_missing):
            await self._receive_next()

    def write_whole(self, status: int, lines: bytes, body: bytes) -> bool:
        """Write an answer in one piece; return False if the server must handle it.

        The server would check each header again, which costs more than all the rest.
        """
        # A longer answer must wait for its client.
        is_short = len(body) <= WRITE_BUFFER_BYTES and status not in _BODILESS
        has_body = self._method != "HEAD"
        if not (is_short and has_body and self._is_kept and self.guard.may_write_whole()):
            return False
        first = b"HTTP/1.1 %d \r\n" % status
        self.guard.write(b"".join((first, lines, date_line(), b"\r\n", body)))
        self.guard.is_written = self.is_written = True
        return True

    async def notify_server(self) -> None:
        """Report a written answer to the server; the guard drops the server's bytes for it.

        So the server gets the status that needs no header, which it would check.
        """
        await self._send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT})
        await self._send({"type": "http.response.body"})
        self._end()

    def _end(self) -> None:
        self._is_over = True
        self.guard.end_answer()
