"""The body of a request as Quart's releases use it, and as a route reads it."""

import asyncio
import contextlib

import pytest
from quart import Quart, Request, request
from quart.wrappers.request import Body
from werkzeug.exceptions import RequestEntityTooLarge

from gateway.errors import BodiesFull
from gateway.web.front.body_memory import BodyMemory, CountedBody

MAX = 100
# Quart calls these only on its own class.
_OF_QUARTS_QUEUE = {"get"}


def body_of(declared: int | None = None, memory_bytes: int = 1000) -> CountedBody:
    body = CountedBody(declared, MAX)
    body.memory, body.address_of = BodyMemory(memory_bytes), lambda: "a"
    return body


def test_it_has_all_that_this_quart_calls_on_a_body():
    public = {name for name in vars(Body) if not name.startswith("_")}
    assert public - _OF_QUARTS_QUEUE <= set(dir(CountedBody))


async def test_the_whole_body_may_be_read_more_than_once():
    body = body_of()
    reading = asyncio.ensure_future(body)
    await body.put(b"whole ")
    body.append(b"body")
    assert not reading.done()
    body.set_complete()
    assert (await reading, await body) == (b"whole body", b"whole body")
    body.clear()
    assert await body == b""


async def test_pieces_are_read_as_they_arrive():
    body, pieces = body_of(), []

    async def read():
        async for piece in body:
            pieces.append(piece)
            arrived.set()

    arrived = asyncio.Event()
    reading = asyncio.create_task(read())
    for sent in (b"one", b"two"):
        await body.put(sent)
        await arrived.wait()
        arrived.clear()
    body.set_complete()
    await reading
    assert pieces == [b"one", b"two"]


@pytest.mark.parametrize("read", [lambda body: body.__anext__(), asyncio.ensure_future])
async def test_a_body_that_declares_too_much_is_refused_unread(read):
    with pytest.raises(RequestEntityTooLarge):
        await read(body_of(declared=MAX + 1))


@pytest.mark.parametrize("read", [lambda body: body.__anext__(), asyncio.ensure_future])
async def test_a_body_that_grows_too_large_is_refused_at_once(read):
    body = body_of()
    reading = asyncio.ensure_future(read(body))
    await body.put(b"x" * (MAX + 1))
    await body.put(b"more")
    with pytest.raises(RequestEntityTooLarge):
        await reading


@pytest.mark.parametrize("read", [lambda body: body.__anext__(), asyncio.ensure_future])
async def test_a_body_without_room_is_refused_at_once(read):
    body = body_of(memory_bytes=60)
    reading = asyncio.ensure_future(read(body))
    await body.put(b"x" * 50)
    with pytest.raises(BodiesFull):
        await reading


async def test_quart_reads_bodies_and_forms_of_every_kind_by_it():
    app = _app()
    for data, headers, expected in (
        (b'{"a": 1}', {"Content-Type": "application/json"}, "{'a': 1}"),
        (b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}, "1"),
        (
            b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--\r\n',
            {"Content-Type": "multipart/form-data; boundary=x"},
            "1",
        ),
    ):
        answer = await app.test_client().post("/", data=data, headers=headers)
        assert (await answer.get_data(as_text=True), answer.status_code) == (expected, 200)


async def test_the_request_of_a_lost_client_ends():
    ended = asyncio.Event()
    app = _app(ended)
    connection = app.test_client().request("/", method="POST", headers={"Content-Length": "9"})
    # The test client waits for a response, which a lost client does not get.
    with contextlib.suppress(asyncio.CancelledError):
        async with connection as sending:
            await sending.send(b"half")
            await sending.disconnect()
    await ended.wait()


def _app(ended: asyncio.Event | None = None) -> Quart:
    class Counted(Request):
        body_class = CountedBody

        def __init__(self, *args, **more):
            super().__init__(*args, **more)
            self.body.memory, self.body.address_of = BodyMemory(1000), lambda: "a"

    app = Quart(__name__)
    app.request_class = Counted

    @app.post("/")
    async def show():
        try:
            if request.is_json:
                return str(await request.get_json())
            return (await request.form).get("a", "")
        finally:
            if ended is not None:
                ended.set()

    return app
