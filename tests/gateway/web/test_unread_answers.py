"""Clients that do not read large responses, on both servers and on real sockets."""

import asyncio
import socket

import attrs
import pytest

from gateway import Result
from gateway.tasks.notifications import LongPolls
from gateway.web.server import connection_limits
from gateway.web.server.connection_limits import PIECE_BYTES
from gateway.web.server.serve import listen
from tests.cases import each
from tests.gateway.web.orders import FILE, order
from tests.http_servers import SERVE
from tests.patience import until

ADDRESS_HEADER = "X-Real-IP"
# More than the operating system's buffers for a client.
SIZE = 8_000_000
# A waiting response holds the app's piece, and all or part of another. So three to five may wait
# per address.
_SHARE = 7 * PIECE_BYTES
_READERS = 8


@pytest.fixture
def settings(settings):
    return attrs.evolve(settings, client_ip_header=ADDRESS_HEADER)


@pytest.fixture
def waits(monkeypatch) -> list[str]:
    """Set small limits; returns the address of each answer that has begun to wait."""
    monkeypatch.setattr(connection_limits, "MAX_BYTES", 2 * _SHARE)
    monkeypatch.setattr(connection_limits, "MAX_BYTES_PER_ADDRESS", _SHARE)
    begun = []
    add = connection_limits.UnreadMemory.add

    def spy(self, outbox, address, size):
        begun.append(address)
        add(self, outbox, address, size)

    monkeypatch.setattr(connection_limits.UnreadMemory, "add", spy)
    return begun


@pytest.fixture
async def port(gateway, http_server):
    """Serve the gateway; yields its port."""
    stop = asyncio.Event()
    with listen("127.0.0.1:0") as listener:
        port = listener.getsockname()[1]
        server = asyncio.create_task(SERVE[http_server](gateway.app.asgi_app, listener, stop))
        yield port
        stop.set()
        await server


@pytest.fixture
async def requests(gateway, provider, payer) -> dict[str, str]:
    """Return requests for large responses, without their last bytes."""
    gateway.services.streams = LongPolls(_READERS + 1, _READERS + 1)
    provider.script = [Result(text="x" * SIZE)]
    task_id = await order(gateway, payer, slug="paper", **FILE)
    task = await gateway.wait(task_id)
    file = task["result"]["outputs"][0]["url"].removeprefix("http://gateway.test")
    paths = {
        "task": (f"/api/task/{task_id}", ""),
        "stream": (f"/api/task/{task_id}", "Accept: text/event-stream\r\n"),
        "file": (file, ""),
        "range": (file, f"Range: bytes=1-{SIZE}\r\n"),
    }
    head = "HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
    return {name: f"GET {path} {head}{more}" for name, (path, more) in paths.items()}


@attrs.define
class Reader:
    """A client that reads only on demand."""

    port: int
    asked: str
    address: str
    _socket: socket.socket = attrs.field(init=False)

    async def ask(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(self._socket, ("127.0.0.1", self.port))
        line = f"{self.asked}{ADDRESS_HEADER}: {self.address}\r\n\r\n"
        await loop.sock_sendall(self._socket, line.encode())

    async def read(self) -> int:
        """Return the number of bytes."""
        loop, size = asyncio.get_running_loop(), 0
        with self._socket:
            try:
                while piece := await loop.sock_recv(self._socket, 1 << 20):
                    size += len(piece)
            except ConnectionResetError:
                pass
        return size


@each("kind", ["task", "stream", "file", "range"])
async def test_the_slowest_of_an_address_are_cut_off_and_others_get_all(
    port, requests, waits, kind
):
    waits.clear()
    readers = [Reader(port, requests[kind], "203.0.113.1") for _ in range(_READERS)]
    other = Reader(port, requests[kind], "203.0.113.2")
    for number, reader in enumerate([other, *readers], 1):
        await reader.ask()
        await until(lambda number=number: len(waits) >= number)
    assert await other.read() >= SIZE
    # While one is being read, no later one may be newer.
    sizes = [await reader.read() for reader in reversed(readers)]
    is_whole = [size >= SIZE for size in sizes]
    assert is_whole == sorted(is_whole, reverse=True), sizes
    assert 3 <= is_whole.count(True) <= 5, sizes
