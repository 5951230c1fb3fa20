"""A guard closes a connection if the server does not."""

import asyncio

from gateway.web.server import connection_guard
from gateway.web.server.connection_guard import Guard


class Wire:
    """A transport that records how it ends."""

    def __init__(self) -> None:
        self.is_aborted = asyncio.Event()
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.is_aborted.set()

    def is_closing(self) -> bool:
        return self.is_aborted.is_set()

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


class SilentServer:
    """A server that accepts everything and never closes."""

    def __init__(self) -> None:
        self.taken = b""

    def connection_made(self, transport) -> None:
        pass

    def connection_lost(self, error) -> None:
        pass

    def data_received(self, data: bytes) -> None:
        self.taken += data


async def test_a_server_that_does_not_close_an_idle_connection_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(connection_guard, "IDLE_S", 0.01)
    wire, server = Wire(), SilentServer()
    guard = Guard(server, set())
    guard.connection_made(wire)
    guard.data_received(b"GET / HT")
    async with asyncio.timeout(60):
        await wire.is_aborted.wait()
    assert server.taken
    assert b"GET" not in server.taken
    guard.connection_lost(None)
