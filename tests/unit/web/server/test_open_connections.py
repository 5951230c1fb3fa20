"""When descriptors run short, the address with the most connections makes room for the others."""

import contextlib
import random
import resource
from collections import Counter

import attrs
import pytest
import structlog

from gateway.web.server.open_connections import (
    Connections,
    most_connections,
    raise_descriptor_limit,
)


@attrs.define(eq=False)
class Connection:
    """A connection that is its own transport."""

    connections: Connections
    address: str
    is_idle: bool = True
    is_open: bool = True

    def get_extra_info(self, name):
        assert name == "peername"
        return (self.address, 4000) if self.address else ""

    def cut_off(self):
        self.is_open = False
        self.connections.remove(self)


@attrs.define
class Server:
    most: int
    connections: Connections = attrs.field(
        default=attrs.Factory(lambda self: Connections(most=lambda: self.most), takes_self=True)
    )
    all: list = attrs.field(factory=list)

    def connect(self, address, **changes):
        connection = Connection(self.connections, address, **changes)
        self.connections.admit(connection, connection)
        self.all.append(connection)
        return connection.is_open

    def open(self):
        return Counter(one.address for one in self.all if one.is_open)


def test_one_address_alone_is_refused_beyond_the_limit():
    server = Server(5)
    assert [server.connect("10.0.0.1") for _ in range(7)] == [True] * 5 + [False] * 2
    server.all[0].cut_off()
    assert server.connect("10.0.0.1")
    assert not server.connect("10.0.0.1")


def test_a_flood_makes_room_for_everybody_else_oldest_first():
    server = Server(10)
    for _ in range(30):
        server.connect("10.0.0.1")
    for number in range(2, 6):
        assert server.connect(f"10.0.0.{number}")
    assert server.open()["10.0.0.1"] == 6
    assert [one.is_open for one in server.all[:10]] == [False] * 4 + [True] * 6
    # The flood gets none of them back.
    assert not server.connect("10.0.0.1")


def test_a_request_in_progress_is_not_cut_off():
    server = Server(4)
    for _ in range(3):
        server.connect("10.0.0.1", is_idle=False)
    server.connect("10.0.0.1")
    assert server.connect("10.0.0.2")
    assert not server.connect("10.0.0.3")
    assert server.open() == {"10.0.0.1": 3, "10.0.0.2": 1}


@pytest.mark.parametrize("busy", [64, 600, 2_000])
def test_busy_connections_hide_no_idle_one_for_long(busy):
    server = Server(busy + 10)
    for number in range(busy + 10):
        assert server.connect("10.0.0.1", is_idle=number >= busy)
    came = [server.connect("10.0.0.2") for _ in range(10 + busy // 100)]
    # One is closed for each that comes, whichever is idle: neither a busy nor a new one.
    assert came.count(True) == server.open()["10.0.0.2"] == 10
    assert sum(one.is_open and one.address == "10.0.0.1" for one in server.all) == busy


def test_busy_addresses_hide_no_idle_one_for_long():
    server = Server(2_000)
    for number in range(1_000):
        for _ in range(2):
            server.connect(f"10.1.{number // 250}.{number % 250}", is_idle=number >= 900)
    came = [server.connect("10.2.0.1") for _ in range(6)]
    assert came.count(True) == 2
    assert server.connections._highest == 2
    assert server.open().total() == 2_000


def test_a_new_connection_counts_for_the_network_of_its_customer():
    server = Server(4)
    flood = [server.connect(f"2001:db8:0:7::{number:x}") for number in range(1, 7)]
    assert flood == [True] * 4 + [False] * 2
    assert server.connect("2001:db8:0:8::1")
    # As uvloop reports a socket without an address.
    assert server.connect("")


def test_many_addresses_with_one_connection_each_make_room_too():
    server = Server(100)
    for number in range(1000):
        assert server.connect(f"10.1.{number // 250}.{number % 250}")
    assert server.open().total() == 100


def test_the_numbers_stay_right_whatever_comes_and_goes():
    chance, server = random.Random(45), Server(40)
    for _ in range(3000):
        if chance.random() < 0.6:
            server.connect(f"10.0.0.{chance.randrange(9)}", is_idle=chance.random() < 0.8)
        elif still := [one for one in server.all if one.is_open]:
            chance.choice(still).cut_off()
        found, held = server.open(), server.connections
        assert {name: len(each) for name, each in held._held.items()} == found
        assert held._highest == max(found.values(), default=0)
        assert found.total() <= 40
    for one in server.all:
        one.cut_off()
    assert (held._held, held._by_number, held._addresses) == ({}, {}, {})


def test_refusals_are_logged_but_not_each():
    server = Server(1)
    with structlog.testing.capture_logs() as lines:
        for _ in range(500):
            server.connect("10.0.0.1")
    assert [line["event"] for line in lines] == ["connections.refused"]


@contextlib.contextmanager
def limits(soft):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield before[1]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(("soft", "most"), [(1024, 824), (256, 128), (4096, 3896)])
def test_some_descriptors_are_kept_for_other_uses(soft, most):
    with limits(soft):
        assert most_connections() == most


def test_the_soft_limit_is_raised_and_never_lowered():
    with limits(1024) as hard:
        raise_descriptor_limit()
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert soft == (65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536))
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == soft
