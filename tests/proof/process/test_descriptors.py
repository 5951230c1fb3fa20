"""A flood of connections leaves descriptors for paid work and for other addresses."""

import contextlib
import re
import socket
import sys
from pathlib import Path

import pytest

from tests.conftest import Payer, one_server
from tests.proof.process.connections import HEALTH, received
from tests.proof.process.gateway_process import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.2 and /proc")
SHORT = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))\n"
LOW = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
"""


def flood(gateway, stack, count, address="127.0.0.1"):
    """Open connections, each with a request that it does not repeat."""
    for _ in range(count):
        with contextlib.suppress(OSError):
            one = socket.create_connection(
                ("127.0.0.1", gateway.port), timeout=60, source_address=(address, 0)
            )
            stack.enter_context(one)
            one.sendall(HEALTH + b"\r\n")


def ask_from(address, gateway, request):
    """Return the response to a request, or nothing if the connection was refused."""
    place = ("127.0.0.1", gateway.port)
    with socket.create_connection(place, timeout=60, source_address=(address, 0)) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(request + b"Connection: close\r\n\r\n")
        return received(connection)


@one_server
def test_a_flood_from_one_address_leaves_room_for_others_and_for_paid_work(served, chain):
    served.patch(SHORT, before_imports=True)
    served.start()
    task_id = served.bought(Payer(chain).header())
    with contextlib.ExitStack() as stack:
        flood(served, stack, 700)
        served.let_go()
        for number in range(2, 8):
            assert b" 200 " in ask_from(f"127.0.0.{number}", served, HEALTH)

        def is_done():
            poll = f"GET /api/task/{task_id} HTTP/1.1\r\nHost: a\r\n".encode()
            return b'"completed"' in ask_from("127.0.0.9", served, poll)

        until(is_done)
    until(lambda: served.request("GET", "/api/health")[0] == 200)
    assert "connections.refused" in served.log.read_text()
    assert "output.not_stored" not in served.log.read_text()


@one_server
def test_a_low_soft_limit_is_raised_at_the_start(served):
    served.patch(LOW, before_imports=True)
    served.start()
    found = Path(f"/proc/{served.process.pid}/limits").read_text()
    soft, hard = map(int, re.search(r"Max open files +(\d+) +(\d+)", found).groups())
    assert soft == min(hard, 65_536)
