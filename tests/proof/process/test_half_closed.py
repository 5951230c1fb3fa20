"""A client that closes its half after the request, as `nc -N` does, still gets its answer."""

import json
import socket

import pytest

from tests.conftest import Payer
from tests.proof.process.connections import connected, received

PATHS = [b"/llms.txt", b"/api/health", b"/api/ready", b"/openapi.json"]


def ask_and_shut(gateway, request):
    with connected(gateway, timeout=240) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return received(connection)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_pages_are_answered(impatient, version):
    for path in PATHS * 5:
        answer = ask_and_shut(impatient, b"GET %b HTTP/%b\r\nHost: a\r\n\r\n" % (path, version))
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.split()[1] in (b"200", b"503"), path
        length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
        assert len(body) == int(length) > 0


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_paid_request_and_a_waiting_poll_are_answered(impatient, version):
    payment, data = Payer(impatient.chain).header(), b'{"prompt":"a boat"}'
    fields = b"Host: a\r\nContent-Type: application/json\r\nX-PAYMENT: %b\r\n" % payment.encode()
    head = b"POST /api/x402/slow HTTP/%b\r\n%bContent-Length: 19\r\n\r\n" % (version, fields)
    answer = ask_and_shut(impatient, head + data)
    assert b" 200 " in answer.partition(b"\r\n")[0]
    task_id = json.loads(answer.partition(b"\r\n\r\n")[2])["taskId"]
    poll = b"GET /api/task/%b?wait=1 HTTP/%b\r\nHost: a\r\n\r\n" % (task_id.encode(), version)
    answer = ask_and_shut(impatient, poll)
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] in ("queued", "processing")


def test_pipelined_requests_are_all_answered(impatient):
    asked = b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n" * 3
    assert ask_and_shut(impatient, asked).count(b"HTTP/1.1 200") == 3


def test_half_a_request_gets_no_answer(impatient):
    assert ask_and_shut(impatient, b"GET /api/health HTTP/1.1\r\nHo") == b""
