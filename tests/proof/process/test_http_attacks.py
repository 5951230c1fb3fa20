"""Slow, endless and broken requests to each server: docs/security.md, an unpaid client."""

import contextlib
import sys

import pytest

from tests.proof.process.connections import (
    ASK,
    CHUNKED,
    HEALTH,
    HIDDEN,
    PRICE,
    answers,
    bought_big,
    connected,
    head_of,
    is_closed,
    is_held,
    is_well,
    next_bytes,
    padded,
    received,
    said,
)
from tests.proof.process.gateway_process import until

# -- too slow


def test_a_head_that_does_not_come_is_not_awaited(impatient):
    """However much of it has arrived, byte by byte or at once."""
    asked = HEALTH + b"\r\n"
    begun = [(b"", b""), (b"", b"GET /api/hea"), (b"", HEALTH), (asked, b"G"), (asked, HEALTH)]
    with contextlib.ExitStack() as stack:
        open_ones = {}
        for first, start in begun:
            for drip in (b"", b"x"):
                connection = stack.enter_context(connected(impatient))
                if first:
                    connection.sendall(first)
                    assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
                connection.sendall(start)
                connection.settimeout(0.05)
                open_ones[connection] = drip

        def all_are_closed():
            for connection, drip in list(open_ones.items()):
                if is_closed(connection, drip):
                    del open_ones[connection]
            return not open_ones

        until(all_are_closed)
    assert is_well(impatient)


def test_a_head_that_came_with_another_request_is_awaited_no_longer(impatient):
    assert answers(impatient, HEALTH + b"\r\nGET /api/hea") == [b"200"]


def test_a_connection_stays_after_an_answer_for_longer_than_a_head_may_take(impatient):
    """A proxy closes it, so no buyer's request arrives while we close it."""
    with connected(impatient) as kept, connected(impatient) as silent:
        kept.sendall(HEALTH + b"\r\n")
        assert kept.recv(65536).startswith(b"HTTP/1.1 200 ")
        # Without a request it is closed after that time.
        assert received(silent) == b""
        kept.sendall(HEALTH + b"Connection: close\r\n\r\n")
        assert received(kept).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_is_slow_with_its_body_is_cut_off(impatient):
    for drip in (b"", b" "):
        with connected(impatient, timeout=0.1) as connection:
            connection.sendall(ASK + b"Content-Length: 100000\r\n\r\n{")
            answer = until(lambda: next_bytes(connection, drip))  # noqa: B023 - called at once
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"\r\nconnection: close\r\n" in answer.lower()
    assert is_well(impatient)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_client_that_reads_no_answer_is_cut_off(impatient):
    task_id = bought_big(impatient)
    ask = f"GET /api/task/{task_id} HTTP/1.1\r\nHost: a\r\n".encode()
    with connected(impatient) as keeping, connected(impatient) as closing:
        keeping.sendall(ask + b"\r\n")
        closing.sendall(ask + b"Connection: close\r\n\r\n")
        for connection in (keeping, closing):
            assert connection.recv(1)
            until(lambda: not is_held(impatient, connection))  # noqa: B023 - called at once
    assert is_well(impatient)


# -- too much


def test_a_head_has_an_end(gateway):
    for line in (b"A: " + b"x" * 40_000, b"a:\r\n" * 10_000):
        assert answers(gateway, HEALTH + line, line) == [b"431"]
    assert is_well(gateway)


LONG_HEADS = {
    "22,000 headers": HEALTH + b"a:\r\n" * 22_000 + b"\r\n",
    "101 headers": HEALTH + b"a:\r\n" * 100 + b"\r\n",
    "a long header": head_of(60_000),
    "a byte too many": head_of(48 * 1024 + 1),
}


@pytest.mark.parametrize("head", LONG_HEADS.values(), ids=list(LONG_HEADS))
def test_a_head_that_is_there_as_a_whole_has_the_same_end(gateway, head):
    body = ASK + b"Content-Length: %d\r\n\r\n%b" % (len(PRICE), PRICE)
    assert answers(gateway, head) == [b"431"]
    # After another request uvicorn only closes, once that one has its response.
    assert answers(gateway, HEALTH + b"\r\n" + head) in ([b"200", b"431"], [b"200"])
    for pieces in ([body + head], [body[:-1], body[-1:] + head]):
        assert answers(gateway, *pieces) in ([b"402", b"431"], [b"402"])
    assert answers(gateway, head[:1000], head[1000:]) == [b"431"]
    assert is_well(gateway)


def test_a_head_up_to_the_limits_is_answered(gateway):
    for head in (head_of(48 * 1024), HEALTH + b"a:\r\n" * 98 + b"Connection: close\r\n\r\n"):
        assert said(gateway, head, b"GET\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("trailer", [b"a:\r\n" * 101, b"a:\r\n" * 15_000])
def test_a_trailer_has_as_many_fields_as_a_head(gateway, trailer):
    ask = ASK + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n" % (len(PRICE), PRICE)
    assert answers(gateway, ask + trailer + b"\r\n") == [b"431"]
    assert answers(gateway, ask, trailer + b"\r\n") == [b"431"]
    few = CHUNKED + b"%x\r\n%b\r\n0\r\n" % (len(PRICE), PRICE) + b"a:\r\n" * 10 + b"\r\n"
    assert answers(gateway, few, HIDDEN[:3]) == [b"402"]


def test_a_trailer_has_an_end(gateway):
    ask = ASK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: "
    with connected(gateway) as connection:
        connection.sendall(ask)
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 10**9:
                sent += connection.send(b"x" * 65536)
    assert sent < 10**9
    assert is_well(gateway)


def test_a_body_in_more_than_a_thousand_short_chunks_is_refused(gateway):
    for size, count in ((1, 1_001), (1, 10_000), (63, 1_001)):
        assert answers(gateway, padded(size, count)) == [b"400"]
    for size, count in ((1, 990), (64, 1_020)):
        assert answers(gateway, padded(size, count)) == [b"402"]
    assert is_well(gateway)


def test_a_thousand_requests_in_one_packet_do_no_harm(gateway, http_server):
    found = answers(gateway, (HEALTH + b"\r\n") * 1000 + HEALTH + b"Connection: close\r\n\r\n")
    assert set(found) == {b"200"}
    # Hypercorn reads one after another. uvicorn reads ahead, so it keeps a few and then closes.
    assert (len(found) == 1001) == (http_server == "hypercorn")
    assert is_well(gateway)


# -- ambiguous requests


BROKEN = {
    "no host": b"GET /api/health HTTP/1.1\r\n\r\n",
    "two hosts": HEALTH + b"Host: b\r\n\r\n",
    "no version": b"GET /api/health\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "a space in a name": HEALTH + b"A b: c\r\n\r\n",
    "a NUL": HEALTH + b"A: \0\r\n\r\n",
    "a bare CR": HEALTH + b"A: b\rc: d\r\n\r\n",
    "letters of no alphabet": b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n",
    "two lengths": ASK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a signed length": ASK + b"Content-Length: +2\r\n\r\n{}",
    "a negative length": ASK + b"Content-Length: -2\r\n\r\n{}",
    "a length in hex": ASK + b"Content-Length: 0x2\r\n\r\n{}",
    "a length without end": ASK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n{}",
    "a space before the colon": ASK + b"Content-Length : 2\r\n\r\n{}",
    "length, then chunks": ASK
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks, then length": ASK
    + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "chunked twice": ASK + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": ASK + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a coding before chunked": ASK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "no coding": ASK + b"Transfer-Encoding: identity\r\n\r\n{}",
    "a chunk without a size": ASK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "a chunk in 0x": ASK + b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "a chunk too large": ASK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\n{}",
}


REFUSED = ([b"400"], [b"501"], [b"505"])


def test_a_broken_request_is_refused_and_nothing_after_it_is_read(gateway):
    found = {name: answers(gateway, ask + HIDDEN) for name, ask in BROKEN.items()}
    assert {name: reply for name, reply in found.items() if reply not in REFUSED} == {}
    assert is_well(gateway)
    assert "/api/hidden" not in gateway.log_text()


def test_a_body_after_an_upgrade_is_a_body(gateway):
    """A parser that waits for another protocol would take the body for the next request."""
    for upgrade in (b"h2c", b"websocket", b"x"):
        head = ASK + b"Connection: Upgrade, close\r\nUpgrade: " + upgrade
        for body, status in ((HIDDEN, b"400"), (PRICE, b"402")):
            whole = head + b"\r\nContent-Length: %d\r\n\r\n" % len(body)
            assert answers(gateway, whole, body) == [status]
            assert answers(gateway, whole + body) == [status]


def test_a_trailer_is_no_header(gateway):
    head = ASK + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"%x\r\n%b\r\n0\r\nX-Request-Id: from-the-trailer\r\n\r\n" % (len(PRICE), PRICE)
    answer = said(gateway, head + body)
    assert answer.startswith(b"HTTP/1.1 402 ")
    assert b"from-the-trailer" not in answer
    ask = ASK + b"X-Request-Id: from-the-head\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    assert b"from-the-head" in said(gateway, ask)


def test_a_broken_request_takes_no_place_before_the_answer_to_the_one_before_it(gateway):
    found = answers(gateway, HEALTH + b"\r\n" + b"\0" * 100 + b"\r\n\r\n" + HIDDEN)
    assert found[0] == b"200"
    assert set(found[1:]) <= {b"400"}


def test_a_request_that_breaks_off_in_its_body_is_refused(gateway):
    head = ASK + b"Transfer-Encoding: chunked\r\n\r\n"
    assert answers(gateway, head, b"2\r\n{}\r\n", b"zz\r\n" + HIDDEN) == [b"400"]
    assert is_well(gateway)


def test_what_a_client_says_about_its_address_is_not_believed(served):
    served.environment["GATEWAY_LIMIT_TASK"] = "1/60s"
    served.start()
    statuses = [
        served.request("GET", "/api/task/none", headers={name: f"192.0.2.{place}"})[0]
        for place, name in enumerate(("X-Forwarded-For", "X-Forwarded-For", "Forwarded"))
    ]
    assert statuses == [404, 429, 429]
