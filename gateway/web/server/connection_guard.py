"""Stands between a connection and Hypercorn: bounds what a client sends, and how long it takes.

Hypercorn gets one whole head at a time, a body as the app reads it, and the end of a connection
only between two requests. So nothing of it waits for a client that is gone.
"""

import asyncio
import contextlib
import contextvars
import email.utils
import functools
import time
from http import HTTPStatus
from typing import Any, cast

from gateway.web.server.connection_limits import (
    IDLE_S,
    KEEP_ALIVE_S,
    MAX_REQUESTS,
    MAX_UNREAD_BYTES,
    PIECE_BYTES,
    WRITE_BUFFER_BYTES,
    LazyTimer,
    Outbox,
)
from gateway.web.server.request_framing import Body, RefusedError, has_head, take_head

# Every server closes a connection after it.
_INVALID_REQUEST = b"\0\r\n\r\n"
# Of the connection whose server or app runs; inherited by their tasks.
CONNECTION: contextvars.ContextVar["Guard"] = contextvars.ContextVar("connection")


class Guard(asyncio.Protocol):
    """One connection, in front of the server's protocol."""

    is_stopping = False
    # Of the request that is being answered; None while its head is awaited.
    body: Body | None = None
    # Whether the server's writing is dropped: the same bytes were written already.
    is_written = False
    # Whether the client has closed the connection, or its half of it; and whether all of it is.
    _is_gone = False
    _is_lost = False
    # Whether the server has closed the connection.
    _is_closing = False
    # Whether what still arrives is dropped, and what the server still writes.
    _is_ended = False
    _is_refused = False
    _is_between_requests = False
    # Whether the app waits for more of the body.
    _is_body_wanted = False
    _is_answer_begun = False
    _is_reading = True
    # Whether the server asked to stop reading, and was asked to stop writing.
    _is_server_full = False
    _is_client_full = False
    # How many bytes of a head were searched for its end.
    _searched = 0
    _requests = 0
    _unread_bytes = 0
    # The head of an answer whose body has not begun; and whether the next bytes are one.
    _head = b""
    _is_head_next = False
    _lingering: asyncio.TimerHandle | None = None

    def __init__(self, server: Any, guards: set["Guard"]) -> None:
        self._server = server
        self._guards = guards
        # What the server has not got yet.
        self._held = bytearray()
        # Set once the app's client is gone, or has its answer; made anew for each request.
        self._gone: asyncio.Event | None = None

    # -- what the connection reports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin: the first head has its time from now on."""
        self._wire = cast(asyncio.Transport, transport)
        self._wire.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self.outbox = Outbox(self._wire)
        self._guards.add(self)
        self._idleness = LazyTimer(self._longest_idle_s, self._end_server)
        self._idleness.start()
        contextvars.copy_context().run(self._begin_server)

    def _begin_server(self) -> None:
        CONNECTION.set(self)
        self._server.connection_made(_Transport(self._wire, self))

    def data_received(self, data: bytes) -> None:
        """Keep what a client sends until the server may have it."""
        if self._is_ended or self._is_closing:
            self._unread_bytes += len(data)
            if self._unread_bytes > MAX_UNREAD_BYTES:
                self._wire.abort()
            return
        self._held += data
        self._hand_on()

    def eof_received(self) -> bool:
        """Answer what has come whole; returns whether the connection stays until then."""
        self._note_gone()
        return not self._is_closing

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as asyncio calls it
        """End: the server learns of it as soon as it can end with it."""
        self._is_lost = True
        self._guards.discard(self)
        self._idleness.end()
        self.outbox.end()
        self._cancel_lingering()
        if self._is_client_full:
            # Nothing is left to wait for.
            self.resume_writing()
        self._held.clear()
        if self._is_closing or self._is_ended:
            self._server.connection_lost(None)
        else:
            self._note_gone()

    def pause_writing(self) -> None:
        """Let the server wait for its client."""
        self._is_client_full = True
        self._server.pause_writing()
        self.outbox.begin_wait()

    def resume_writing(self) -> None:
        """Let the server go on: the client has read."""
        self._is_client_full = False
        self._server.resume_writing()
        self.outbox.end_wait()

    def _longest_idle_s(self) -> float:
        return KEEP_ALIVE_S if self._is_between_requests else IDLE_S

    def _note_gone(self) -> None:
        """Tell the app, or the server where no app is answering."""
        self._is_gone = True
        if self._is_closing or self._is_ended:
            return
        if self.body is None:
            self._end_server()
            return
        self.want_body()
        if self.is_body_missing:
            self._end_server()
        elif self._gone is not None and self.is_client_gone:
            self._gone.set()

    # -- requests

    @property
    def is_body_missing(self) -> bool:
        """Whether the server has not got all of the request that is being answered."""
        return self.body is not None and not self.body.is_complete

    @property
    def is_client_gone(self) -> bool:
        """Whether nobody waits for the present answer; a client may close after its requests."""
        return self._is_gone and not has_head(self._held)

    async def wait_gone(self) -> None:
        """Return once the client is gone, or has its answer."""
        if not self.is_client_gone:
            if self._gone is None:
                self._gone = asyncio.Event()
            await self._gone.wait()

    def want_body(self) -> None:
        """Hand on what comes next of the body: the app waits for it."""
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
        # A body that is there already costs the server no step of its own.
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
        """Read from the client, or not, as there is room for it."""
        is_full = self._is_server_full or len(self._held) > PIECE_BYTES
        may_read = not is_full or self._is_ended or self._is_closing
        if may_read != self._is_reading and not self._wire.is_closing():
            self._is_reading = may_read
            (self._wire.resume_reading if may_read else self._wire.pause_reading)()

    def hold_server(self, *, is_full: bool) -> None:
        """Send the server nothing more for a time, or again."""
        self._is_server_full = is_full
        self._read_on()

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer a request that the server must not see; no byte after it is read."""
        self._is_refused = True
        if not self._is_answer_begun:
            first = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
            lines = b"content-length: 0\r\nconnection: close\r\n"
            self.write(b"".join((first, lines, date_line(), b"\r\n")))
        self._end_server()

    # -- answers

    @property
    def is_closing(self) -> bool:
        """Whether the server can write no more."""
        return self._is_closing or self._wire.is_closing()

    def begin_answer(self) -> None:
        """Note that the app answers; the head of the answer waits for what follows it."""
        self._is_answer_begun = self._is_head_next = True

    def may_write_whole(self) -> bool:
        """Whether an answer may be written past the server: nothing of it or before it waits."""
        return not (
            self._is_answer_begun
            or self.is_body_missing
            or self.is_stopping
            or self._is_closing
            or self._is_ended
            or self._requests >= MAX_REQUESTS
            or self._wire.get_write_buffer_size()
        )

    def write(self, data: bytes) -> None:
        """Write what the server sends, or drop it where nobody reads it."""
        if self._is_ended or self.is_written or self._wire.is_closing():
            return
        if self._is_head_next:
            self._head, self._is_head_next = data, False
        elif data:
            self._head, data = b"", self._head + data
            self._wire.write(data)

    def end_answer(self) -> None:
        """Give the server the next request; it has sent a whole answer."""
        self._flush_head()
        self._is_answer_begun = self.is_written = False
        if self._gone is not None:
            self._gone.set()
            self._gone = None
        if self._is_closing or self._is_ended:
            return
        self.body = None
        if self.is_client_gone:
            self._end_server()
            return
        self._is_between_requests = not self._held
        self._idleness.start()
        self._hand_on()
        if self.body is None and self._held:
            self._idleness.start_shorter()
        elif self._is_gone and self.is_body_missing:
            self._note_gone()

    # -- the end

    def _end_server(self) -> None:
        """Let the server close the connection; what it still says is for nobody."""
        self._flush_head()
        self._is_ended = True
        self._held.clear()
        self._idleness.stop()
        if self.body is None:
            self._server.data_received(_INVALID_REQUEST)
            # No other timer is left for a server that does not close now.
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
        """Close the connection for the server, and let the client read its answer first.

        A client that may be sending sees our half of the connection close. The other half is
        closed when the client closes, after a time, or when the server stops.
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
        """End with the present answer."""
        self.is_stopping = True
        if self._is_closing:
            self._wire.close()

    def _linger(self) -> None:
        # These errors mean that the connection is closed already.
        with contextlib.suppress(OSError, RuntimeError):
            self._wire.write_eof()
        self._read_on()
        self._lingering = asyncio.get_running_loop().call_later(IDLE_S, self._wire.close)

    def _flush_head(self) -> None:
        """Send the head of an answer that has no body."""
        self._is_head_next = False
        head, self._head = self._head, b""
        if head:
            self.write(head)


class _Transport:
    """A connection as the server sees it."""

    def __init__(self, wire: asyncio.Transport, guard: Guard) -> None:
        self._wire = wire
        self._guard = guard
        self.write = guard.write
        self.close = guard.close

    def write_eof(self) -> None:
        """Do nothing: `close` follows, and knows how much to close."""

    def is_closing(self) -> bool:
        return self._guard.is_closing

    def pause_reading(self) -> None:
        self._guard.hold_server(is_full=True)

    def resume_reading(self) -> None:
        self._guard.hold_server(is_full=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


def date_line() -> bytes:
    """Return the header that says when an answer is made."""
    return _date_line(int(time.time()))


@functools.lru_cache(maxsize=1)
def _date_line(second: int) -> bytes:
    return f"date: {email.utils.formatdate(second, usegmt=True)}\r\n".encode()
