"""What h11 refuses of a body: many short chunks, however a body that says its length arrives."""

import h11
import pytest

from gateway.web.server.bounded_heads import BoundedConnection

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"


def read(connection: BoundedConnection, data: bytes) -> bytes:
    """Return the body's bytes in what has come."""
    connection.receive_data(data)
    body = b""
    while isinstance(event := connection.next_event(), h11.Event):
        body += getattr(event, "data", b"")
    return body


def test_a_body_that_says_its_length_may_come_byte_by_byte():
    connection = BoundedConnection()
    read(connection, HEAD + b"Content-Length: 3000\r\n\r\n")
    assert b"".join(read(connection, b"x") for _ in range(3000)) == b"x" * 3000


def test_one_chunk_may_come_byte_by_byte():
    connection = BoundedConnection()
    read(connection, HEAD + b"Transfer-Encoding: chunked\r\n\r\nbb8\r\n")
    assert b"".join(read(connection, b"x") for _ in range(3000)) == b"x" * 3000


@pytest.mark.parametrize("size", [1, 63])
def test_chunks_are_counted_whether_they_come_together_or_one_by_one(size):
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size)
    for pieces in ([chunk] * 1001, [chunk * 1001]):
        connection = BoundedConnection()
        read(connection, HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(h11.RemoteProtocolError, match="short chunks"):
            [read(connection, piece) for piece in pieces]
