"""The ends of requests in a connection's bytes, and refused requests."""

from http import HTTPStatus

import pytest

from gateway.web.server.request_framing import RefusedError, has_head, take_head

HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


def body_of(head: bytes, held: bytearray):
    """Return the body of a whole head whose rest is `held`."""
    held += head
    _, body = take_head(held, 0)
    return body


def taken(data: bytes, size: int) -> tuple[bytes, bytes]:
    """Take one request that comes in pieces; return it and the rest."""
    held, body, found = bytearray(), None, b""
    for start in range(0, len(data), size):
        held += data[start : start + size]
        if body is None and (head := take_head(held, 0)):
            found, body = head
        if body is not None:
            found += body.take(held)
    assert body is not None
    assert body.is_complete
    return found, bytes(held)


def take_all(body, held: bytearray, pieces: list[bytes]) -> None:
    for piece in pieces:
        held += piece
        body.take(held)


REQUESTS = {
    "no body": HEAD + b"\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nHost: a\n\n",
    "a length": HEAD + b"Content-Length: 5\r\n\r\nGET /",
    "one length twice": HEAD + b"content-length: 2\r\nContent-Length: 2, 2\r\n\r\n{}",
    "chunks": HEAD + CHUNKED + b"3\r\nGET\r\nA;x=y\r\n /0\r\n\r\n0\r\n\r\n0\r\n\r\n",
    "trailers": HEAD + CHUNKED + b"1\r\nx\r\n0\r\na: b\r\nc: d\r\n\r\n",
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=list(REQUESTS))
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_request_ends_where_it_ends_in_whatever_pieces_it_comes(request_, size):
    found, left = taken(request_, size)
    assert (found, left) == (request_, b"")
    assert taken(request_ + NEXT, 1000) == (request_, NEXT)


UPGRADES = {
    "one line": b"Upgrade: h2c\r\n",
    "small letters": b"upgrade:websocket\r\n",
    "a line that goes on": b"UPGRADE: a,\r\n b\r\n\tc\r\n",
}


@pytest.mark.parametrize("upgrade", UPGRADES.values(), ids=list(UPGRADES))
def test_an_upgrade_is_left_out(upgrade):
    found, _ = taken(HEAD + upgrade + b"X-Upgrade: y\r\n\r\n", 1000)
    assert found == HEAD + b"X-Upgrade: y\r\n\r\n"
    assert taken(HEAD + upgrade + b"\r\n", 1000)[0] == HEAD + b"\r\n"


REFUSED = {
    "a blank line first": (b"\r\n" + HEAD, HTTPStatus.BAD_REQUEST),
    "TLS before its head is whole": (b"\x16\x03\x01", HTTPStatus.BAD_REQUEST),
    "no version": (b"GET /\r\n\r\n", HTTPStatus.BAD_REQUEST),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\n", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED),
    "two lengths": (HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    "an empty length": (HEAD + b"Content-Length:\r\n\r\n", 400),
    "a signed length": (HEAD + b"Content-Length: +1\r\n\r\n", 400),
    "a length and chunks": (HEAD + b"Content-Length: 1\r\n" + CHUNKED, 400),
    "chunks twice": (HEAD + b"Transfer-Encoding: chunked\r\n" + CHUNKED, 501),
    "another coding": (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
    "too many headers": (HEAD + b"a:\r\n" * 101, 431),
    "a head too long": (HEAD + b"a" * 48 * 1024, 431),
}


@pytest.mark.parametrize(("head", "status"), REFUSED.values(), ids=list(REFUSED))
def test_a_head_is_refused(head, status):
    with pytest.raises(RefusedError) as refusal:
        take_head(bytearray(head), 0)
    assert refusal.value.status == status


def test_a_body_that_states_its_length_may_come_byte_by_byte():
    held = bytearray()
    body = body_of(HEAD + b"Content-Length: 3000\r\n\r\n", held)
    for _ in range(3000):
        held += b"x"
        assert body.take(held) == b"x"
    assert body.is_complete


def test_one_chunk_may_come_byte_by_byte():
    held = bytearray()
    body = body_of(HEAD + CHUNKED + b"bb8\r\n", held)
    body.take(held)
    for _ in range(3000):
        held += b"x"
        assert body.take(held) == b"x"


@pytest.mark.parametrize("size", [1, 63])
def test_short_chunks_are_counted_whether_they_come_together_or_one_by_one(size):
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size)
    for pieces in ([chunk] * 1001, [chunk * 1001]):
        held = bytearray()
        body = body_of(HEAD + CHUNKED, held)
        with pytest.raises(RefusedError) as refusal:
            take_all(body, held, pieces)
        assert refusal.value.status == HTTPStatus.BAD_REQUEST


@pytest.mark.parametrize("line", [b"zz\r\n", b"-1\r\n", b"\r\n", b"f" * 50_000])
def test_a_broken_chunk_is_refused(line):
    held = bytearray()
    body = body_of(HEAD + CHUNKED, held)
    held += line
    with pytest.raises(RefusedError):
        body.take(held)


@pytest.mark.parametrize("trailers", [b"a:\r\n" * 101 + b"\r\n", b"a: " + b"x" * 50_000])
def test_trailers_have_the_limits_of_a_head(trailers):
    held = bytearray()
    body = body_of(HEAD + CHUNKED + b"0\r\n" + b"a:\r\n" * 100 + b"\r\n", held)
    body.take(held)
    assert body.is_complete
    body = body_of(HEAD + CHUNKED + b"0\r\n" + trailers, held)
    with pytest.raises(RefusedError) as refusal:
        body.take(held)
    assert refusal.value.status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


def test_a_head_is_found_behind_bytes_that_were_searched_before():
    held = bytearray(HEAD + b"\r")
    assert take_head(held, 0) is None
    searched = len(held)
    held += b"\n" + NEXT
    assert has_head(held)
    assert take_head(held, searched)[0] == HEAD + b"\r\n"
    assert held == NEXT
