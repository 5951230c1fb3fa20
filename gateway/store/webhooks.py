"""The queue of webhook events, and the write that adds one."""

from collections.abc import Collection
from urllib.parse import urlsplit

from gateway.contracts.webhooks import EventType, WebhookEvent
from gateway.store.rows import ReadRow, ReadRows, RunWrite
from gateway.store.sql import Connection, Row, none_of


def add_event(db: Connection, task_id: str, kind: EventType, now: float) -> None:
    """Add an event about a task, if its buyer gave a callback URL.

    Call this in the write that makes the event true, so that a crash loses neither or both.
    """
    row = db.execute(
        """SELECT t.callback_url, coalesce(p.method || ':' || m.payer, p.payer) AS payer
           FROM tasks t JOIN payments p ON p.id = t.payment_id
               LEFT JOIN method_proofs m ON m.payment_id = p.id
           WHERE t.id = ? AND t.callback_url IS NOT NULL""",
        (task_id,),
    ).fetchone()
    if row is None:
        return
    host = urlsplit(row["callback_url"]).hostname or ""
    db.execute(
        """INSERT INTO webhook_events (task_id, type, payer, host, at, due_at)
           VALUES (?, ?, ?, ?, ?, ?)""",
        (task_id, kind.value, row["payer"], host, now, now),
    )


def _postpone(db: Connection, event: WebhookEvent, until: float) -> None:
    db.execute(
        "UPDATE webhook_events SET due_at = ? WHERE payer = ? AND host = ? AND due_at < ?",
        (until, event.payer, event.host, until),
    )


def _retry(db: Connection, event: WebhookEvent, due_at: float) -> None:
    db.execute(
        "UPDATE webhook_events SET failures = failures + 1, due_at = ? WHERE id = ?",
        (due_at, event.id),
    )


def _end(db: Connection, event: WebhookEvent) -> None:
    db.execute("DELETE FROM webhook_events WHERE id = ?", (event.id,))


class SqlWebhooks:
    """Events waiting for delivery. Each method is one write or one read."""

    def __init__(self, write: RunWrite, rows: ReadRows, row: ReadRow) -> None:
        self._write = write
        self._rows = rows
        self._row = row

    async def due(
        self,
        limit: int,
        *,
        now: float,
        sending: Collection[int] = (),
        busy_payers: Collection[str] = (),
        busy_hosts: Collection[str] = (),
    ) -> list[WebhookEvent]:
        """Return events that may be sent; those that have never failed come first.

        Excludes the ids in `sending`, and all events of busy payers and to busy hosts.
        """
        ids, payers, hosts = list(sending), list(busy_payers), list(busy_hosts)
        rows = await self._rows(
            f"""SELECT e.*, t.callback_url FROM webhook_events e JOIN tasks t ON t.id = e.task_id
               WHERE e.due_at <= ? AND {none_of("e.id", ids)}
                   AND {none_of("e.payer", payers)} AND {none_of("e.host", hosts)}
               ORDER BY e.failures > 0, e.due_at, e.id LIMIT ?""",  # noqa: S608 - marks
            now,
            *ids,
            *payers,
            *hosts,
            limit,
        )
        return [_event_of(row) for row in rows]

    async def earliest(self) -> float | None:
        """Return the earliest due time of any event, even if past; None if none waits.

        This is cheap: it is called whenever a task ends.
        """
        row = await self._row("SELECT min(due_at) FROM webhook_events")
        due: float | None = row[0] if row is not None else None
        return due

    async def next_due(self, *, now: float) -> float | None:
        """Return the next time after `now` at which an event is due, or None."""
        sql = "SELECT min(due_at) FROM webhook_events WHERE due_at > ?"
        due: float | None = (await self._rows(sql, now))[0][0]
        return due

    async def postpone(self, event: WebhookEvent, *, until: float) -> None:
        """Delay all events of this payer to this host at least until then."""
        await self._write(_postpone, event, until)

    async def retry(self, event: WebhookEvent, *, due_at: float) -> None:
        """Record a failed attempt and when the next one is due."""
        await self._write(_retry, event, due_at)

    async def end(self, event: WebhookEvent) -> None:
        """Delete an event that was delivered or given up."""
        await self._write(_end, event)


def _event_of(row: Row) -> WebhookEvent:
    same = ("id", "task_id", "host", "payer", "at", "failures")
    return WebhookEvent(
        **{name: row[name] for name in same},
        type=EventType(row["type"]),
        url=row["callback_url"],
    )
