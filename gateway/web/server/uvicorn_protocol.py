"""Guards uvicorn's HTTP/1.1 against slow, endless and broken requests.

uvicorn bounds idle connections only. `GuardedProtocol` gives it the bounds that Hypercorn has, and
hands on no byte that a proxy in front may have read in another way. It rests on names of uvicorn's
that its documentation does not promise: `test_uvicorn_names.py` lists them.
"""

import asyncio
import contextlib
import functools
import weakref
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from gateway.web.front.answers import WHOLE_ANSWER
from gateway.web.server.connection_limits import (
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

_VERSIONS = ("1.0", "1.1")
# Requests of one connection that wait for the answers before theirs. Each takes some kilobytes,
# while its bytes may be a few.
_MAX_WAITING = 8
# What is around a header's name and value, and around a method and a target, with the blank line.
_AROUND_FIELD = len(b": \r\n")
_AROUND_LINE = len(b"  HTTP/1.1\r\n\r\n")
# What the parser says before it has read a version.
_NO_VERSION = "0.0"


class GuardedProtocol(HttpToolsProtocol):
    """One connection of uvicorn's; bytes come in by `data_received`, answers go by `transport`."""

    # Bytes since the parser last reported a head or a part of a body.
    _unreported_bytes = 0
    # Headers of the head that is read, or trailers, and their bytes.
    _fields = 0
    _field_bytes = 0
    # Whether some of a head has come, but not all of it.
    _is_head_begun = False
    # Whether a request was answered, and no byte of another one has come.
    _is_between_requests = False
    # Of the requests in `pipeline`, together.
    _waiting_head_bytes = 0
    # Of the body that is read; and whether the next part of it begins a chunk.
    _short_chunks = 0
    _is_chunk_begun = False
    _unread_bytes = 0
    # From a request's head to its end.
    _is_body_missing = False
    # Whether the connection may stay open after the request whose body is missing.
    _may_stay = False
    # What still arrives is dropped.
    _is_deaf = False
    _is_closing = False
    _is_stopping = False
    # The head of a request that asked for an upgrade, without `Upgrade`.
    _plain_head = b""
    _refusal = HTTPStatus.BAD_REQUEST
    _lingering: asyncio.TimerHandle | None = None
    # The request that is being answered or was answered last. Those after it wait in `pipeline`.
    _answered: RequestResponseCycle | None = None

    # -- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin: the first head has its time from now on, as each later one from the answer on."""
        super().connection_made(transport)
        self._wire = transport
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self._outbox = Outbox(transport)
        self.transport = cast(asyncio.Transport, _PoliteTransport(transport, self))
        self._idleness = LazyTimer(self._longest_idle_s, self.timeout_keep_alive_handler)
        self._idleness.start()

    def connection_lost(self, exc: Exception | None) -> None:
        """End: no timer keeps the connection's objects."""
        # Nothing is left that a client could read.
        self._is_closing = self._is_deaf = True
        super().connection_lost(exc)
        if self._answered is not None and not self._answered.response_complete:
            # uvicorn tells the newest request only.
            self._answered.disconnected = True
            self._answered.message_event.set()
        self._idleness.end()
        self._outbox.end()
        if self._lingering is not None:
            self._lingering.cancel()
        # The transport and this object hold each other.
        self.transport = self._wire

    def pause_writing(self) -> None:
        """Wait for the client to read its answer."""
        super().pause_writing()
        self._outbox.begin_wait()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        super().resume_writing()
        self._outbox.end_wait()

    def shutdown(self) -> None:
        """End with the present answer, or at once where there is none."""
        self._is_stopping = True
        super().shutdown()

    @property
    def is_closing(self) -> bool:
        """Whether the connection takes no further request."""
        return self._is_closing or self._wire.is_closing()

    def close(self) -> None:
        """Close the connection, and let the client read its answer first.

        Where the client may be sending, our half of the connection is closed first. The other half
        is closed when the client closes, after a time, or when the server stops.
        """
        is_sending = self._is_body_missing or self._is_deaf
        may_wait = is_sending and not self._is_closing and not self._is_stopping
        self._is_closing = self._is_deaf = True
        if not may_wait:
            self._wire.close()
            return
        # These errors mean that the connection is closed already.
        with contextlib.suppress(OSError, RuntimeError):
            self._wire.write_eof()
        self.flow.resume_reading()
        self._lingering = self.loop.call_later(IDLE_S, self._wire.close)

    def _longest_idle_s(self) -> float:
        return self.timeout_keep_alive if self._is_between_requests else IDLE_S

    # -- bytes of requests

    def data_received(self, data: bytes) -> None:
        """Read a client's bytes, or drop them where its requests have been answered already.

        The parser gets them in pieces: it collects a line without end, and calls nobody.
        """
        while data and not self._is_deaf:
            room = MAX_HEAD_BYTES - self._unreported_bytes
            piece, data = data[:room], data[room:]
            self._unreported_bytes += len(piece)
            self._feed(piece)
            if self._unreported_bytes >= MAX_HEAD_BYTES and not self._is_deaf:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if self._is_between_requests and self._is_head_begun:
            self._is_between_requests = False
            self._idleness.start_shorter()
        self._unread_bytes += len(data)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            self._wire.abort()

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # The parser takes what follows the head for another protocol.
            head, self._plain_head = self._plain_head, b""
            self.parser = httptools.HttpRequestParser(self)
            self._feed(head + data[upgrade.args[0] :])
        except httptools.HttpParserError:
            is_known = self.parser.get_http_version() in (_NO_VERSION, *_VERSIONS)
            self._refuse(self._refusal if is_known else HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer a request that cannot be read; no byte after it is read.

        Requests before it get their own answers first, and the connection closes after those.
        """
        self._is_deaf = True
        newest = self.cycle
        if newest is None or newest.response_complete:
            self._wire.write(self._error_answer(status))
            self.close()
        elif self.pipeline or not self._is_body_missing:
            newest.keep_alive = False
        else:
            # Its own body is broken. Closing at once tells the app that the client is gone.
            if not newest.response_started:
                self._wire.write(self._error_answer(status))
            self._wire.close()

    def _error_answer(self, status: HTTPStatus) -> bytes:
        fields = [(b"content-length", b"0"), (b"connection", b"close")]
        lines = [b": ".join(field) for field in (*fields, *self.server_state.default_headers)]
        first = f"HTTP/1.1 {status.value} {status.phrase}".encode()
        return b"\r\n".join([first, *lines, b"", b""])

    # -- what the parser reports; an error raised here ends the parsing

    def on_message_begin(self) -> None:
        """Begin a request, unless too much waits for the answers of requests before them."""
        if not self.pipeline:
            self._waiting_head_bytes = 0
        if len(self.pipeline) >= _MAX_WAITING or self._waiting_head_bytes > MAX_HEAD_BYTES:
            raise _RefusedError
        self._fields = self._field_bytes = self._short_chunks = 0
        self._is_head_begun = True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those after the body (trailers) are dropped."""
        self._fields += 1
        self._field_bytes += len(name) + len(value) + _AROUND_FIELD
        if self._fields > MAX_HEADERS:
            self._refusal = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            raise _RefusedError
        if not self._is_body_missing:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start answering a request, unless its head is not to be trusted."""
        self._refusal = self._judge_head()
        self._waiting_head_bytes += self._field_bytes
        self._unreported_bytes = self._fields = self._field_bytes = 0
        self._is_head_begun = False
        if self._refusal is not HTTPStatus.OK:
            raise _RefusedError
        self._refusal = HTTPStatus.BAD_REQUEST
        if self.parser.should_upgrade():
            self._plain_head = self._head_without_upgrade()
            return
        super().on_headers_complete()
        # uvicorn declares the extensions that it knows only.
        # The cycle holds the scope: if that held the cycle, head and body of each answered request
        # would wait for the garbage collector.
        cycle = weakref.ref(self.cycle)
        write = functools.partial(write_whole, cycle)
        extensions: Any = {WHOLE_ANSWER: write, OUTBOX: self._outbox}
        self.scope["extensions"] = extensions
        self._is_between_requests = False
        self._idleness.stop()
        self._is_body_missing = True
        # An answer before the request's end carries `Connection: close`.
        self._may_stay, self.cycle.keep_alive = self.cycle.keep_alive, False

    def on_chunk_header(self) -> None:
        """Note that a chunk begins."""
        self._is_chunk_begun = True

    def on_body(self, body: bytes) -> None:
        """Hand on a part of a body."""
        self._unreported_bytes = 0
        self._short_chunks += self._is_chunk_begun and len(body) < SHORT_CHUNK_BYTES
        self._is_chunk_begun = False
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
        """Begin the answer of the next request that waits, or the time for the next one."""
        if self.pipeline or self.is_closing:
            super().on_response_complete()
            return
        # As uvicorn does, but for its timer.
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._is_between_requests = not self._is_head_begun
        if self._is_head_begun:
            self._idleness.start_shorter()
        else:
            self._idleness.start()

    def _judge_head(self) -> HTTPStatus:
        """Return OK, or the status with which the request is refused."""
        version, method = self.parser.get_http_version(), self.parser.get_method()
        if version not in _VERSIONS:
            return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
        # A head that follows another request in one piece may be longer than a piece.
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
        """Return the head again; a server may ignore `Upgrade` (RFC 9110 §7.8)."""
        version = self.parser.get_http_version().encode()
        first = b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)
        fields = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([first, *fields, b"", b""])


def write_whole(
    cycle_of: "weakref.ref[RequestResponseCycle]", status: int, lines: bytes, body: bytes
) -> bool:
    """Write an answer in one piece; False where uvicorn itself has more to do about it.

    A connection that is closing drops it, and the request ends as if it had been written.
    uvicorn checks each header of each answer by itself, which takes longer than all the rest.
    """
    cycle = cycle_of()
    if cycle is None:
        return False
    is_late = cycle.disconnected or cycle.response_started
    has_body = cycle.scope["method"] != "HEAD"
    if is_late or cycle.flow.write_paused or not (cycle.keep_alive and has_body):
        return False
    cycle.response_started = True
    cycle.waiting_for_100_continue = False
    own = b"".join([b"%b: %b\r\n" % field for field in cycle.default_headers])
    cycle.transport.write(b"".join((STATUS_LINE[status], own, lines, b"\r\n", body)))
    cycle.response_complete = True
    cycle.message_event.set()
    cycle.on_response()
    return True


class _RefusedError(Exception):
    """Ends the parsing; `_feed` answers."""


class _PoliteTransport:
    """A connection's transport as uvicorn sees it, which closes as `GuardedProtocol.close` says."""

    def __init__(self, transport: asyncio.Transport, protocol: GuardedProtocol) -> None:
        self._transport = transport
        self._protocol = protocol

    def write(self, data: bytes) -> None:
        """Write bytes, or drop them where the connection is closing.

        An app may still answer a client that has hung up, or a request refused in its body.
        """
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        self._protocol.close()

    def is_closing(self) -> bool:
        return self._protocol.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
