"""Guards uvicorn's HTTP/1.1 against slow, endless and broken requests.

uvicorn itself limits idle connections only. `GuardedProtocol` adds the limits of
`connection_guard`, and rejects requests that a proxy in front may parse differently. Wrapping an
unmodified uvicorn in that guard would make a plain answer 20 % slower (measured). This class uses
undocumented names of uvicorn; `test_uvicorn_names.py` lists them.
"""

import asyncio
import contextlib
import functools
import weakref
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

from gateway.web.front.answers import WHOLE_ANSWER
from gateway.web.server.connection_limits import (
    HALF_CLOSED_S,
    IDLE_S,
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_SHORT_CHUNKS,
    MAX_UNREAD_BYTES,
    OUTBOX,
    SHORT_CHUNK_BYTES,
    WRITE_BUFFER_BYTES,
    LazyTimer,
    Outbox,
)
from gateway.web.server.open_connections import Connections
from gateway_uvicorn.answers import LingeringTransport, write_whole

_VERSIONS = ("1.0", "1.1")
# Pipelined requests per connection. Each takes kilobytes of memory, however short.
_MAX_WAITING = 8
# Bytes around a header's name and value, and around method and target with the blank line.
_AROUND_FIELD = len(b": \r\n")
_AROUND_LINE = len(b"  HTTP/1.1\r\n\r\n")
# The parser's version before it has read one.
_NO_VERSION = "0.0"


class GuardedProtocol(HttpToolsProtocol):
    """One connection of uvicorn."""

    # Bytes since the parser's last report of a head or a body.
    _unreported_bytes = 0
    # Number and bytes of the headers or trailers in progress.
    _fields = 0
    _field_bytes = 0
    # Whether a head is incomplete.
    _is_head_started = False
    # Whether a request was answered, and the next one has not begun.
    _is_between_requests = False
    # Bytes of all heads in `pipeline`.
    _waiting_head_bytes = 0
    # Short chunks of the current body, and whether its next part begins a chunk.
    _short_chunks = 0
    _is_chunk_started = False
    _unread_bytes = 0
    # Set from a request's head to its end.
    _is_body_missing = False
    # Whether the connection may stay open after the current request.
    _may_stay = False
    # Whether further input is dropped.
    _is_discarding = False
    _is_closing = False
    _is_stopping = False
    # The head of an upgrade request, without `Upgrade`.
    _plain_head = b""
    _refusal = HTTPStatus.BAD_REQUEST
    _lingering: asyncio.TimerHandle | None = None
    # Counts all connections of the process.
    open_connections: Connections | None = None
    # The current or last answered request; later ones wait in `pipeline`.
    _answered: RequestResponseCycle | None = None

    # -- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timeout of the first head; later heads have theirs from the answer on."""
        super().connection_made(transport)
        self._wire = transport
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self._outbox = Outbox(transport)
        self.transport = cast(asyncio.Transport, LingeringTransport(transport, self))
        self._idleness = LazyTimer(self._longest_idle_s, self.timeout_keep_alive_handler)
        self._idleness.start()
        if self.open_connections is not None:
            self.open_connections.admit(self, transport)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Answer a complete request of a client that closed its half; return whether there is one.

        An event stream ends with its client.
        """
        newest = self.cycle
        if self.is_closing or self._is_body_missing or newest is None or newest.response_complete:
            return False
        scope = newest.scope
        accepted = [value for name, value in scope["headers"] if name == b"accept"]
        if scope["method"] == "GET" and any(b"text/event-stream" in one for one in accepted):
            return False
        newest.keep_alive = False
        self._await_answer()
        return True

    def _await_answer(self) -> None:
        """Give a half-closed client up if no answer begins: it may be gone altogether."""
        self._lingering = self.loop.call_later(HALF_CLOSED_S, self._give_up)

    def _give_up(self) -> None:
        # Whether a client reads an answer that has begun is known without this timer.
        is_begun = self._answered is not None and self._answered.response_started
        if is_begun or self._wire.get_write_buffer_size():
            self._await_answer()
        else:
            self._wire.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timers, which would keep the connection's objects alive."""
        self._is_closing = self._is_discarding = True
        super().connection_lost(exc)
        if self.open_connections is not None:
            self.open_connections.remove(self)
        if self._answered is not None and not self._answered.response_complete:
            # uvicorn notifies the newest request only.
            self._answered.disconnected = True
            self._answered.message_event.set()
        self._idleness.end()
        self._outbox.end()
        self._cancel_lingering()
        # Break the reference cycle.
        self.transport = self._wire

    def pause_writing(self) -> None:
        """Wait for the client to read."""
        super().pause_writing()
        self._outbox.begin_wait()

    def resume_writing(self) -> None:
        """Continue after the client has read."""
        super().resume_writing()
        self._outbox.end_wait()

    def shutdown(self) -> None:
        """Close after the current answer, or at once."""
        self._is_stopping = True
        super().shutdown()

    @property
    def is_closing(self) -> bool:
        """Whether the connection accepts no further request."""
        return self._is_closing or self._wire.is_closing()

    def close(self) -> None:
        """Close the connection, after the client has read its answer.

        If the client may be sending, only our half is closed. The rest follows when the client
        closes, after a timeout, or at shutdown.
        """
        is_sending = self._is_body_missing or self._is_discarding
        may_wait = is_sending and not self._is_closing and not self._is_stopping
        self._is_closing = self._is_discarding = True
        if not may_wait:
            self._wire.close()
            return
        # Raised if the connection is closed already.
        with contextlib.suppress(OSError, RuntimeError):
            self._wire.write_eof()
        self.flow.resume_reading()
        self._cancel_lingering()
        self._lingering = self.loop.call_later(IDLE_S, self._wire.close)

    def _cancel_lingering(self) -> None:
        if self._lingering is not None:
            self._lingering.cancel()

    @property
    def is_idle(self) -> bool:
        """Whether no complete request awaits its answer."""
        is_answered = self.cycle is None or self.cycle.response_complete
        return self._is_body_missing or (is_answered and not self.pipeline)

    def cut_off(self) -> None:
        """Abort the connection."""
        self._wire.abort()

    def _longest_idle_s(self) -> float:
        return self.timeout_keep_alive if self._is_between_requests else IDLE_S

    # -- bytes of requests

    def data_received(self, data: bytes) -> None:
        """Parse input, or drop it after the last answer.

        The parser gets pieces, because it buffers an endless line without a callback.
        """
        while data and not self._is_discarding:
            room = MAX_HEAD_BYTES - self._unreported_bytes
            piece, data = data[:room], data[room:]
            self._unreported_bytes += len(piece)
            self._feed(piece)
            if self._unreported_bytes >= MAX_HEAD_BYTES and not self._is_discarding:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if self._is_between_requests and self._is_head_started:
            self._is_between_requests = False
            self._idleness.start_shorter()
        self._unread_bytes += len(data)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            self._wire.abort()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The parser expects another protocol after the head.
            head, self._plain_head = self._plain_head, b""
            self.parser = httptools.HttpRequestParser(self)
            self._feed(head + data[upgrade.args[0] :])
        except httptools.HttpParserError:
            is_known = self.parser.get_http_version() in (_NO_VERSION, *_VERSIONS)
            self._refuse(self._refusal if is_known else HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)

    def _refuse(self, status: HTTPStatus) -> None:
        """Refuse a request, and read nothing after it; earlier requests are answered first."""
        self._is_discarding = True
        newest = self.cycle
        if newest is None or newest.response_complete:
            self._wire.write(self._error_answer(status))
            self.close()
        elif self.pipeline or not self._is_body_missing:
            newest.keep_alive = False
        else:
            # The body of the current request is broken. Closing notifies the app.
            if not newest.response_started:
                self._wire.write(self._error_answer(status))
            self._wire.close()

    def _error_answer(self, status: HTTPStatus) -> bytes:
        fields = [(b"content-length", b"0"), (b"connection", b"close")]
        lines = [b": ".join(field) for field in (*fields, *self.server_state.default_headers)]
        first = f"HTTP/1.1 {status.value} {status.phrase}".encode()
        return b"\r\n".join([first, *lines, b"", b""])

    # -- callbacks of the parser; an error stops it

    def on_message_begin(self) -> None:
        """Begin a request, unless too many are pipelined."""
        if not self.pipeline:
            self._waiting_head_bytes = 0
        if len(self.pipeline) >= _MAX_WAITING or self._waiting_head_bytes > MAX_HEAD_BYTES:
            raise _RefusedError
        self._fields = self._field_bytes = self._short_chunks = 0
        self._is_head_started = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers are dropped."""
        self._fields += 1
        self._field_bytes += len(name) + len(value) + _AROUND_FIELD
        if self._fields > MAX_HEADERS:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise _RefusedError
        if not self._is_body_missing:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the app, unless the head is refused."""
        self._refusal = self._check_head()
        self._waiting_head_bytes += self._field_bytes
        self._unreported_bytes = self._fields = self._field_bytes = 0
        self._is_head_started = False
        if self._refusal is not HTTPStatus.OK:
            raise _RefusedError
        self._refusal = HTTPStatus.BAD_REQUEST
        if self.parser.should_upgrade():
            self._plain_head = self._head_without_upgrade()
            return
        super().on_headers_complete()
        # A strong reference would form a cycle with the scope, and keep head and body of each
        # answered request until garbage collection.
        cycle = weakref.ref(self.cycle)
        write = functools.partial(write_whole, cycle)
        extensions: Any = {WHOLE_ANSWER: write, OUTBOX: self._outbox}
        self.scope["extensions"] = extensions
        self._is_between_requests = False
        self._idleness.stop()
        self._is_body_missing = True
        # An answer before the request's end has `Connection: close`.
        self._may_stay, self.cycle.keep_alive = self.cycle.keep_alive, False

    def on_chunk_header(self) -> None:
        """Note the start of a chunk."""
        self._is_chunk_started = True

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._unreported_bytes = 0
        self._short_chunks += self._is_chunk_started and len(body) < SHORT_CHUNK_BYTES
        self._is_chunk_started = False
        if self._short_chunks > MAX_SHORT_CHUNKS:
            raise _RefusedError
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request."""
        self._unreported_bytes = 0
        if self._plain_head:
            return
        super().on_message_complete()
        self._is_body_missing = False
        if not self.cycle.response_started and not self._is_stopping:
            self.cycle.keep_alive = self._may_stay

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Start the next pipelined request, or the timeout for the next head."""
        if self.pipeline or self.is_closing:
            super().on_response_complete()
            return
        # As in uvicorn, except its timer.
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._is_between_requests = not self._is_head_started
        if self._is_head_started:
            self._idleness.start_shorter()
        else:
            self._idleness.start()

    def _check_head(self) -> HTTPStatus:
        version, method = self.parser.get_http_version(), self.parser.get_method()
        if version not in _VERSIONS:
            return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
        # A pipelined head may span more than one piece.
        if len(method) + len(self.url) + self._field_bytes + _AROUND_LINE > MAX_HEAD_BYTES:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        hosts = 0
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
            elif name == b"transfer-encoding" and value.lower() != b"chunked":
                return HTTPStatus.NOT_IMPLEMENTED
        is_one_host = hosts == 1 or (hosts == 0 and version == "1.0")
        is_tunnel = method == b"CONNECT"
        return HTTPStatus.OK if is_one_host and not is_tunnel else HTTPStatus.BAD_REQUEST

    def _head_without_upgrade(self) -> bytes:
        """Rebuild the head without `Upgrade`, which a server may ignore (RFC 9110 §7.8)."""
        version = self.parser.get_http_version().encode()
        first = b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)
        fields = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([first, *fields, b"", b""])


class _RefusedError(Exception):
    """Stops the parser; `_feed` answers."""
