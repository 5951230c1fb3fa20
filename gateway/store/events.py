"""The outbox: events are written with the change they report, and deleted when taken."""

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from gateway.contracts.parts import Event, EventReader, EventType, Take
from gateway.store.plugin_functions import find_owner
from gateway.store.sql import Connection, Run, Tables, as_write, dialect_of, none_of, placeholders

_AT_ONCE = 64
# The node of readers whose last node no longer has them. No node is named so.
_ABSENT = "?"
# A reader that no node has registered for this long is forgotten, and its events with it.
_ABSENT_S = 30 * 86_400.0
# Other writes wait for this one.
_FORGOTTEN_AT_ONCE = 1_000


def add_event(
    db: Connection, task_id: str, kind: EventType, now: float, *, has_callback: bool
) -> None:
    """Add an event for each plugin that reads it, if any.

    Call this in the write that makes the event true, so that a crash loses neither or both.
    """
    db.execute(
        """INSERT INTO events (reader, type, task_id, at)
           SELECT DISTINCT reader, type, ?, ? FROM event_readers
           WHERE type = ? AND only_with_callback <= ?""",
        (task_id, now, kind.value, int(has_callback)),
    )


def add_leased_event(
    db: Connection, task_id: str, lease_token: str, kind: EventType, now: float
) -> None:
    """Add an event like `add_event`, if the task still has this lease."""
    db.execute(
        """INSERT INTO events (reader, type, task_id, at)
           SELECT DISTINCT r.reader, r.type, t.id, ? FROM tasks t
           JOIN event_readers r ON r.only_with_callback = 0 OR t.callback_url IS NOT NULL
           WHERE t.id = ? AND t.lease_token = ? AND r.type = ?""",
        (now, task_id, lease_token, kind.value),
    )


def set_readers(db: Connection, node: str, readers: Mapping[str, EventReader], now: float) -> None:
    """Set a node's readers. Other nodes, which may have more plugins, keep theirs.

    Readers that the node no longer has become absent: their plugin may only be disabled for one
    start, so their events are kept until `forget_absent`.
    """
    names = list(readers)
    db.execute(
        f"""INSERT INTO event_readers (node, reader, type, only_with_callback, seen_at)
           SELECT ?, reader, type, only_with_callback, seen_at FROM event_readers
           WHERE node = ? AND {none_of("reader", names)}
           ON CONFLICT (type, reader, node) DO UPDATE SET seen_at = excluded.seen_at""",  # noqa: S608
        (_ABSENT, node, *names),
    )
    db.execute("DELETE FROM event_readers WHERE node = ?", (node,))
    for name, reader in readers.items():
        db.execute("DELETE FROM event_readers WHERE node = ? AND reader = ?", (_ABSENT, name))
        for kind in dict.fromkeys(reader.types):
            db.execute(
                """INSERT INTO event_readers (node, reader, type, only_with_callback, seen_at)
                   VALUES (?, ?, ?, ?, ?)""",
                (node, name, kind.value, int(reader.only_with_callback), now),
            )


def take_events(db: Connection, reader: str, take: Take, now: float, limit: int) -> int:
    """Let a reader take and delete its oldest events; returns how many."""
    # A stored position would skip events: on PostgreSQL a lower id may commit later.
    rows = db.execute(
        f"""DELETE FROM events WHERE id IN (
               SELECT id FROM events WHERE reader = ? AND due_at <= ? ORDER BY id LIMIT ?
               {dialect_of(db).skip_locked})
           RETURNING id, type, task_id, at""",  # noqa: S608 - constants
        (reader, now, limit),
    ).fetchall()
    events = [
        Event(id=row["id"], type=EventType(row["type"]), task_id=row["task_id"], at=row["at"])
        for row in sorted(rows, key=lambda row: row["id"])
    ]
    if events:
        take(db, events)
    return len(events)


def set_first_aside(db: Connection, reader: str, now: float, wait_s: float) -> None:
    """Let a reader's oldest due event wait, because the reader refuses it."""
    db.execute(
        """UPDATE events SET due_at = ? WHERE id = (
               SELECT id FROM events WHERE reader = ? AND due_at <= ? ORDER BY id LIMIT 1)""",
        (now + wait_s, reader, now),
    )


def forget_absent(db: Connection, now: float) -> int:
    """Delete readers not registered for long, and some of the old events without a reader.

    Returns the number of events deleted.
    """
    absent = now - _ABSENT_S
    db.execute("DELETE FROM event_readers WHERE seen_at < ?", (absent,))
    return db.execute(
        """DELETE FROM events WHERE id IN (
               SELECT id FROM events WHERE at < ?
                   AND reader NOT IN (SELECT reader FROM event_readers) LIMIT ?)""",
        (absent, _FORGOTTEN_AT_ONCE),
    ).rowcount


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Backlog:
    """The events waiting for one reader."""

    reader: str
    count: int
    # Unix seconds of the oldest event.
    since: float


class SqlEvents(Tables):
    """Events waiting for plugins."""

    set_first_aside = as_write(set_first_aside)

    def __init__(
        self, *runs: Run, node: str | None = None, run_for_plugin: Run | None = None
    ) -> None:
        """`run_for_plugin` runs the work of third parties; by default it is a write."""
        super().__init__(*runs)
        self._run_for_plugin = run_for_plugin
        # An SQLite file has one node without a name.
        self._node = node or ""

    async def set_readers(self, readers: Mapping[str, EventReader], *, now: float) -> None:
        """Set the events that this node's plugins read, as the function of this name does."""
        await self._write(set_readers, self._node, readers, now)

    async def waits(self, reader: str, *, now: float) -> bool:
        """Whether an event is due for a reader. Cheap, because every ended task asks."""
        sql = "SELECT 1 FROM events WHERE reader = ? AND due_at <= ? LIMIT 1"
        return await self._row(sql, reader, now) is not None

    async def has_any(self, readers: Iterable[str]) -> bool:
        """Whether an event waits for one of these readers, due or set aside."""
        names = list(readers)
        sql = f"SELECT 1 FROM events WHERE reader IN ({placeholders(names)}) LIMIT 1"  # noqa: S608
        return bool(names) and await self._row(sql, *names) is not None

    async def take(self, reader: str, take: Take, *, now: float, is_single: bool = False) -> int:
        """Run `take(db, events)` and delete the events, atomically; returns how many."""
        limit = 1 if is_single else _AT_ONCE
        owner = find_owner(take) if self._run_for_plugin is not None else None
        if self._run_for_plugin is not None and owner is not None:

            def work(db: Connection, handle: Any) -> int:
                return take_events(db, reader, lambda _, events: take(handle, events), now, limit)

            return int(await self._run_for_plugin(owner, work, writes=True))
        return int(await self._write(take_events, reader, take, now, limit))

    async def backlogs(self) -> list[Backlog]:
        """Return the backlog of each reader, absent ones included."""
        rows = await self._rows(
            """SELECT reader, count(*) AS count, min(at) AS since FROM events
               WHERE reader IN (SELECT reader FROM event_readers) GROUP BY reader ORDER BY reader"""
        )
        return [Backlog(reader=row[0], count=row[1], since=row[2]) for row in rows]

    async def forget_absent(self, *, now: float) -> int:
        """Delete readers not registered for 30 days, and events as old without a reader."""
        total = 0
        while count := int(await self._write(forget_absent, now)):
            total += count
        return total
