"""Contract of every store: events, written with their cause and kept until taken."""

import attrs
import pytest

from gateway.contracts.parts import Event, EventReader, EventType
from gateway.domain import Decision, GenerationRequest
from gateway.store import SqlStore
from gateway.store.events import SqlEvents
from gateway.store.sql import Connection
from gateway_testing.facts import NOW, RESULT, SIGNER, leased, tx_hash

_DAY_S = 86_400.0
_WITH_CALLBACK = GenerationRequest(prompt="a boat", callback_url="https://a.example/hook")


async def begin_refund(store: SqlStore, task_id: str) -> int:
    """Approve and begin the refund of a failed task; return its payment's id."""
    case = await store.refunds.decide(task_id, Decision.APPROVED, recipient=None, note="", now=NOW)
    await store.refunds.begin(
        case.payment.id,
        None,
        sender=SIGNER,
        recipient=case.recipient,
        search_from_block=1,
        cap_units=10**9,
        now=NOW,
    )
    return case.payment.id


@attrs.define
class Shelf:
    """A plugin that keeps the ids of tasks in `meta`, and fails while it is broken."""

    events: list[Event] = attrs.field(factory=list)
    is_broken: bool = False

    def take(self, db: Connection, events: list[Event]) -> None:
        for event in events:
            db.execute(
                "INSERT INTO meta (key, value) VALUES (?, '') ON CONFLICT DO NOTHING",
                (f"read {event.task_id}",),
            )
        if self.is_broken:
            raise RuntimeError("the plugin is broken")
        self.events += events

    def reader(self, **about: object) -> EventReader:
        return EventReader(take=self.take, **about)  # type: ignore[arg-type]


async def _end(store: SqlStore, tx: int = 1, **fields: object) -> str:
    lease = await leased(store, tx, **fields)
    assert await store.queue.complete(lease, RESULT, expires_at=NOW + 60, now=NOW)
    return lease.task_id


async def _count(store: SqlStore) -> int:
    return await store.read(lambda db: db.execute("SELECT count(*) FROM events").fetchone()[0])


def _note_node(db: Connection, name: str, seen_at: float) -> None:
    db.execute("INSERT INTO nodes VALUES (?, 'life', '1', ?, ?)", (name, seen_at, seen_at))


def _of_node(store: SqlStore, node: str) -> SqlEvents:
    return SqlEvents(store._write, store._short_read, store._long_read, store._read_row, node=node)


class EventsContract:
    """Events of tasks and refunds for plugins, and the readers of several nodes."""

    async def test_without_a_reader_no_event_is_written(self, store: SqlStore) -> None:
        await _end(store)
        await store.events.set_readers({}, now=NOW)
        await _end(store, 2)
        assert await _count(store) == 0

    async def test_each_reader_gets_the_events_of_its_types_once(self, store: SqlStore) -> None:
        every, fails, named = Shelf(), Shelf(), Shelf()
        readers = {
            "every": every.reader(),
            "fails": fails.reader(types=[EventType.TASK_FAILED]),
            "named": named.reader(only_with_callback=True),
        }
        await store.events.set_readers(readers, now=NOW)
        plain, called = await _end(store, 1), await _end(store, 2, request=_WITH_CALLBACK)
        taken = [await store.events.take(name, one.take, now=NOW) for name, one in readers.items()]
        assert taken == [2, 0, 1]
        assert {event.task_id for event in every.events} == {plain, called}
        assert [(one.task_id, one.type, one.at) for one in named.events] == [
            (called, EventType.TASK_COMPLETED, NOW)
        ]
        assert await store.events.take("every", every.take, now=NOW) == 0
        assert not await store.events.waits("every", now=NOW)

    async def test_a_failure_and_its_refund_are_two_events(self, store: SqlStore) -> None:
        shelf = Shelf()
        await store.events.set_readers({"one": shelf.reader()}, now=NOW)
        lease = await leased(store)
        assert await store.queue.fail(lease, details="timed_out", error="Late.", now=NOW)
        payment_id = await begin_refund(store, lease.task_id)
        assert await store.refunds.end(payment_id, tx_hash(9), now=NOW + 5)
        assert not await store.refunds.end(payment_id, tx_hash(9), now=NOW + 6)
        assert await store.events.take("one", shelf.take, now=NOW) == 2
        assert [(event.type, event.at) for event in shelf.events] == [
            (EventType.TASK_FAILED, NOW),
            (EventType.REFUND_SENT, NOW + 5),
        ]

    async def test_what_a_reader_fails_to_take_is_kept(self, store: SqlStore) -> None:
        shelf = Shelf(is_broken=True)
        await store.events.set_readers({"one": shelf.reader()}, now=NOW)
        task = await _end(store)
        with pytest.raises(RuntimeError):
            await store.events.take("one", shelf.take, now=NOW)
        assert await store.known_meta(f"read {task}") is None
        assert await store.events.waits("one", now=NOW)
        shelf.is_broken = False
        assert await store.events.take("one", shelf.take, now=NOW) == 1
        assert await store.known_meta(f"read {task}") == ""

    async def test_at_most_64_events_are_taken_in_one_write(self, store: SqlStore) -> None:
        shelf = Shelf()
        await store.events.set_readers({"one": shelf.reader()}, now=NOW)
        for tx in range(1, 67):
            await _end(store, tx)
        assert [await store.events.take("one", shelf.take, now=NOW) for _ in range(3)] == [64, 2, 0]
        assert len({event.task_id for event in shelf.events}) == 66

    async def test_a_task_whose_lease_was_lost_makes_no_event(self, store: SqlStore) -> None:
        await store.events.set_readers({"one": Shelf().reader()}, now=NOW)
        lease = await leased(store)
        lost = attrs.evolve(lease, token="another")
        assert not await store.queue.complete(lost, RESULT, expires_at=NOW + 60, now=NOW)
        assert await _count(store) == 0

    async def test_a_node_with_fewer_plugins_silences_no_other(self, store: SqlStore) -> None:
        shelf = Shelf()
        await _of_node(store, "a").set_readers({"one": shelf.reader()}, now=NOW)
        await _of_node(store, "b").set_readers({}, now=NOW)
        await _end(store)
        assert await _count(store) == 1
        await _of_node(store, "b").set_readers({"one": shelf.reader()}, now=NOW)
        await _end(store, 2)
        assert await _count(store) == 2

    async def test_the_backlog_counts_absent_readers_until_they_are_forgotten(
        self, store: SqlStore
    ) -> None:
        await _of_node(store, "a").set_readers(
            {"one": Shelf().reader(), "two": Shelf().reader()}, now=NOW
        )
        await _end(store)
        await _of_node(store, "a").set_readers({"two": Shelf().reader()}, now=NOW + 5 * _DAY_S)
        found = await store.events.backlogs()
        assert [(one.reader, one.count, one.since) for one in found] == [
            ("one", 1, NOW),
            ("two", 1, NOW),
        ]
        await store.events.forget_absent(now=NOW + 31 * _DAY_S)
        assert [one.reader for one in await store.events.backlogs()] == ["two"]

    async def test_events_of_an_absent_reader_go_after_30_days(self, store: SqlStore) -> None:
        await store.events.set_readers(
            {"gone": Shelf().reader(), "here": Shelf().reader()}, now=NOW
        )
        await _end(store)
        await store.events.set_readers({"here": Shelf().reader()}, now=NOW + 5 * _DAY_S)
        assert await store.events.forget_absent(now=NOW + 29 * _DAY_S) == 0
        assert await store.events.forget_absent(now=NOW + 31 * _DAY_S) == 1
        assert await store.events.waits("here", now=NOW)
        assert not await store.events.waits("gone", now=NOW)

    async def test_readers_that_are_not_registered_again_go_after_30_days(
        self, store: SqlStore
    ) -> None:
        await _of_node(store, "gone").set_readers({"gone": Shelf().reader()}, now=NOW)
        await store.events.set_readers({"own": Shelf().reader()}, now=NOW)
        await _end(store)
        await store.events.set_readers({"own": Shelf().reader()}, now=NOW + 20 * _DAY_S)
        for days, readers in ((29, ["gone", "own"]), (31, ["own"])):
            await store.events.forget_absent(now=NOW + days * _DAY_S)
            assert [one.reader for one in await store.events.backlogs()] == readers

    async def test_a_reader_that_is_absent_for_one_start_gets_every_event_once(
        self, store: SqlStore
    ) -> None:
        shelf, named = Shelf(), Shelf()
        both = {
            "one": shelf.reader(types=[EventType.TASK_COMPLETED]),
            "named": named.reader(only_with_callback=True),
        }
        await store.events.set_readers(both, now=NOW)
        before = await _end(store)
        for later in (1, 2):  # disabled for two starts
            await store.events.set_readers({}, now=NOW + later)
            meanwhile = await _end(store, later + 1, request=_WITH_CALLBACK)
        failed = await leased(store, 4)
        await store.queue.fail(failed, details="x", error="x", now=NOW + 3)
        await store.events.set_readers(both, now=NOW + 4)
        assert await store.events.take("one", shelf.take, now=NOW + 5) == 3
        assert {before, meanwhile} < {event.task_id for event in shelf.events}
        assert await store.events.take("named", named.take, now=NOW + 5) == 2
        # From now on it is as if it had never been absent.
        await _end(store, 5)
        assert await store.events.take("one", shelf.take, now=NOW + 5) == 1

    async def test_a_reader_with_fewer_types_gets_no_others(self, store: SqlStore) -> None:
        await store.events.set_readers({"one": Shelf().reader()}, now=NOW)
        await store.events.set_readers({}, now=NOW)
        fewer = {"one": Shelf().reader(types=[EventType.TASK_FAILED])}
        await store.events.set_readers(fewer, now=NOW)
        await _end(store)
        assert await _count(store) == 0

    async def test_a_reader_absent_on_one_node_is_that_of_another(self, store: SqlStore) -> None:
        readers = {"one": Shelf().reader()}
        await _of_node(store, "a").set_readers(readers, now=NOW)
        await _of_node(store, "b").set_readers(readers, now=NOW)
        await _of_node(store, "a").set_readers({}, now=NOW)
        await _end(store)
        assert await _count(store) == 1
        nodes = await store.read(
            lambda db: {
                row[0] for row in db.execute("SELECT node FROM event_readers WHERE reader = 'one'")
            }
        )
        # Node a is not said to read it.
        assert "a" not in nodes

    async def test_an_event_that_is_set_aside_waits_and_holds_up_no_other(
        self, store: SqlStore
    ) -> None:
        shelf = Shelf()
        await store.events.set_readers({"one": shelf.reader()}, now=NOW)
        first, second = await _end(store), await _end(store, 2)
        await store.events.set_first_aside("one", now=NOW, wait_s=60)
        assert await store.events.take("one", shelf.take, now=NOW + 59) == 1
        assert not await store.events.waits("one", now=NOW + 59)
        assert await store.events.take("one", shelf.take, now=NOW + 60) == 1
        assert [event.task_id for event in shelf.events] == [second, first]

    async def test_a_reader_may_name_a_type_twice(self, store: SqlStore) -> None:
        twice = EventReader(take=Shelf().take, types=[EventType.TASK_COMPLETED] * 2)
        await store.events.set_readers({"one": twice}, now=NOW)
        await _end(store)
        assert await _count(store) == 1
