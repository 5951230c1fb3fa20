"""The outbox: events are written with the change they report, and deleted when taken."""

from collections.abc import Mapping

import attrs

from gateway.contracts.events import Event, EventReader, EventType, Take
from gateway.store.rows import ReadRow, ReadRows, RunWrite
from gateway.store.sql import Connection, dialect_of

_AT_ONCE = 64
# A node not seen for this long no longer keeps a reader alive.
_NODE_GONE_S = 86_400.0
_ABSENT_READER_S = 30 * 86_400.0


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


def set_readers(db: Connection, node: str, readers: Mapping[str, EventReader]) -> None:
    """Replace a node's readers. Other nodes, which may have more plugins, keep theirs."""
    db.execute("DELETE FROM event_readers WHERE node = ?", (node,))
    for name, reader in readers.items():
        for kind in reader.types:
            db.execute(
                """INSERT INTO event_readers (node, reader, type, only_with_callback)
                   VALUES (?, ?, ?, ?)""",
                (node, name, kind.value, int(reader.only_with_callback)),
            )


def take_events(db: Connection, reader: str, take: Take) -> int:
    """Let a reader take and delete its oldest events; returns how many."""
    # A stored position would skip events: on PostgreSQL a lower id may commit later.
    rows = db.execute(
        f"""DELETE FROM events WHERE id IN (
               SELECT id FROM events WHERE reader = ? ORDER BY id LIMIT ?
               {dialect_of(db).skip_locked})
           RETURNING id, type, task_id, at""",  # noqa: S608 - constants
        (reader, _AT_ONCE),
    ).fetchall()
    events = [
        Event(id=row["id"], type=EventType(row["type"]), task_id=row["task_id"], at=row["at"])
        for row in sorted(rows, key=lambda row: row["id"])
    ]
    if events:
        take(db, events)
    return len(events)


def forget_absent(db: Connection, node: str, now: float) -> int:
    """Delete readers of nodes that are gone, and old events without a reader.

    Returns the number of events deleted.
    """
    db.execute(
        """DELETE FROM event_readers WHERE node <> ?
           AND node NOT IN (SELECT name FROM nodes WHERE seen_at >= ?)""",
        (node, now - _NODE_GONE_S),
    )
    return db.execute(
        "DELETE FROM events WHERE at < ? AND reader NOT IN (SELECT reader FROM event_readers)",
        (now - _ABSENT_READER_S,),
    ).rowcount


@attrs.frozen(kw_only=True)
class Backlog:
    """The events waiting for one reader."""

    reader: str
    count: int

    # Unix seconds of the oldest event.
    since: float


class SqlEvents:
    """Events waiting for plugins. Each method is one write or one read."""

    def __init__(
        self, write: RunWrite, rows: ReadRows, row: ReadRow, node: str | None = None
    ) -> None:
        self._write = write
        self._rows = rows
        self._row = row
        # An SQLite file has one node without a name.
        self._node = node or ""

    async def set_readers(self, readers: Mapping[str, EventReader]) -> None:
        """Set the events that this node's plugins read from now on."""
        await self._write(set_readers, self._node, readers)

    async def waits(self, reader: str) -> bool:
        """Whether an event waits for a reader. Cheap, because every ended task asks."""
        return await self._row("SELECT 1 FROM events WHERE reader = ? LIMIT 1", reader) is not None

    async def take(self, reader: str, take: Take) -> int:
        """Run `take(db, events)` and delete the events, atomically; returns how many."""
        return int(await self._write(take_events, reader, take))

    async def backlogs(self) -> list[Backlog]:
        """Return the backlog of each reader that some node has."""
        rows = await self._rows(
            """SELECT reader, count(*) AS count, min(at) AS since FROM events
               WHERE reader IN (SELECT reader FROM event_readers) GROUP BY reader ORDER BY reader"""
        )
        return [Backlog(reader=row[0], count=row[1], since=row[2]) for row in rows]

    async def forget_absent(self, *, now: float) -> int:
        """Delete readers of nodes not seen for a day, and events unread for 30 days."""
        return int(await self._write(forget_absent, self._node, now))
