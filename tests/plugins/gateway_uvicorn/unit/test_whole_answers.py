"""Responses that our uvicorn protocol writes in one piece equal uvicorn's own."""

import asyncio
import gc
import weakref

import pytest
from uvicorn.server import ServerState

from gateway.web.front.answers import Answer, send_answer
from gateway_uvicorn import server as uvicorn_server
from gateway_uvicorn.protocol import GuardedProtocol
from tests.plugins.gateway_uvicorn.unit.test_uvicorn_names import Wire

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
HALF_POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nx-a: x\r\ncontent-length: 2\r\n"


class OpenWire(Wire):
    """A connection that is open until one side closes it."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


async def written(requests: bytes, value: str = "x", cycles: list | None = None) -> bytes:
    """Return a connection's output for requests, each answered with a header of this value.

    `cycles` gets a weak reference to uvicorn's object for each request.
    """
    begun, ended = [], []

    async def app(scope, receive, send) -> None:
        begun.append(scope)
        if cycles is not None:
            cycles.append(weakref.ref(send.__self__))
        try:
            await send_answer(Answer(200, b"hi", {"X-A": value}), [], (), scope, send, 60)
        finally:
            ended.append(scope)

    config = uvicorn_server.uvicorn_config(app)
    config.load()
    state, wire = ServerState(), OpenWire()
    protocol = GuardedProtocol(config, state, {}, asyncio.get_running_loop())
    protocol.connection_made(wire)
    protocol.data_received(requests)
    # The next request starts once the one before it is answered.
    while state.tasks:
        await asyncio.wait(set(state.tasks))
        await asyncio.sleep(0)
    protocol.connection_lost(None)
    assert len(begun) == len(ended)
    return wire.written


@pytest.mark.parametrize("requests", [GET, LAST], ids=["whole", "by parts"])
@pytest.mark.parametrize("value", ["a\0b", "a\x7fb", "a\x0bb", "a\x1fb", "a\nb", "a\r\nB: c"])
async def test_a_header_that_is_none_is_never_written(requests, value):
    answer = await written(requests, value)
    assert value.encode() not in answer
    assert answer.startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize("requests", [GET, LAST], ids=["whole", "by parts"])
@pytest.mark.parametrize("value", ["a\tb", "a b", "\u00e9"])
async def test_a_header_of_any_text_is_written(requests, value):
    assert b"\r\nx-a: " + value.encode() + b"\r\n" in await written(requests, value)


@pytest.mark.parametrize(
    ("requests", "answers"),
    [
        (GET, HEAD + b"\r\nhi"),
        (LAST, HEAD + b"connection: close\r\n\r\nhi"),
        (GET.replace(b"GET", b"HEAD"), HEAD + b"\r\n"),
        (GET.replace(b"1.1", b"1.0"), HEAD + b"connection: close\r\n\r\nhi"),
        (HALF_POST, HEAD + b"connection: close\r\n\r\nhi"),
        (HALF_POST + b"abc" + GET, 2 * (HEAD + b"\r\nhi")),
        (GET + GET + LAST + GET, 2 * (HEAD + b"\r\nhi") + HEAD + b"connection: close\r\n\r\nhi"),
    ],
    ids=["GET", "close", "HEAD", "HTTP/1.0", "half a body", "unread body", "pipelined"],
)
async def test_each_request_gets_one_answer_in_its_form(requests, answers):
    assert await written(requests) == answers


async def test_an_answered_request_does_not_wait_for_the_garbage_collector():
    cycles = []
    gc.disable()
    try:
        await written(3 * GET, cycles=cycles)
        # The connection's own objects reference each other, and the last request.
        assert [cycle() for cycle in cycles[:-1]] == [None, None]
    finally:
        gc.enable()
