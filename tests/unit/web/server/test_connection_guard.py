"""A guard closes a connection if the server does not."""

import asyncio

import pytest

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

    def close(self) -> None:
        pass

    def pause_reading(self) -> None:
        pass

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

    def eof_received(self) -> None:
        pass


def asked_and_half_closed() -> Guard:
    guard = Guard(SilentServer(), set())
    guard.connection_made(Wire())
    guard.data_received(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    return guard


@pytest.mark.parametrize("is_begun_before", [True, False])
async def test_a_half_closed_client_is_given_up_only_until_its_answer_begins(
    monkeypatch, is_begun_before
):
    monkeypatch.setattr(connection_guard, "HALF_CLOSED_S", 0.01)
    begun, waiting, later = (asked_and_half_closed() for _ in range(3))
    if is_begun_before:
        begun.begin_answer()
    for guard in (begun, waiting):
        assert guard.eof_received()
    begun.begin_answer()
    async with asyncio.timeout(60):
        await waiting.wait_for_disconnect()
        # Its time, too, begins after that of the first, several times.
        assert later.eof_received()
        await later.wait_for_disconnect()
    assert waiting.is_disconnected
    assert not begun.is_disconnected
    for guard in (begun, waiting, later):
        guard.connection_lost(None)
    assert begun.is_disconnected


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
