"""An asyncio protocol between a connection and Hypercorn with size limits and timeouts.

Hypercorn gets one complete head at a time, a body as the app reads it, and the end of a connection
only between two requests. So it never waits for a client that is gone.
"""

import asyncio
import contextlib
import contextvars
from http import HTTPStatus
from typing import Any, cast

from gateway.web.server.connection_limits import (
    HALF_CLOSED_S,
    IDLE_S,
    KEEP_ALIVE_S,
    MAX_REQUESTS,
    MAX_UNREAD_BYTES,
    PIECE_BYTES,
    WRITE_BUFFER_BYTES,
    LazyTimer,
    Outbox,
)
from gateway.web.server.dates import date_line
from gateway.web.server.open_connections import Connections
from gateway.web.server.request_framing import Body, RefusedError, has_head, take_head
from gateway.web.server.server_transport import ServerTransport

# Makes any server close the connection.
_INVALID_REQUEST = b"\0\r\n\r\n"
# The current connection; tasks of server and app inherit it.
CONNECTION: contextvars.ContextVar["Guard"] = contextvars.ContextVar("connection")


class Guard(asyncio.Protocol):
    """One connection, in front of the server's protocol."""

    is_stopping = False
    # Body of the current request; None while its head is awaited.
    body: Body | None = None
    # Whether the server's output is dropped, because the answer was written already.
    is_written = False
    # Whether the client has closed its half of the connection, whether both are closed, and whether
    # it is given up, so that the app may stop.
    _is_gone = False
    _is_lost = False
    _is_given_up = False
    # Whether the answer is an event stream, which ends when the client closes its half.
    _is_event_stream = False
    # Whether the server has closed the connection.
    _is_closing = False
    # Whether further input, and the server's further output, is dropped.
    _is_ended = False
    _is_refused = False
    _is_between_requests = False
    # Whether the app awaits more of the body.
    _is_body_wanted = False
    _is_answer_started = False
    _is_reading = True
    # Whether the server paused reading, and the transport paused writing.
    _is_server_full = False
    _is_client_full = False
    # Bytes of a head that were searched for its end.
    _searched = 0
    _requests = 0
    _unread_bytes = 0
    # The head of an answer, held back until its body; and whether the next output is a head.
    _head = b""
    _is_head_next = False
    _lingering: asyncio.TimerHandle | None = None
    _half_closed: asyncio.TimerHandle | None = None

    def __init__(
        self, server: Any, guards: set["Guard"], connections: Connections | None = None
    ) -> None:
        self._server = server
        self._guards = guards
        self._connections = connections
        # Input that the server has not got yet.
        self._held = bytearray()
        # Set when the client is gone or has its answer; one event per request.
        self._disconnected: asyncio.Event | None = None

    # -- callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the server, and the timeout of the first head."""
        self._wire = cast(asyncio.Transport, transport)
        self._wire.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self.outbox = Outbox(self._wire)
        self._guards.add(self)
        self._idleness = LazyTimer(self._longest_idle_s, self._end_server)
        self._idleness.start()
        contextvars.copy_context().run(self._begin_server)
        if self._connections is not None:
            self._connections.admit(self, transport)

    def _begin_server(self) -> None:
        CONNECTION.set(self)
        self._server.connection_made(ServerTransport(self._wire, self))

    def data_received(self, data: bytes) -> None:
        """Buffer input until the server may have it."""
        if self._is_ended or self._is_closing:
            self._unread_bytes += len(data)
            if self._unread_bytes > MAX_UNREAD_BYTES:
                self._wire.abort()
            return
        self._held += data
        self._hand_on()

    def eof_received(self) -> bool:
        """Answer complete requests; return whether the connection stays open for that."""
        self._note_disconnect()
        return not self._is_closing

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """Report the end to the server as soon as it can handle it."""
        self._is_lost = True
        if self._half_closed is not None:
            self._half_closed.cancel()
        self._guards.discard(self)
        if self._connections is not None:
            self._connections.remove(self)
        self._idleness.end()
        self.outbox.end()
        self._cancel_lingering()
        if self._is_client_full:
            self.resume_writing()
        self._held.clear()
        if self._is_closing or self._is_ended:
            self._server.connection_lost(None)
        else:
            self._note_disconnect()

    def pause_writing(self) -> None:
        """Make the server wait for the client."""
        self._is_client_full = True
        self._server.pause_writing()
        self.outbox.begin_wait()

    def resume_writing(self) -> None:
        """Let the server continue."""
        self._is_client_full = False
        self._server.resume_writing()
        self.outbox.end_wait()

    @property
    def is_idle(self) -> bool:
        """Whether no complete request awaits its answer."""
        return self.body is None or self.is_body_missing

    def cut_off(self) -> None:
        """Abort the connection."""
        self._wire.abort()

    def _longest_idle_s(self) -> float:
        return KEEP_ALIVE_S if self._is_between_requests else IDLE_S

    def _note_disconnect(self) -> None:
        """Notify the app, or the server if no app is answering."""
        self._is_gone = True
        if self._is_closing or self._is_ended:
            return
        if self.body is None:
            self._end_server()
            return
        self.request_body()
        if self.is_body_missing:
            self._end_server()
        elif self._is_lost or self._is_event_stream:
            self._give_up()
        elif self._half_closed is None:
            self._await_answer()

    def _await_answer(self) -> None:
        """Give a half-closed client up if no answer begins: it may be gone altogether."""
        later = asyncio.get_running_loop().call_later
        self._half_closed = later(HALF_CLOSED_S, self._end_half_closed)

    def _end_half_closed(self) -> None:
        # Whether a client reads an answer that has begun is known without this timer.
        if self._is_answer_started or self._wire.get_write_buffer_size():
            self._await_answer()
        else:
            self._give_up()

    def _give_up(self) -> None:
        self._is_given_up = True
        if self._disconnected is not None and self.is_disconnected:
            self._disconnected.set()

    # -- requests

    @property
    def is_body_missing(self) -> bool:
        """Whether the server lacks a part of the current request."""
        return self.body is not None and not self.body.is_complete

    @property
    def is_disconnected(self) -> bool:
        """Whether the client is given up; False if it has pipelined a request."""
        return self._is_given_up and not has_head(self._held)

    async def wait_for_disconnect(self) -> None:
        """Wait until the client is gone or has its answer."""
        if not self.is_disconnected:
            if self._disconnected is None:
                self._disconnected = asyncio.Event()
            await self._disconnected.wait()

    def request_body(self) -> None:
        """Pass on the next part of the body, which the app awaits."""
        if self.is_body_missing:
            self._is_body_wanted = True
            self._hand_on()

    def _hand_on(self) -> None:
        try:
            if self.body is None:
                self._hand_on_head()
            elif self._is_body_wanted and not self.body.is_complete:
                self._hand_on_body(self.body)
        except RefusedError as error:
            self._refuse(error.status)
        self._read_on()

    def _hand_on_head(self) -> None:
        if not self._held:
            return
        found = take_head(self._held, self._searched)
        if found is None:
            self._searched = len(self._held)
            if self._is_between_requests:
                self._is_between_requests = False
                self._idleness.start_shorter()
            return
        head, body = found
        # A body that has arrived is passed on together with its head.
        data = head + body.take(self._held)
        self.body, self._searched = body, 0
        self._requests += 1
        self._is_between_requests = self._is_body_wanted = False
        self._idleness.stop()
        self._server.data_received(data)

    def _hand_on_body(self, body: Body) -> None:
        piece = body.take(self._held)
        if piece:
            self._is_body_wanted = False
            self._server.data_received(piece)

    def _read_on(self) -> None:
        is_full = self._is_server_full or len(self._held) > PIECE_BYTES
        may_read = not is_full or self._is_ended or self._is_closing
        if may_read != self._is_reading and not self._wire.is_closing():
            self._is_reading = may_read
            (self._wire.resume_reading if may_read else self._wire.pause_reading)()

    def hold_server(self, *, is_full: bool) -> None:
        """Pause or resume input to the server."""
        self._is_server_full = is_full
        self._read_on()

    def _refuse(self, status: HTTPStatus) -> None:
        """Refuse a request without the server, and read nothing after it."""
        self._is_refused = True
        if not self._is_answer_started:
            first = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
            lines = b"content-length: 0\r\nconnection: close\r\n"
            self.write(b"".join((first, lines, date_line(), b"\r\n")))
        self._end_server()

    # -- answers

    @property
    def is_closing(self) -> bool:
        """Whether the server can write no more."""
        return self._is_closing or self._wire.is_closing()

    def begin_answer(self, *, is_event_stream: bool = False) -> None:
        """Note that the app answers, and hold back the head until its body."""
        self._is_answer_started = self._is_head_next = True
        self._is_event_stream = is_event_stream
        if is_event_stream and self._is_gone:
            self._give_up()

    def may_write_whole(self) -> bool:
        """Whether an answer may bypass the server, because no other output is pending."""
        return not (
            self._is_answer_started
            or self.is_body_missing
            or self.is_stopping
            or self._is_closing
            or self._is_ended
            or self._requests >= MAX_REQUESTS
            or self._wire.get_write_buffer_size()
        )

    def write(self, data: bytes) -> None:
        """Write the server's output, or drop it after the end."""
        if self._is_ended or self.is_written or self._wire.is_closing():
            return
        if self._is_head_next:
            self._head, self._is_head_next = data, False
        elif data:
            self._head, data = b"", self._head + data
            self._wire.write(data)

    def end_answer(self) -> None:
        """Pass on the next request after a complete answer."""
        self._flush_head()
        self._is_answer_started = self.is_written = self._is_event_stream = False
        if self._disconnected is not None:
            self._disconnected.set()
            self._disconnected = None
        if self._is_closing or self._is_ended:
            return
        self.body = None
        if self._is_gone and not has_head(self._held):
            self._end_server()
            return
        self._is_between_requests = not self._held
        self._idleness.start()
        self._hand_on()
        if self.body is None and self._held:
            self._idleness.start_shorter()
        elif self._is_gone and self.is_body_missing:
            self._note_disconnect()

    # -- the end

    def _end_server(self) -> None:
        """Make the server close the connection, and drop its further output."""
        self._flush_head()
        self._is_ended = True
        self._held.clear()
        self._idleness.stop()
        if self.body is None:
            self._server.data_received(_INVALID_REQUEST)
            # The only timeout left if the server does not close.
            self._lingering = asyncio.get_running_loop().call_later(IDLE_S, self._wire.abort)
        else:
            self._server.eof_received()
        if self._is_lost:
            self._cancel_lingering()
            self._server.connection_lost(None)

    def _cancel_lingering(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()

    def close(self) -> None:
        """Close the connection, after the client has read its answer.

        If the client may be sending, only our half is closed. The rest follows when the client
        closes, after a timeout, or at shutdown.
        """
        if self._is_closing:
            return
        self._flush_head()
        self._cancel_lingering()
        is_sending = self._is_refused or self.is_body_missing or bool(self._held)
        self._is_closing = True
        self._held.clear()
        self._idleness.stop()
        if self._is_lost:
            self._server.connection_lost(None)
        elif is_sending and not (self.is_stopping or self._is_gone):
            self._linger()
        else:
            self._wire.close()

    def stop(self) -> None:
        """Close after the current answer."""
        self.is_stopping = True
        if self._is_closing:
            self._wire.close()

    def _linger(self) -> None:
        # Raised if the connection is closed already.
        with contextlib.suppress(OSError, RuntimeError):
            self._wire.write_eof()
        self._read_on()
        self._lingering = asyncio.get_running_loop().call_later(IDLE_S, self._wire.close)

    def _flush_head(self) -> None:
        """Send the head of an answer without a body."""
        self._is_head_next = False
        head, self._head = self._head, b""
        if head:
            self.write(head)
