"""The queue of deliveries, in a table of this plugin's own."""

from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

import attrs

from gateway.contracts.parts import Event, EventType
from gateway.store import SqlStore
from gateway.store.sql import Connection, Row, none_of

NAME = "webhooks"


@attrs.frozen(kw_only=True)
class Delivery:
    """One event that is to be delivered."""

    id: int
    task_id: str
    type: EventType

    # The buyer's address. Many hold a secret, so it is not shown.
    url: str = attrs.field(repr=False)

    # Of the address, in lower case.
    host: str
    payer: str = attrs.field(repr=False)

    # When it happened, in Unix seconds.
    at: float

    # Attempts to deliver it that have failed.
    failures: int

    @property
    def message_id(self) -> str:
        """The `webhook-id`: the same for each attempt, and after a restart."""
        return f"msg_{self.type.replace('.', '_')}_{self.task_id}"


def take(db: Connection, events: Sequence[Event]) -> None:
    """Queue a delivery for each event whose buyer named an address."""
    for event in events:
        row = db.execute(
            """SELECT t.callback_url, coalesce(p.method || ':' || m.payer, p.payer) AS payer
               FROM tasks t JOIN payments p ON p.id = t.payment_id
                   LEFT JOIN method_proofs m ON m.payment_id = p.id
               WHERE t.id = ? AND t.callback_url IS NOT NULL""",
            (event.task_id,),
        ).fetchone()
        if row is not None:
            _add(db, event, row["payer"], urlsplit(row["callback_url"]).hostname or "")


def find_nodes(db: Connection) -> set[str]:
    """Return the names of the nodes that have webhooks on."""
    rows = db.execute("SELECT DISTINCT node FROM event_readers WHERE reader = ?", (NAME,))
    return {row["node"] for row in rows}


def _add(db: Connection, event: Event, payer: str, host: str) -> None:
    db.execute(
        """INSERT INTO webhooks_deliveries (task_id, type, payer, host, at, due_at)
           VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (task_id, type) DO NOTHING""",
        (event.task_id, event.type.value, payer, host, event.at, event.at),
    )


def _postpone(db: Connection, event: Delivery, until: float) -> None:
    db.execute(
        "UPDATE webhooks_deliveries SET due_at = ? WHERE payer = ? AND host = ? AND due_at < ?",
        (until, event.payer, event.host, until),
    )


def _retry(db: Connection, event: Delivery, due_at: float) -> None:
    db.execute(
        "UPDATE webhooks_deliveries SET failures = failures + 1, due_at = ? WHERE id = ?",
        (due_at, event.id),
    )


def _end(db: Connection, event: Delivery) -> None:
    db.execute("DELETE FROM webhooks_deliveries WHERE id = ?", (event.id,))


def _find_due(db: Connection, where: str, *parameters: object) -> float | None:
    due: float | None = db.execute(
        f"SELECT min(due_at) FROM webhooks_deliveries WHERE {where}",  # noqa: S608 - constants
        parameters,
    ).fetchone()[0]
    return due


def _find_due_rows(
    db: Connection,
    limit: int,
    now: float,
    ids: Sequence[int],
    payers: Sequence[str],
    hosts: Sequence[str],
) -> list[Row]:
    return db.execute(
        f"""SELECT e.*, t.callback_url FROM webhooks_deliveries e JOIN tasks t ON t.id = e.task_id
           WHERE e.due_at <= ? AND {none_of("e.id", ids)}
               AND {none_of("e.payer", payers)} AND {none_of("e.host", hosts)}
           ORDER BY e.failures > 0, e.due_at, e.id LIMIT ?""",  # noqa: S608 - placeholders
        (now, *ids, *payers, *hosts, limit),
    ).fetchall()


def _find_undelivered(db: Connection, task_id: str) -> list[Row]:
    """Return type and failures of a task's events: those not taken yet, and those in the queue."""
    return db.execute(
        """SELECT type, failures FROM webhooks_deliveries WHERE task_id = ?
           UNION ALL SELECT type, 0 FROM events WHERE reader = ? AND task_id = ?
           ORDER BY 1""",
        (task_id, NAME, task_id),
    ).fetchall()


@attrs.frozen(eq=False, repr=False)
class DeliveryQueue:
    """Events that wait for their delivery. Each method is one write, or one read."""

    _store: SqlStore

    async def due(
        self,
        limit: int,
        *,
        now: float,
        sending: Collection[int] = (),
        busy_payers: Collection[str] = (),
        busy_hosts: Collection[str] = (),
    ) -> list[Delivery]:
        """Return events that may be sent; those that have never failed come first.

        Left out are the ids in `sending`, and all events of busy payers and to busy hosts.
        """
        rows = await self._store.read(
            _find_due_rows, limit, now, list(sending), list(busy_payers), list(busy_hosts)
        )
        return [_delivery_of(row) for row in rows]

    async def earliest(self) -> float | None:
        """Return when the first event of all is or was due, or None if none waits."""
        return await self._store.read(_find_due, "1 = 1")

    async def next_due(self, *, now: float) -> float | None:
        """Return the next time after `now` at which an event may be sent, or None."""
        return await self._store.read(_find_due, "due_at > ?", now)

    async def undelivered(self, task_id: str) -> list[tuple[str, int]]:
        """Return the type and the failed attempts of each event of a task that waits."""
        rows = await self._store.read(_find_undelivered, task_id)
        return [(row["type"], row["failures"]) for row in rows]

    async def postpone(self, event: Delivery, *, until: float) -> None:
        """Let every event of this payer to this host wait at least until then."""
        await self._store.write(_postpone, event, until)

    async def retry(self, event: Delivery, *, due_at: float) -> None:
        """Write down that an attempt has failed, and when the next one is due."""
        await self._store.write(_retry, event, due_at)

    async def end(self, event: Delivery) -> None:
        """Forget an event: it was delivered or given up."""
        await self._store.write(_end, event)


def _delivery_of(row: Row) -> Delivery:
    same = ("id", "task_id", "host", "payer", "at", "failures")
    return Delivery(
        **{name: row[name] for name in same},
        type=EventType(row["type"]),
        url=row["callback_url"],
    )
