"""The server speaks HTTP/1.1 only, and says so before it closes a connection."""

import contextlib
import http.client
import socket

import pytest

from tests.test_process import key, served  # noqa: F401 - fixtures


@pytest.fixture
def gateway(served):  # noqa: F811
    served.start()
    return served


def said(gateway, *, until_closed: bool, data: bytes) -> bytes:
    """Send bytes; return the head of the answer, or everything until the server closes."""
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
