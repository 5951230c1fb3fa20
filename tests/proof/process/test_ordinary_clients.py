"""Behaviour of each server that ordinary clients rely on."""

import contextlib
import re
import socket
import struct
from urllib.parse import urlsplit

from tests.conftest import PNG, Payer, one_server
from tests.proof.process.connections import (
    ASK,
    HEALTH,
    PRICE,
    answers,
    connected,
    is_refused,
    is_well,
    received,
    said,
)
from tests.proof.process.gateway_process import PATIENCE_S, until


def test_requests_sent_together_are_answered_in_their_order(gateway):
    more = b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n"
    last = b"GET /api/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    ask = ASK + b"Content-Length: %d\r\n\r\n%b" % (len(PRICE), PRICE)
    assert answers(gateway, ask + more + last) == [b"402", b"404", b"200"]


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it(gateway):
    head = ASK + b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with connected(gateway) as connection:
        connection.sendall(head % len(PRICE))
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(PRICE)
        assert received(connection).startswith(b"HTTP/1.1 402 ")


def test_an_answer_names_no_server_and_its_date(gateway):
    head = said(gateway, HEALTH + b"Connection: close\r\n\r\n").partition(b"\r\n\r\n")[0]
    names = [line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]]
    assert b"server" not in names
    assert names.count(b"date") == 1
    assert len(names) == len(set(names))


def test_a_client_that_comes_before_the_app_has_started_is_answered(served):
    """The port opens first, and the app starts slowly."""
    served.patch(
        "import asyncio, pathlib, gateway.app as app\n"
        "check = app.check_network\n"
        "async def slowly(*given):\n"
        f"    while not pathlib.Path({str(served.folder / 'go-on')!r}).exists():\n"
        "        await asyncio.sleep(0.02)\n"
        "    await check(*given)\n"
        "app.check_network = slowly\n"
    )
    served.process = served._run()

    def first():
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", served.port), timeout=60)

    with contextlib.closing(until(first)) as connection:
        connection.sendall(HEALTH + b"Connection: close\r\n\r\n")
        (served.folder / "go-on").touch()
        assert received(connection).startswith(b"HTTP/1.1 200 ")


def test_a_file_is_sent_whole_in_part_or_not_at_all(gateway):
    gateway.let_go()
    task = gateway.task(gateway.bought(Payer(gateway.chain).header()), wait_s=20)
    url = urlsplit(task["result"]["outputs"][0]["url"])
    path = f"{url.path}?{url.query}".encode()
    for method in (b"GET", b"HEAD"):
        ask = method + b" " + path + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%b\r\n"
        head, _, body = said(gateway, ask % b"").partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert body == (PNG if method == b"GET" else b"")
        assert b"\r\ncontent-length: %d" % len(PNG) in head.lower()
        etag = re.search(rb"(?i)etag: (\S+)", head)[1]
        assert answers(gateway, ask % (b"If-None-Match: %b\r\n" % etag)) == [b"304"]
        assert answers(gateway, ask % b"Range: bytes=0-3\r\n") == [b"206"]


def test_a_reset_connection_is_no_line_in_the_log(gateway):
    rude = struct.pack("ii", 1, 0)
    for begun in (b"", HEALTH, ASK + b"Content-Length: 5\r\n\r\n{", HEALTH + b"\r\n"):
        with connected(gateway) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, rude)
            connection.sendall(begun)
    assert is_well(gateway)
    assert "Traceback" not in gateway.log_text()
    assert "rror" not in gateway.log_text()


@one_server
def test_a_body_that_is_on_its_way_at_the_stop_gets_its_answer_and_no_connection(
    served,
    http_server,
):
    patient = "import gateway.web.server.connection_limits as limits\nlimits.GRACE_S = 100\n"
    served.patch(patient, before_imports=True)
    served.start()
    with connected(served) as connection:
        length = b"Content-Length: %d\r\n\r\n" % len(PRICE)
        connection.sendall(ASK + b"Expect: 100-continue\r\n" + length)
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        served.stop()
        until(lambda: is_refused(served))
        connection.sendall(PRICE)
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 ")
    # Hypercorn closes without the header.
    assert b"\r\nconnection: close\r\n" in answer.lower() or http_server == "hypercorn"
    assert served.process.wait(PATIENCE_S) == 0
