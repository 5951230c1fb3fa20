"""The server supports HTTP/1.1 only, and responds so before it closes a connection."""

import contextlib
import http.client
import socket
from pathlib import Path

import pytest

from tests.proof.process.conftest import PASSWORD
from tests.proof.process.gateway_process import until


def said(gateway, *, until_closed: bool, data: bytes) -> bytes:
    """Send bytes; return the head of the response, or everything until the server closes."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=25) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
            if not until_closed and b"\r\n\r\n" in answer:
                break
    return answer


def test_an_upgrade_to_http2_is_ignored(gateway):
    ask = (
        b"GET /api/health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
        b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    )
    answer = said(gateway, until_closed=False, data=ask)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" not in answer.lower()


def test_http2_with_prior_knowledge_is_refused(gateway):
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
    answer = said(gateway, until_closed=True, data=preface)
    assert answer.startswith(b"HTTP/1.1 505 ")
    assert gateway.request("GET", "/api/health")[0] == 200


@pytest.mark.parametrize("path", ["/admin/login", "/api/proxy-generate"])
def test_a_body_too_large_is_told_that_the_connection_closes(gateway, path):
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n"
    answer = said(gateway, until_closed=True, data=head.encode())
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"\r\nconnection: close\r\n" in answer.lower()


def test_a_request_read_to_its_end_keeps_the_connection(gateway):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=25)
    with contextlib.closing(connection):
        used = set()
        for _ in range(2):
            connection.request("POST", "/api/x402/slow", b"{}")
            used.add(connection.sock.getsockname())
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("Connection")) == (400, None)
            answer.read()
    assert len(used) == 1


@pytest.mark.parametrize(("path", "status"), [("/admin/login", b"413"), ("/api/x402/none", b"404")])
def test_a_client_that_reads_only_after_its_last_byte_gets_its_answer(gateway, path, status):
    size = 10_000_000
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=25) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1, socket.MSG_PEEK)  # the answer is there, and closing has begun
        for _ in range(100):
            connection.sendall(b"x" * (size // 100))
        assert connection.recv(65536)[9:12] == status


def test_what_is_sent_after_an_answer_has_an_end(gateway):
    head = b"POST /api/x402/none HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=25) as connection:
        connection.sendall(head)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 10**9:
                sent += connection.send(b"x" * 65536)
    assert sent < 10**9


def test_a_client_that_closes_frees_its_socket_at_once(gateway):
    folder = Path(f"/proc/{gateway.process.pid}/fd")
    before = len(list(folder.iterdir()))
    for ask in (b"", b"GET /api/health HTTP/1.1\r\nHost: a\r\n\r\n"):
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", gateway.port), timeout=25) as connection:
                connection.sendall(ask)
                assert not ask or connection.recv(65536)
    # Hypercorn's own timer takes half a minute.
    until(lambda: len(list(folder.iterdir())) < before + 50)


def test_an_upgrade_to_websocket_is_ignored(gateway):
    ask = (
        b"GET /api/health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    answer = said(gateway, until_closed=False, data=ask)
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_method_that_is_the_password_is_answered_like_any_other(gateway):
    received = []
    for method in (PASSWORD.encode(), b"NONE"):
        ask = method + b" /api/health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        head, _, body = said(gateway, until_closed=True, data=ask).partition(b"\r\n\r\n")
        received.append((head.split()[1], body))
    assert received[0] == received[1]
    # uvicorn's parser knows the registered methods only.
    assert received[0][0] in (b"405", b"400")


@pytest.mark.parametrize("path", ["/api/x402/slow", "/openapi.json", "/favicon.ico"])
def test_an_answer_to_head_is_the_head_of_the_answer_to_get(gateway, path):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=25)
    with contextlib.closing(connection):
        heads, sizes = [], []
        # A body after the first response would be taken for the second one.
        for method in ("HEAD", "GET"):
            connection.request(method, path)
            answer = connection.getresponse()
            heads.append((answer.status, answer.headers["Content-Length"]))
            sizes.append(len(answer.read()))
    assert heads[0] == heads[1]
    assert sizes == [0, int(heads[0][1])]
