"""Connections that are closed once too many bytes wait for their clients."""

import pytest

from gateway.web.server import connection_limits
from gateway.web.server.connection_limits import PIECE_BYTES, Outbox, UnreadMemory

# The numbers of waiting connections with one piece, each with the piece that its app holds.
IN_ALL, PER_ADDRESS = 8, 4


class Transport:
    """A connection with one waiting piece."""

    def __init__(self) -> None:
        self.is_cut_off = False

    def get_write_buffer_size(self) -> int:
        return PIECE_BYTES

    def abort(self) -> None:
        self.is_cut_off = True


@pytest.fixture
def memory(monkeypatch) -> UnreadMemory:
    monkeypatch.setattr(connection_limits, "MAX_BYTES", IN_ALL * 2 * PIECE_BYTES)
    monkeypatch.setattr(connection_limits, "MAX_BYTES_PER_ADDRESS", PER_ADDRESS * 2 * PIECE_BYTES)
    return UnreadMemory()


@pytest.fixture
def waits(memory):
    """Let a connection of an address wait; returns its server side."""

    def wait(address: str) -> tuple[Transport, Outbox]:
        transport = Transport()
        outbox = Outbox(transport)
        outbox.belong_to(memory, address)
        outbox.begin_wait()
        return transport, outbox

    return wait


def _cut_off(waiting) -> list[bool]:
    return [transport.is_cut_off for transport, _ in waiting]


def test_the_slowest_of_an_address_is_cut_off_beyond_its_share(waits):
    waiting = [waits("a") for _ in range(PER_ADDRESS + 2)]
    assert _cut_off(waiting) == [True, True, False, False, False, False]


def test_who_reads_a_piece_is_not_the_slowest(waits):
    slow, reading, *others = [waits("a") for _ in range(PER_ADDRESS)]
    _, outbox = slow
    outbox.end_wait()
    outbox.begin_wait()
    waits("a")
    assert _cut_off([slow, reading, *others]) == [False, True, False, False]


def test_beyond_all_bytes_the_address_that_takes_most_gives_way(waits):
    honest = [waits("b")]
    greedy = [waits(address) for address in "cd" for _ in range(PER_ADDRESS - 1)]
    honest += [waits("e"), waits("f")]
    assert _cut_off(honest) == [False, False, False]
    assert _cut_off(greedy) == [True, False, False, False, False, False]


def test_who_has_read_all_or_is_gone_leaves_room(waits):
    for _ in range(3 * IN_ALL):
        transport, outbox = waits("a")
        outbox.end_wait()
        assert not transport.is_cut_off
        transport, outbox = waits("b")
        outbox.end()
        assert not transport.is_cut_off


def test_bytes_are_counted_for_the_address_that_asked_for_them(memory, waits):
    _, outbox = waits("a")
    # The next request on the connection is another client's, through a proxy.
    outbox.belong_to(memory, "b")
    waiting = [waits("b") for _ in range(PER_ADDRESS)]
    assert not any(_cut_off(waiting))
    outbox.end_wait()
    waiting = [waits("a") for _ in range(PER_ADDRESS)]
    assert not any(_cut_off(waiting))
