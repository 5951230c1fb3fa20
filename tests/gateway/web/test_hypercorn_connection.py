"""Hypercorn's connections as a client sees them: kept, closed when idle, responses cut short."""

import asyncio
import contextlib

import pytest

from gateway.web.front.answers import WHOLE_ANSWER
from gateway.web.server import connection_guard
from gateway.web.server.hypercorn_server import hypercorn_config, serve_guarded
from gateway.web.server.serve import listen

ASK = b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n"
IDLE_S = 0.4
AWAITS_BODY = asyncio.Event()


async def app(scope, receive, send) -> None:
    if scope["type"] == "lifespan":
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    about = {"type": "http.response.start", "status": 200}
    if scope["path"].startswith("/slow"):
        await asyncio.sleep(3 * IDLE_S)
    if scope["path"] == "/events":
        await send(about | {"headers": []})
        await send_events(receive, send)
        return
    if scope["path"].endswith("cut"):
        await send(about | {"headers": [(b"content-length", b"5")]})
        return
    if scope["path"] == "/unread":
        await answer_while_the_body_comes(int(scope["query_string"]), receive, send)
        return
    write_whole = scope["extensions"][WHOLE_ANSWER]
    if scope["path"] == "/whole" and write_whole(200, b"content-length: 2\r\nx: whole\r\n", b"ok"):
        return
    await send(about | {"headers": [(b"content-length", b"2")]})
    if scope["path"] == "/pieces":
        await send({"type": "http.response.body", "body": b"o", "more_body": True})
        await asyncio.sleep(IDLE_S)
        await send({"type": "http.response.body", "body": b"k"})
        return
    await send({"type": "http.response.body", "body": b"ok"})
    if scope["path"] == "/lingers":
        await asyncio.sleep(IDLE_S / 2)


async def answer_while_the_body_comes(steps, receive, send) -> None:
    """Answer some steps of the loop after the body came, which another task reads, as in Quart."""

    async def read():
        while (await receive()).get("more_body"):
            pass

    reading = asyncio.create_task(read())
    guard = connection_guard.CONNECTION.get()
    while guard.is_body_missing:
        AWAITS_BODY.set()
        await asyncio.sleep(0)
    for _ in range(steps):
        await asyncio.sleep(0)
    lines = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": lines})
    await send({"type": "http.response.body", "body": b"ok"})
    await reading


async def send_events(receive, send) -> None:
    while True:
        await send({"type": "http.response.body", "body": b"event", "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(IDLE_S / 4):
                if (await receive())["type"] == "http.disconnect":
                    return


@pytest.fixture
def patience() -> dict[str, float]:
    """How long a connection may be idle before a head is complete, and between two requests."""
    return {"IDLE_S": IDLE_S, "KEEP_ALIVE_S": IDLE_S}


@pytest.fixture
async def connect(patience, monkeypatch):
    """Serve with a short idle time; returns a function that opens a connection."""
    for name, seconds in patience.items():
        monkeypatch.setattr(connection_guard, name, seconds)
    stop = asyncio.Event()
    with listen("127.0.0.1:0") as listener:
        port, config = listener.getsockname()[1], hypercorn_config(listener)
        config.errorlog = None
        config.keep_alive_max_requests = connection_guard.MAX_REQUESTS
        # Waiting for a stop fails if the stop must cut off a connection.
        config.graceful_timeout = 120
        server = asyncio.create_task(serve_guarded(app, config, stop))
        async with contextlib.AsyncExitStack() as stack:

            async def connect():
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                stack.callback(writer.close)
                return reader, writer, stop

            yield connect
        stop.set()
        await server


async def ask(reader, writer, path=b"") -> bytes:
    """Return the response to one request; empty if the connection ends without one."""
    writer.write(ASK % path)
    head = await reader.readuntil(b"\r\n\r\n")
    return head + await reader.readexactly(2)


async def received(reader) -> bytes:
    """Return everything until the connection ends, which it also does by a reset.

    A server that closes resets the connection if another byte arrives. Then the reader never
    reaches its end, and a writer that is not drained does not notice.
    """
    data = b""
    async with asyncio.timeout(60):
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                data += piece
    return data


async def test_a_connection_that_asks_again_and_again_outlives_the_idle_time(connect):
    reader, writer, _ = await connect()
    for _ in range(8):
        assert (await ask(reader, writer)).endswith(b"ok")
        await asyncio.sleep(IDLE_S / 3)


@pytest.mark.parametrize("asked", [[], [b""], [b"", b"slow"]], ids=["none", "one", "a slow one"])
async def test_an_idle_connection_is_closed(connect, asked):
    reader, writer, _ = await connect()
    for path in asked:
        assert (await ask(reader, writer, path)).endswith(b"ok")
    assert await received(reader) == b""


KEPT = pytest.mark.parametrize("patience", [{"IDLE_S": IDLE_S, "KEEP_ALIVE_S": 600}])


@pytest.mark.parametrize("patience", [{"IDLE_S": 600, "KEEP_ALIVE_S": 600}])
async def test_an_answer_at_the_moment_its_body_comes_is_sent(connect):
    for steps in range(10):
        reader, writer, _ = await connect()
        AWAITS_BODY.clear()
        head = b"PUT /unread?%d HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n"
        writer.write(head % steps)
        async with asyncio.timeout(60):
            await AWAITS_BODY.wait()
            writer.write(b"body")
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            assert (await ask(reader, writer)).endswith(b"ok")


PATIENT = pytest.mark.parametrize("patience", [{"IDLE_S": 60, "KEEP_ALIVE_S": 60}])


@KEPT
@pytest.mark.parametrize(
    "begun", [[b""], [b"GET"], [ASK % b"", b"GET / HTTP/1.1\r\nHo"], [ASK % b"" + b"G"]]
)
async def test_a_client_that_goes_silent_before_its_head_is_cut_off(connect, begun):
    reader, writer, _ = await connect()
    for piece in begun:
        writer.write(piece)
        if len(begun) > 1:
            await asyncio.sleep(IDLE_S / 2)
    answers = await received(reader)
    assert answers.count(b"HTTP/1.1 200") == b"".join(begun).count(b"\r\n\r\n")


@KEPT
async def test_bytes_of_a_head_one_by_one_gain_no_time(connect):
    reader, writer, _ = await connect()
    assert (await ask(reader, writer)).endswith(b"ok")
    ending = asyncio.create_task(received(reader))
    while not ending.done():
        writer.write(b"x")
        await asyncio.wait({ending}, timeout=IDLE_S / 8)
    assert await ending == b""


@KEPT
async def test_silence_between_two_requests_is_no_silence_in_a_request(connect):
    reader, writer, _ = await connect()
    for _ in range(2):
        assert (await ask(reader, writer)).endswith(b"ok")
        await asyncio.sleep(2 * IDLE_S)
    assert (await ask(reader, writer)).endswith(b"ok")


@PATIENT
async def test_a_head_may_come_byte_by_byte(connect):
    reader, writer, _ = await connect()
    for byte in ASK % b"":
        writer.write(bytes([byte]))
        await asyncio.sleep(IDLE_S / 8)
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")


async def test_a_long_answer_is_not_idleness(connect):
    reader, writer, _ = await connect()
    assert (await ask(reader, writer, b"slow")).endswith(b"ok")
    assert (await ask(reader, writer)).endswith(b"ok")


async def test_a_stop_closes_what_is_idle_and_answers_what_is_not(connect):
    idle, waiting = await connect(), await connect()
    assert (await ask(*idle[:2])).endswith(b"ok")
    waiting[1].write(ASK % b"slow")
    await asyncio.sleep(0.1)
    idle[2].set()
    async with asyncio.timeout(60):
        assert await idle[0].read() == b""
        assert (await waiting[0].read()).endswith(b"ok")


async def test_an_answer_without_its_body_is_sent_as_far_as_it_goes(connect):
    reader, writer, _ = await connect()
    writer.write(ASK % b"cut")
    async with asyncio.timeout(60):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"content-length: 5" in answer.lower()


def served_connections() -> int:
    """Return how many connections the server still serves."""
    tasks = (task.get_coro().__qualname__ for task in asyncio.all_tasks())
    return sum("_server_callback" in name for name in tasks)


async def all_have_ended() -> None:
    async with asyncio.timeout(60):
        while served_connections():  # noqa: ASYNC110 - tests look from outside
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("more", [b"", b"G", ASK % b"" * 3])
async def test_a_stream_whose_client_hangs_up_leaves_no_connection(connect, more):
    reader, writer, _ = await connect()
    writer.write(ASK % b"events" + more)
    await reader.readuntil(b"event")
    writer.transport.abort()
    await all_have_ended()


ASKED = {
    "nothing": b"",
    "part of a head": b"GET / HT",
    "a request": ASK % b"",
    "a slow request": ASK % b"slow",
    "a slow request and more": ASK % b"slow" + b"G",
    "three requests": ASK % b"slow" * 3,
    "part of a body": b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx",
    "a broken request": b"GET\r\n\r\n",
    "a broken body": b"POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}


@PATIENT
@pytest.mark.parametrize("asked", ASKED.values(), ids=list(ASKED))
@pytest.mark.parametrize("end", ["close", "abort", "half"])
@pytest.mark.parametrize("pause_s", [0, IDLE_S / 4])
async def test_a_client_that_hangs_up_leaves_no_connection(connect, asked, end, pause_s):
    """Plain Hypercorn would wait for its idle timer: a minute here."""
    _, writer, _ = await connect()
    while not served_connections():  # noqa: ASYNC110 - tests look from outside
        await asyncio.sleep(0)
    writer.write(asked)
    await asyncio.sleep(pause_s)
    leave = {"close": writer.close, "abort": writer.transport.abort, "half": writer.write_eof}
    leave[end]()
    async with asyncio.timeout(30):
        await all_have_ended()


@PATIENT
async def test_a_stop_waits_for_no_client_that_is_still_sending(connect):
    reader, writer, stop = await connect()
    writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx")
    assert b"connection: close" in await reader.readuntil(b"\r\n\r\n")
    stop.set()
    async with asyncio.timeout(30):
        await all_have_ended()


@pytest.mark.parametrize("pieces", [1, 9, 10, 11, 14, 40])
@pytest.mark.parametrize("path", [b"slow", b"slow-cut"])
async def test_a_body_that_the_app_never_reads_keeps_no_connection(connect, path, pieces):
    reader, writer, _ = await connect()
    writer.write(b"POST /%b HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" % path)
    for _ in range(pieces):
        writer.write(b"x")
        await asyncio.sleep(0.005)
    async with asyncio.timeout(60):
        # A response that the app abandons ends at once, possibly by a reset.
        with contextlib.suppress(ConnectionError):
            assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()
    await all_have_ended()


@PATIENT
async def test_a_stop_waits_for_no_request_that_has_only_begun(connect):
    reader, writer, stop = await connect()
    writer.write(ASK % b"pieces" + b"G")
    await reader.readuntil(b"\r\n\r\no")
    stop.set()
    async with asyncio.timeout(60):
        assert await reader.read() == b"k"
    await all_have_ended()


@pytest.mark.parametrize("more", [b"", b"G", ASK % b""])
async def test_an_answer_that_the_app_gives_up_leaves_no_connection(connect, more):
    reader, writer, _ = await connect()
    writer.write(ASK % b"cut" + more)
    async with asyncio.timeout(60):
        assert (await reader.read()).count(b"HTTP/1.1 200") == 1
    await all_have_ended()


async def test_a_late_end_of_an_app_takes_nothing_from_the_next_answer(connect):
    reader, writer, _ = await connect()
    writer.write(ASK % b"lingers" + ASK % b"pieces")
    writer.write_eof()
    async with asyncio.timeout(60):
        answers = await reader.read()
    assert answers.count(b"HTTP/1.1 200") == 2
    assert answers.endswith(b"\r\n\r\nok")
    await all_have_ended()


async def answers_to(connect, asked: bytes) -> list[bytes]:
    """Return the responses to requests that a client sends together."""
    reader, writer, _ = await connect()
    writer.write(asked)
    async with asyncio.timeout(60):
        return (await reader.read()).split(b"HTTP/1.1 200 ")[1:]


async def test_whole_answers_and_others_take_turns(connect):
    last = b"GET /whole HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    answers = await answers_to(connect, (ASK % b"whole" + ASK % b"") * 3 + last)
    assert [b"x: whole" in answer for answer in answers] == [True, False] * 3 + [False]
    for answer in answers:
        assert answer.count(b"date: ") == answer.count(b"content-length: 2\r\n") == 1
        assert answer.endswith(b"\r\n\r\nok")


@pytest.mark.parametrize(
    ("line", "is_whole"), [(b"keep-alive", True), (b"Keep-Alive", True), (b"close", False)]
)
async def test_only_an_answer_whose_connection_stays_is_written_whole(connect, line, is_whole):
    ask = b"GET /whole HTTP/1.1\r\nHost: a\r\nConnection: " + line + b"\r\n\r\n"
    [answer] = await answers_to(connect, ask)
    assert (b"x: whole" in answer) == is_whole
    assert (b"connection: close" in answer.lower()) != is_whole


@pytest.mark.parametrize("patience", [{"MAX_REQUESTS": 3}])
async def test_the_answer_to_the_last_request_of_a_connection_says_so(connect):
    answers = await answers_to(connect, ASK % b"whole" * 5)
    assert [b"connection: close" in answer.lower() for answer in answers] == [False, False, True]
