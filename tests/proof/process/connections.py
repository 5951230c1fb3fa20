"""Requests in bytes, and the responses to them."""

import contextlib
import socket
import time
from pathlib import Path

from tests.conftest import Payer
from tests.proof.process.gateway_process import until

HEALTH = b"GET /api/health HTTP/1.1\r\nHost: a\r\n"
ASK = b"POST /api/x402/slow HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
PRICE = b'{"prompt":"a boat"}'
CHUNKED = ASK + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
# A request that must not be found in another one's body.
HIDDEN = b"GET /api/hidden HTTP/1.1\r\nHost: a\r\n\r\n"


def connected(gateway, *, timeout=60):
    return contextlib.closing(
        socket.create_connection(("127.0.0.1", gateway.port), timeout=timeout)
    )


def received(connection) -> bytes:
    """Return everything until the server closes; a reset is an end as well."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            answer += piece
    return answer


def said(gateway, *pieces) -> bytes:
    """Send bytes in pieces, and return everything until the server closes."""
    with connected(gateway) as connection:
        for piece in pieces:
            with contextlib.suppress(ConnectionError):
                connection.sendall(piece)
            # So that they arrive one by one.
            time.sleep(0.1)
        return received(connection)


def answers(gateway, *pieces) -> list[bytes]:
    """Return the statuses of all final responses to the pieces."""
    parts = said(gateway, *pieces).split(b"HTTP/1.1 ")[1:]
    return [part[:3] for part in parts if not part.startswith(b"1")]


def is_refused(gateway) -> bool:
    try:
        return said(gateway, HEALTH + b"\r\n") == b""
    except ConnectionRefusedError:
        return True


def is_well(gateway) -> bool:
    return gateway.request("GET", "/api/health")[0] == 200


def is_closed(connection, drip) -> bool:
    try:
        connection.sendall(drip)
        return connection.recv(65536) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def next_bytes(connection, drip) -> bytes:
    with contextlib.suppress(TimeoutError):
        connection.sendall(drip)
        return connection.recv(65536)
    return b""


def bought(gateway, slug="slow") -> str:
    """Buy, and repeat the same payment if a busy machine responds late."""
    header = Payer(gateway.chain).header()

    def attempt():
        with contextlib.suppress(OSError):
            return gateway.bought(header, slug)

    return until(attempt)


def bought_big(gateway) -> str:
    """Buy a response larger than a connection's buffers, and wait for it."""
    task_id = bought(gateway, "big")

    def is_done():
        with contextlib.suppress(OSError):
            return gateway.task(task_id)["done"]

    until(is_done)
    return task_id


def is_held(gateway, connection) -> bool:
    """Whether the server's process still has its end of a connection open."""
    ports = f":{gateway.port:04X}", f":{connection.getsockname()[1]:04X}"
    rows = [row.split() for row in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = [row for row in rows if (row[1][-5:], row[2][-5:]) == ports]
    # A socket that no process has open has no inode.
    return any(row[9] != "0" for row in ends)


def head_of(size: int) -> bytes:
    """Return a whole head of `size` bytes."""
    return HEALTH + b"A: " + b"x" * (size - len(HEALTH) - 7) + b"\r\n\r\n"


def padded(size: int, count: int) -> bytes:
    """Return a price request, padded by `count` chunks of `size` spaces."""
    chunk = b"%x\r\n%b\r\n" % (size, b" " * size)
    first = b"%x\r\n%b\r\n" % (len(PRICE), PRICE)
    return CHUNKED + first + chunk * count + b"0\r\n\r\n"
