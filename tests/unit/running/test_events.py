"""Delivery of events to plugins: by which node, when, and after an error of a plugin."""

import asyncio
import contextlib

import attrs
import pytest
import structlog

from gateway import EventReader, Part
from gateway.errors import StoreUnavailable
from gateway.running.events import EventHandover
from gateway.store import SqliteStore
from gateway_testing.facts import NOW, RESULT, leased
from tests.migrated_databases import put_database

HOURS_S = 7_200.0


@attrs.define
class Reader:
    """A plugin that remembers the tasks of its events, and fails while it is broken."""

    tasks: list = attrs.field(factory=list)
    woken: asyncio.Event = attrs.field(factory=asyncio.Event)
    is_broken: bool = False
    calls: int = 0
    refused: str = ""

    def take(self, db, events):
        self.calls += 1
        if self.is_broken or self.refused in [event.task_id for event in events]:
            raise RuntimeError("the plugin is broken")
        self.tasks += [event.task_id for event in events]

    def part(self, name="one"):
        return Part(name=name, events=EventReader(take=self.take, on_taken=self.woken.set))


@pytest.fixture
async def store(tmp_path):
    async with SqliteStore(put_database(tmp_path / "gateway.db")) as store:
        yield store


@contextlib.asynccontextmanager
async def started(store, *parts, leads=True, now=NOW, **timing):
    handover = EventHandover(
        events=store.events,
        parts=parts,
        leads=lambda: leads,
        now=now if callable(now) else lambda: now,
        **timing,
    )
    part = handover.make_part()
    await part.start()
    await part.begin()
    try:
        yield handover
    finally:
        await part.close()


async def end(store, tx=1):
    lease = await leased(store, tx)
    await store.queue.complete(lease, RESULT, expires_at=NOW + 60, now=NOW)
    return lease.task_id


async def end_for(store, reader, tx):
    """End a task while the reader is registered."""
    await store.events.set_readers({"one": reader.part().events}, now=NOW)
    return await end(store, tx)


async def reached(event):
    async with asyncio.timeout(60):
        await event.wait()


async def test_events_of_a_process_that_died_are_taken_at_the_start(store):
    reader = Reader()
    async with started(store, reader.part(), poll_s=HOURS_S):
        pass
    task = await end(store)
    async with started(store, reader.part(), poll_s=HOURS_S):
        await reached(reader.woken)
    assert reader.tasks == [task]


async def test_a_task_that_ends_wakes_the_reader_of_the_leader(store):
    reader = Reader()
    async with started(store, reader.part(), poll_s=HOURS_S) as handover:
        task = await end(store)
        handover.wake()
        await reached(reader.woken)
    assert reader.tasks == [task]


async def test_another_node_takes_what_the_leader_leaves_at_the_next_poll(store):
    reader = Reader()
    async with started(store, reader.part(), leads=False, poll_s=0.05):
        task = await end(store)
        await reached(reader.woken)
    assert reader.tasks == [task]


async def test_another_node_takes_nothing_when_it_is_woken(store):
    reader = Reader()
    async with started(
        store, reader.part(), leads=False, poll_s=HOURS_S, min_interval_s=0.0
    ) as handover:
        await asyncio.sleep(0.05)
        await end(store)
        for _ in range(20):
            handover.wake()
            await asyncio.sleep(0)
    assert reader.calls == 0


async def test_another_node_polls_however_often_it_is_woken(store):
    reader = Reader()
    async with started(
        store, reader.part(), leads=False, poll_s=0.05, min_interval_s=0.0
    ) as handover:
        task = await end(store)
        while not reader.woken.is_set():
            handover.wake()
            await asyncio.sleep(0.001)
    assert reader.tasks == [task]


async def test_an_event_that_its_reader_refuses_holds_up_no_other(store):
    reader = Reader()
    tasks = [await end_for(store, reader, tx) for tx in (1, 2, 3)]
    reader.refused = tasks[0]
    async with started(store, reader.part(), poll_s=0.02):
        async with asyncio.timeout(60):
            while len(reader.tasks) < 2:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.01)
    assert reader.tasks == tasks[1:]


async def test_a_database_that_takes_no_writes_is_no_failure_of_the_reader(store, monkeypatch):
    reader, plain, failures = Reader(), store.events.take, [StoreUnavailable()] * 3

    async def take(*arguments, **named):
        if failures:
            raise failures.pop()
        return await plain(*arguments, **named)

    task = await end_for(store, reader, 1)
    monkeypatch.setattr(store.events, "take", take)
    with structlog.testing.capture_logs() as logs:
        async with started(store, reader.part(), poll_s=0.02):
            await reached(reader.woken)
    assert reader.tasks == [task]
    assert {log["event"] for log in logs} == {"events.no_database"}


async def test_an_error_after_the_events_were_taken_is_logged_and_delays_nothing(store):
    reader = Reader()

    def fail():
        reader.woken.set()
        raise RuntimeError("broken")

    part = Part(name="one", events=EventReader(take=reader.take, on_taken=fail))
    task = await end_for(store, reader, 1)
    with structlog.testing.capture_logs() as logs:
        async with started(store, part, poll_s=HOURS_S):
            await reached(reader.woken)
    assert reader.tasks == [task]
    assert [log["event"] for log in logs] == ["events.on_taken_failed"]


async def test_a_registration_that_fails_later_does_not_end_the_hand_over(store, monkeypatch):
    reader = Reader()
    task = await end_for(store, reader, 1)
    monkeypatch.setattr("gateway.running.events._REGISTER_EVERY_S", 0.0)

    async def fail(*_, **__):
        raise RuntimeError("no such table")

    with structlog.testing.capture_logs() as logs:
        async with started(store, reader.part(), poll_s=0.02):
            await reached(reader.woken)
            monkeypatch.setattr(store.events, "set_readers", fail)
            later = await end(store, 2)
            async with asyncio.timeout(60):
                while reader.tasks != [task, later] or not logs:  # noqa: ASYNC110 - no event tells
                    await asyncio.sleep(0.01)
    assert {log["event"] for log in logs} == {"events.not_registered"}


async def test_many_wakes_at_once_are_one_round(store, monkeypatch):
    plain, asked = store.events.waits, []

    async def counting(reader, *, now):
        asked.append(reader)
        return await plain(reader, now=now)

    monkeypatch.setattr(store.events, "waits", counting)
    async with started(store, Reader().part(), poll_s=HOURS_S, min_interval_s=HOURS_S) as handover:
        for _ in range(50):
            handover.wake()
            await asyncio.sleep(0.001)
    # At the start, and for the first wake.
    assert 1 <= len(asked) <= 2


async def test_a_reader_that_fails_is_tried_less_often_and_holds_up_no_other(store):
    broken, good = Reader(is_broken=True), Reader()
    with structlog.testing.capture_logs() as logs:
        async with started(store, broken.part("broken"), good.part("good"), poll_s=HOURS_S) as one:
            task = await end(store)
            one.wake()
            await reached(good.woken)
            await one.hand_over()
            await one.hand_over()
    assert good.tasks == [task]
    (line,) = [log for log in logs if log["event"] == "events.not_taken"]
    assert (line["reader"], line["pause_s"]) == ("broken", 300)


async def test_a_reader_that_works_again_gets_every_event(store):
    reader, clock = Reader(is_broken=True), [NOW]
    async with started(store, reader.part(), now=lambda: clock[0], poll_s=0.02) as handover:
        tasks = {await end(store, tx) for tx in (1, 2)}
        handover.wake()
        async with asyncio.timeout(60):
            while not reader.calls:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.01)
        reader.is_broken = False
        # The event that failed alone was set aside for a while.
        clock[0] += HOURS_S
        async with asyncio.timeout(60):
            while set(reader.tasks) != tasks:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(("waited_s", "is_raised"), [(3_599, False), (3_601, True)])
async def test_events_that_wait_for_an_hour_raise_a_condition(store, waited_s, is_raised):
    reader = Reader(is_broken=True)
    async with started(store, reader.part(), now=NOW + waited_s, poll_s=HOURS_S) as handover:
        await end(store)
        found = await handover.make_part().conditions()
    assert [(one.name, one.subject) for one in found] == [("events_waiting", "one")] * is_raised


async def test_a_thousand_events_that_wait_raise_a_condition(store):
    async with started(store, Reader(is_broken=True).part(), poll_s=HOURS_S) as handover:
        task = await end(store)
        await store.write(_repeat_event, task, 998)
        assert await handover.make_part().conditions() == []
        await store.write(_repeat_event, task, 1)
        (one,) = await handover.make_part().conditions()
    assert "1,000 events are not taken" in one.text


def _repeat_event(db, task_id, count):
    for _ in range(count):
        db.execute(
            "INSERT INTO events (reader, type, task_id, at) VALUES ('one', 'task.failed', ?, ?)",
            (task_id, NOW),
        )


async def test_old_events_without_a_reader_are_deleted_and_logged(store):
    async with started(store, Reader().part(), poll_s=HOURS_S):
        pass
    await end(store)
    with structlog.testing.capture_logs() as logs:
        async with started(store, now=NOW + 31 * 86_400.0) as handover:
            await handover.make_part().work()
    assert [(log["event"], log["count"]) for log in logs] == [("events.forgotten", 1)]
