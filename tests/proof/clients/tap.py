"""A tap on the wire: forwards all bytes unchanged, and records the HTTP exchanges."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import attrs
import h11

_PAYMENT_HEADERS = (b"x-payment", b"payment-signature", b"authorization")
_CHUNK_BYTES = 65_536


@attrs.define
class Exchange:
    """A request and its response. Header names are as sent."""

    method: str
    target: str
    payments: dict[str, str]
    status: int = 0
    body: bytes = b""
    # The request's body.
    sent: bytes = b""


@attrs.define
class Tap:
    """Listens on one port and forwards to another."""

    url: str
    exchanges: list[Exchange] = attrs.field(factory=list)


@contextlib.asynccontextmanager
async def tapping(port: int) -> AsyncIterator[Tap]:
    """Listen in front of a port of this machine."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            there = await asyncio.open_connection("127.0.0.1", port)
            follower = _Follower(tap.exchanges)
            await asyncio.gather(
                _pass_on(reader, there[1], follower.feed_request),
                _pass_on(there[0], writer, follower.feed_answer),
                return_exceptions=True,
            )

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    host, own_port = server.sockets[0].getsockname()[:2]
    tap = Tap(f"http://{host}:{own_port}")
    async with server:
        yield tap


async def _pass_on(reader, writer, feed) -> None:
    try:
        while data := await reader.read(_CHUNK_BYTES):
            feed(data)
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


class _Follower:
    """Follows one connection: each parser also needs the other side's messages."""

    def __init__(self, exchanges: list[Exchange]) -> None:
        self._exchanges = exchanges
        self._current: Exchange | None = None
        self._asking = h11.Connection(h11.SERVER)
        self._answering = h11.Connection(h11.CLIENT)

    def feed_request(self, data: bytes) -> None:
        self._asking.receive_data(data)
        for event in _events(self._asking):
            self._answering.send(event)
            if isinstance(event, h11.Request):
                self._current = _asked(event)
                self._exchanges.append(self._current)
            if isinstance(event, h11.Data):
                self._current.sent += bytes(event.data)

    def feed_answer(self, data: bytes) -> None:
        self._answering.receive_data(data)
        for event in _events(self._answering):
            self._asking.send(event)
            if isinstance(event, h11.Response):
                self._current.status = event.status_code
            if isinstance(event, h11.Data):
                self._current.body += bytes(event.data)
        self._begin_again()

    def _begin_again(self) -> None:
        both = (self._asking, self._answering)
        if all(side.our_state is side.their_state is h11.DONE for side in both):
            for side in both:
                side.start_next_cycle()


def _events(side: h11.Connection) -> list:
    events = []
    while (event := side.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
        events.append(event)
    return events


def _asked(event: h11.Request) -> Exchange:
    payments = {
        name.decode(): value.decode()
        for name, value in event.headers.raw_items()
        if name.lower() in _PAYMENT_HEADERS
    }
    return Exchange(event.method.decode(), event.target.decode(), payments)
