"""GET /api/task/{taskId} with `Accept: text/event-stream`: a task's changes as they happen."""

import asyncio
import contextlib
import itertools
import json

import attrs
import pytest

from gateway.running.timing import Timing
from tests.conftest import running
from tests.gateway.web.asgi_calls import Asked, Client, ask
from tests.gateway.web.conftest import keep_busy
from tests.gateway.web.orders import order, show

STREAM = (b"accept", b"text/event-stream")
HOST = (b"host", b"gateway.test")


def asked(task_id, *headers, **more) -> Asked:
    return Asked(path=f"/api/task/{task_id}".encode(), headers=(HOST, *headers), **more)


@attrs.define
class Listener:
    """A client that reads a stream."""

    app: object
    asked: Asked
    client: Client = attrs.field(init=False)
    task: asyncio.Task = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.client = Client(self.asked)
        answering = self.app(self.asked.scope(), self.client.receive, self.client.send)
        self.task = asyncio.create_task(answering)

    @property
    def text(self) -> str:
        return b"".join(one["body"] for one in self.client.sent[1:]).decode()

    @property
    def status(self) -> int | None:
        return self.client.sent[0]["status"] if self.client.sent else None

    def events(self) -> list[dict]:
        """Return the complete events: their fields by name."""
        found = []
        for block in self.text.split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in block.splitlines() if line[0] != ":")
            if "data" in fields:
                found.append(fields | {"data": json.loads(fields["data"])})
        return found

    async def wait_until(self, condition) -> None:
        async with asyncio.timeout(120):
            while not condition(self):
                assert not self.task.done() or condition(self), self.text
                await asyncio.sleep(0.01)

    async def ended(self) -> list[dict]:
        async with asyncio.timeout(120):
            await self.task
        return self.events()

    async def leave(self) -> None:
        self.client.hang_up()
        async with asyncio.timeout(120):
            await self.task


@pytest.fixture
async def held(gateway, provider):
    release = keep_busy(provider)
    yield release
    release.set()
    # A gateway's shutdown time is short in tests.
    for task in await gateway.services.store.recent_tasks(100, None):
        await gateway.wait(task.id)


@pytest.fixture
async def listen(gateway):
    """Open streams, and close the remaining ones at the end."""
    opened = []

    def listen(task_id, *headers, **more):
        opened.append(Listener(gateway.app, asked(task_id, STREAM, *headers, **more)))
        return opened[-1]

    yield listen
    for one in opened:
        if not one.task.done():
            await one.leave()


async def opened(listener) -> Listener:
    await listener.wait_until(lambda one: one.events())
    return listener


async def test_a_finished_task_is_one_event_with_the_polls_own_body(gateway, payer, listen):
    task_id = await order(gateway, payer)
    await gateway.wait(task_id)
    listener = listen(task_id)
    (event,) = await listener.ended()
    assert (event["event"], event["id"]) == ("task", "1")
    assert event["data"] == await show(gateway, task_id)
    assert listener.text.startswith("retry: 2000\n\n")
    headers = {name.decode(): value.decode() for name, value in listener.client.sent[0]["headers"]}
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"
    assert headers["access-control-allow-origin"] == "*"
    assert "content-length" not in headers


async def test_every_change_is_an_event_and_the_last_one_ends_the_stream(
    gateway,
    payer,
    listen,
    held,
):
    task_id = await order(gateway, payer)
    listener = listen(task_id)
    await listener.wait_until(
        lambda one: one.events() and one.events()[-1]["data"]["progress"] == 0.5
    )
    held.set()
    events = await listener.ended()
    assert [event["id"] for event in events] == [str(n) for n in range(1, len(events) + 1)]
    bodies = [event["data"] for event in events]
    assert [body["done"] for body in bodies] == [False] * (len(bodies) - 1) + [True]
    assert all(before != after for before, after in itertools.pairwise(bodies))
    assert bodies[-1]["status"] == "completed"


@pytest.mark.parametrize(
    ("accept", "is_stream"),
    [
        (b"text/event-stream", True),
        (b"TEXT/Event-Stream", True),
        (b"text/event-stream, */*;q=0.1", True),
        (b"text/event-stream;q=0.9, application/json;q=0.1", True),
        (b"application/json, text/event-stream;q=0.5", False),
        (b"text/event-stream;q=0", False),
        (b"*/*", False),
        (b"text/*", False),
        (b"", False),
    ],
)
async def test_a_stream_is_for_who_prefers_it_to_json(gateway, payer, accept, is_stream):
    task_id = await order(gateway, payer)
    await gateway.wait(task_id)
    answer = await ask(gateway.app, asked(task_id, (b"accept", accept)))
    assert answer.status == 200
    assert answer.headers["content-type"][0].startswith("text/event-stream") is is_stream


async def test_an_unknown_task_and_a_wrong_wait_are_answered_as_for_a_poll(gateway):
    unknown = await ask(gateway.app, asked("none", STREAM))
    assert (unknown.status, json.loads(unknown.body)["code"]) == (404, "NOT_FOUND")
    wrong = await ask(gateway.app, asked("none", STREAM, query=b"wait=31"))
    assert (wrong.status, json.loads(wrong.body)["code"]) == (400, "VALIDATION_ERROR")


async def test_the_rate_limit_of_polls_counts_streams_too(settings, provider, payer, chain):
    async with running(attrs.evolve(settings, limit_task="2/600s"), provider) as gateway:
        statuses = [(await ask(gateway.app, asked("none", STREAM))).status for _ in range(3)]
    assert statuses == [404, 404, 429]


async def test_the_fifth_stream_of_an_address_is_refused_until_one_is_closed(
    gateway,
    payer,
    listen,
    held,
):
    task_id = await order(gateway, payer)
    four = [await opened(listen(task_id)) for _ in range(4)]
    fifth = await ask(gateway.app, asked(task_id, STREAM))
    assert fifth.status == 429
    assert int(fifth.headers["retry-after"][0]) >= 1
    assert "wait=30" in json.loads(fifth.body)["error"]
    # A poll is not a stream, and another address has its own slots.
    assert (await ask(gateway.app, asked(task_id))).status == 200
    elsewhere = await opened(listen(task_id, client="203.0.113.9"))
    await four[0].leave()
    await opened(listen(task_id))
    await elsewhere.leave()


async def test_two_hundred_streams_are_open_at_most(gateway, payer, listen, held):
    task_id = await order(gateway, payer)
    clients = [f"192.0.2.{number}" for number in range(50) for _ in range(4)]
    listeners = [listen(task_id, client=client) for client in clients]
    for listener in listeners:
        await opened(listener)
    assert (await ask(gateway.app, asked(task_id, STREAM))).status == 429
    await listeners[0].leave()
    await opened(listen(task_id))


async def test_a_client_that_hangs_up_at_any_moment_frees_its_place(gateway, payer, held):
    task_id = await order(gateway, payer)
    streams = gateway.services.streams._by_address
    for steps in range(60):
        listener = Listener(gateway.app, asked(task_id, STREAM))
        for _ in range(steps):
            await asyncio.sleep(0)
        await listener.leave()
        assert not streams, steps
    assert not gateway.services.notifications._waiting


async def test_draining_ends_a_stream_in_order(gateway, payer, listen, held):
    task_id = await order(gateway, payer)
    listener = await opened(listen(task_id))
    gateway.services.lifecycle.stop_selling()
    gateway.services.end_waits()
    events = await listener.ended()
    assert not events[-1]["data"]["done"]
    assert listener.client.sent[-1] == {
        "type": "http.response.body",
        "body": b"",
        "more_body": False,
    }


@contextlib.asynccontextmanager
async def timed(settings, provider, **timing):
    async with running(settings, provider, timing=Timing(**timing)) as gateway:
        yield gateway


async def test_a_quiet_stream_carries_comments(settings, provider, payer):
    release = keep_busy(provider)
    async with timed(settings, provider, stream_quiet_s=0.01, stream_poll_s=0.01) as gateway:
        listener = Listener(gateway.app, asked(await order(gateway, payer), STREAM))
        await listener.wait_until(lambda one: one.text.count("\n\n: waiting\n\n") >= 1)
        release.set()
        assert (await listener.ended())[-1]["data"]["done"]


async def test_a_stream_has_an_end_even_if_its_task_has_none(settings, provider, payer):
    release = keep_busy(provider)
    async with timed(settings, provider, stream_s=0.05) as gateway:
        listener = Listener(gateway.app, asked(await order(gateway, payer), STREAM))
        events = await listener.ended()
        assert events
        assert not events[-1]["data"]["done"]
        release.set()


async def test_quarts_time_for_an_answer_does_not_cut_a_stream(gateway, payer, listen, held):
    task_id = await order(gateway, payer)
    # It applies to responses that begin now; only the stream is to be one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(gateway.app.config, "RESPONSE_TIMEOUT", 0.05)
        listener = await opened(listen(task_id))
    await asyncio.sleep(0.2)
    held.set()
    assert (await listener.ended())[-1]["data"]["done"]
