"""Broken heads and smuggled lengths on a socket: the same responses as without the fast path."""

import re
import socket

import pytest

BODY = b'{"prompt":"a boat"}'
TYPE = b"Content-Type: application/json\r\n"
# The server closes after it, so a request smuggled in before changes the number of responses.
LAST = b"GET /api/task/last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def price(*lines: bytes, body: bytes = BODY, version: bytes = b"1.1") -> bytes:
    """Return a price request with other header lines than a valid one."""
    head = b"\r\n".join((b"POST /api/x402/slow HTTP/" + version, *lines))
    return head + b"\r\n" + TYPE + b"\r\n" + body


def length(text: bytes | int = len(BODY)) -> bytes:
    return b"Content-Length: " + (b"%d" % text if isinstance(text, int) else text)


SMUGGLED = b"GET /api/task/none HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
HOST = b"Host: a"
ASKED = {
    "good": price(HOST, length()),
    "no body": price(HOST, body=b""),
    "HTTP/1.0": price(length(), version=b"1.0"),
    "HTTP/1.0 with a host": price(HOST, length(), version=b"1.0"),
    "no host": price(length()),
    "two hosts": price(HOST, b"Host: b", length()),
    "one host twice": price(HOST, HOST, length()),
    "a host that is none": price(b"Host: a b", length()),
    "two lengths": price(HOST, length(5), length()),
    "one length twice": price(HOST, length(), length()),
    "a list of lengths": price(HOST, length(b"19, 19")),
    "a list of two lengths": price(HOST, length(b"19, 5")),
    "a signed length": price(HOST, length(b"+19")),
    "a negative length": price(HOST, length(b"-1")),
    "a hexadecimal length": price(HOST, length(b"0x13")),
    "an underscore in the length": price(HOST, length(b"1_9")),
    "zeros before the length": price(HOST, length(b"0000000019")),
    "an endless length": price(HOST, length(b"9" * 30)),
    "an empty length": price(HOST, length(b"")),
    "spaces around the length": price(HOST, length(b"  19\t ")),
    "a length that is too short": price(HOST, length(5)),
    "a length of 0 and a request as the body": price(HOST, length(0), body=SMUGGLED),
    "no length and a request as the body": price(HOST, body=SMUGGLED),
    "a request inside the body": price(HOST, length(len(SMUGGLED)), body=SMUGGLED),
    "chunks": price(HOST, CHUNKED, body=b"13\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "chunks and a length": price(HOST, CHUNKED, length(), body=b"0\r\n\r\n" + SMUGGLED),
    "a length and chunks": price(HOST, length(5), CHUNKED, body=b"0\r\n\r\n" + SMUGGLED),
    "chunks twice": price(HOST, CHUNKED, CHUNKED, body=b"0\r\n\r\n"),
    "an unknown coding": price(HOST, b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "a disguised coding": price(HOST, length(), b"Transfer-Encoding: x\x0bchunked"),
    "a space before the colon": price(HOST, b"Content-Length : 19"),
    "a line that goes on": price(HOST, b"X-Long: a\r\n b", length()),
    "a bare line feed": price(HOST, b"X-A: a\nContent-Length: 19"),
    "a bare carriage return": price(HOST, b"X-A: a\rContent-Length: 19"),
    "a null byte": price(HOST, b"X-A: \x00", length()),
    "a header without a name": price(HOST, b": a", length()),
    "a header without a colon": price(HOST, b"nonsense", length()),
    "bytes above ASCII": price(HOST, b"X-Request-Id: \xfc", length()),
    "a payment header that is empty": price(HOST, b"X-PAYMENT:", length()),
    "two payment headers": price(HOST, b"X-PAYMENT: a", b"X-PAYMENT: b", length()),
    "a head that is too long": price(HOST, b"X-A: " + b"a" * 70_000, length()),
    "an address as the target": b"GET http://b/api/task/none HTTP/1.1\r\nHost: a\r\n\r\n",
    "escapes in the path": b"GET /api/t%61sk/none HTTP/1.1\r\nHost: a\r\n\r\n",
    "a space in the path": b"GET /api/task/a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "a poll with a body": b"GET /api/task/none HTTP/1.1\r\nHost: a\r\n" + length(2) + b"\r\n\r\n{}",
    "a small method": b"get /api/task/none HTTP/1.1\r\nHost: a\r\n\r\n",
    "three in a row": price(HOST, length()) * 3,
}


def said(gateway, data: bytes) -> list[bytes]:
    """Return the lines that come back until the server closes, without variable parts."""
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=60) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    lines = re.split(rb"\r\n|(?<=\n)", re.sub(rb"(HTTP/1\.1 \d)", rb"\r\n\1", answer))
    return sorted(line for line in lines if not line.startswith((b"date:", b"x-request-id:")))


def statuses(lines: list[bytes]) -> list[int]:
    """Return the status of each response; only uvicorn adds a phrase to it."""
    return [int(line.split()[1]) for line in lines if line.startswith(b"HTTP/1.1 ")]


def test_odd_bytes_get_the_same_bytes_back_with_and_without_the_fast_path(both):
    fast, quart = both
    for name, data in ASKED.items():
        assert said(fast, data + LAST) == said(quart, data + LAST), name
    assert statuses(said(fast, ASKED["three in a row"] + LAST)) == [402, 402, 402, 404]


@pytest.mark.parametrize("kept", [0, 1, 18])
def test_a_body_that_stops_gets_408_with_and_without_the_fast_path(both, kept):
    answers = [said(gateway, price(HOST, length(), body=BODY[:kept])) for gateway in both]
    assert answers[0] == answers[1]
    assert statuses(answers[0]) == [408]
    assert b"connection: close" in answers[0]
