"""Makes Hypercorn speak HTTP/1.1 only, and close connections so that a client reads its answer.

The gateway listens without TLS, where no client of ours uses HTTP/2. HTTP/2 would also let one
connection open and cancel requests without end. Hypercorn has no setting that switches it off. A
proxy in front may offer HTTP/2 by itself.
"""

import asyncio
import contextlib
import copy
import dataclasses
import functools
import weakref
from typing import Any, cast

import h11
import hypercorn.protocol
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.events import Closed, RawData, Updated
from hypercorn.events import Event as ConnectionEvent
from hypercorn.protocol.events import Event, Request, Response
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol

from gateway.web.server.bounded_heads import PIECE_BYTES, BoundedConnection
from gateway.web.server.connection_limits import IDLE_S, MAX_UNREAD_BYTES
from gateway.web.server.hypercorn_stream import Stream, is_ready
from gateway.web.server.unread import Outbox

_VERSIONS = (b"1.0", b"1.1")
_BAD_REQUEST = 400
_NOT_SUPPORTED = 505
# Together they leave open where a request ends; a proxy in front may have decided otherwise.
_LENGTHS = {b"content-length", b"transfer-encoding"}
# Names in small letters, and values.
_Fields = list[tuple[bytes, bytes]]


class Http1Protocol(H11Protocol):
    """Hypercorn's HTTP/1.1 without its upgrades to HTTP/2 and WebSocket."""

    _is_answered = False
    _is_closed = False
    _unread_bytes = 0
    # The head of an answer whose body has not begun.
    _head = b""
    # Whether the body that is read says its length, so that no heads or trailers are in it.
    _has_length = False
    # The stream that was begun last; missing before the first one.
    _newest: "weakref.ref[Stream]"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.connection = BoundedConnection()

    async def handle(self, event: ConnectionEvent) -> None:
        """Read a client's bytes, or drop them where no request may follow any more."""
        if isinstance(event, Closed):
            self._is_closed = True
            # Hypercorn's timer would keep the socket of a client that is gone for 30 seconds.
            await self.send(Updated(idle=False))
            self._expect_reading(is_answering=self.stream is not None)
        if isinstance(event, RawData):
            await self._read(event.data)
        else:
            await self._handle(event)

    async def _handle(self, event: ConnectionEvent) -> None:
        await super().handle(event)
        if isinstance(self.stream, Stream):
            await self.stream.hand_on()

    async def _read(self, data: bytes) -> None:
        """Hand bytes to h11, in pieces unless they are a body's: it reads all lines that it has."""
        while data and not (self._is_answered or self._is_closed):
            is_body = self._has_length and self._is_body_missing()
            size = len(data) if is_body else PIECE_BYTES
            piece, data = data[:size], data[size:]
            await self._handle(RawData(data=piece))
        self._unread_bytes += len(data)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            await self.send(Closed())

    def _expect_reading(self, unread_bytes: int = 0, *, is_answering: bool = False) -> None:
        """Cut a closed connection off whose client has read nothing of its answer for so long.

        Hypercorn waits without end until the client has read it all. Where the app is still at the
        answer, there is nothing to read yet, and the next look comes all the same.
        """
        transport = self._transport
        left_bytes = transport.get_write_buffer_size()
        if left_bytes and left_bytes == unread_bytes:
            transport.abort()
        elif left_bytes or (is_answering and not transport.is_closing()):
            look = functools.partial(self._expect_reading, left_bytes, is_answering=is_answering)
            asyncio.get_running_loop().call_later(IDLE_S, look)

    def may_write_whole(self) -> bool:
        """Whether an answer may be written past Hypercorn: nothing of it or before it waits."""
        transport = self._transport
        return (
            is_ready(self.connection)
            and not self._is_closed
            and not self._head
            and self.keep_alive_requests < self.config.keep_alive_max_requests
            and not transport.is_closing()
            and not transport.get_write_buffer_size()
        )

    def write_now(self, data: bytes) -> None:
        """Write bytes that wait for nobody; see `may_write_whole`."""
        self._transport.write(data)

    @property
    def is_between_requests(self) -> bool:
        """Whether a request was answered whole, and no byte of another one has come."""
        return (
            self.keep_alive_requests > 0
            and not self._is_answered
            and not self.connection.trailing_data[0]
        )

    @property
    def outbox(self) -> Outbox:
        """What waits for the client."""
        outbox: Outbox = cast(Any, self._server).outbox
        return outbox

    @property
    def _transport(self) -> asyncio.WriteTransport:
        return self._server.writer.transport

    async def stream_send(self, event: Event) -> None:
        """Send a part of an answer.

        An answer before the request's end carries `Connection: close`: the rest of the request is
        dropped, and the connection is closed.
        """
        if isinstance(event, Response) and self._is_body_missing():
            headers = [*event.headers, (b"connection", b"close")]
            event = dataclasses.replace(event, headers=headers)
        await super().stream_send(event)

    async def _send_h11_event(self, event: Any) -> None:
        """Send the head of an answer together with what follows it, and nothing that is empty."""
        try:
            data = self.connection.send(event) or b""
        except h11.LocalProtocolError:
            if self.connection.their_state is not h11.ERROR:
                raise
            return
        if isinstance(event, h11.Response):
            self._head = data
        elif data or self._head:
            data, self._head = self._head + data, b""
            await self.send(RawData(data=data))

    async def _maybe_recycle(self) -> None:
        """Keep the connection for the next request, or close it.

        Where the request is not complete, our half of the connection is closed first. The other
        half is closed when the client closes, after Hypercorn's keep-alive timeout, or when the
        server stops.
        """
        if self._head:
            # The app has ended without a body: its client is told as much as there is.
            head, self._head = self._head, b""
            await self.send(RawData(data=head))
        is_whole = self.connection.our_state in (h11.DONE, h11.MUST_CLOSE)
        if not is_whole:
            # The app has given the answer up, and its client may never read what is left.
            self._expect_reading()
        is_over = self._is_closed or self.context.terminated.is_set()
        if is_over or not (is_whole and self._is_body_missing()):
            if is_over or not is_whole:
                await self._release_reader()
            await super()._maybe_recycle()
            return
        self._is_answered = True
        await self._close_stream()
        await self.can_read.set()
        # These errors mean that the connection is closed already.
        with contextlib.suppress(OSError, RuntimeError):
            self._transport.write_eof()
        await self.send(Updated(idle=True))

    async def end_stream(self, stream: Stream) -> None:
        """Note that the app of a stream has ended, also where its connection was closed before.

        It may end while the next request is being answered already.
        """
        if self._is_closed and self._newest() is stream:
            await self._release_reader()

    async def _release_reader(self) -> None:
        """End the wait of an ended connection's reader, once nothing is sent any more.

        The reader may wait for an answer's end, with bytes of the next request in h11's buffer.
        h11 would let it wait again; a new h11 has no bytes. Bytes that still come are dropped.
        """
        self._is_closed = True
        self.connection = BoundedConnection()
        await self.can_read.set()

    def _wait_for_stream(self, fields: _Fields) -> None:
        """Let the client of a stream of events be silent; bound every other one.

        Hypercorn closes a connection from which nothing has come for `read_timeout`, also in the
        middle of an answer. It reads that setting before each piece that it waits for.
        """
        accepted = [value.lower() for name, value in fields if name == b"accept"]
        config = self.config
        if any(b"event-stream" in value for value in accepted):
            config = copy.copy(config)
            config.read_timeout = None
        self._server.config = config

    @property
    def _server(self) -> TCPServer:
        # Hypercorn has no event that closes one half of a connection, cuts it off, or changes how
        # long it may be silent.
        server: TCPServer = self.send.__self__  # type: ignore[attr-defined]
        return server

    def _is_body_missing(self) -> bool:
        return self.connection.their_state is h11.SEND_BODY

    async def _check_protocol(self, event: h11.Request) -> None:
        """Ignore `Upgrade: h2c`, as a server may (RFC 9110 §7.8)."""

    async def _create_stream(self, request: h11.Request) -> None:
        # h11's own view of the headers takes ten times as long to read.
        fields = [(name.lower(), value) for name, value in request.headers.raw_items()]
        self._has_length = all(name != b"transfer-encoding" for name, _ in fields)
        if request.http_version not in _VERSIONS:
            await self._refuse(_NOT_SUPPORTED)
        elif _LENGTHS.issubset([name for name, _ in fields]):
            await self._refuse(_BAD_REQUEST)
        else:
            self._wait_for_stream(fields)
            await self._begin(request, fields)

    async def _begin(self, request: h11.Request, fields: _Fields) -> None:
        """Let the app answer a request, as Hypercorn does, but never by WebSocket."""
        self.stream = Stream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        self._newest = weakref.ref(self.stream)
        begun = Request(
            stream_id=STREAM_ID,
            # No route here speaks WebSocket, and Quart does not answer requests for it.
            headers=[field for field in fields if field[0] != b"upgrade"],
            http_version=request.http_version.decode(),
            method=request.method.decode("ascii").upper(),
            raw_path=request.target,
            state=self.connection_state,
        )
        await self.stream.handle(begun)
        self.keep_alive_requests += 1
        await self.context.mark_request()

    async def _refuse(self, status: int) -> None:
        await self._send_error_response(status)
        await self.send(Closed())


def speak_http1_only() -> None:
    """Let every later connection of this process use `Http1Protocol`."""
    hypercorn.protocol.H11Protocol = Http1Protocol  # type: ignore[attr-defined]
