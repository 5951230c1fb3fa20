"""The task queue: lease, complete, fail, retry. The lease token fences each write."""

import secrets
from collections.abc import Sequence

from gateway.contracts import Cost, Lease
from gateway.contracts.events import EventType
from gateway.domain import Handle, PaymentState, StoredResult, TaskStatus
from gateway.store.events import add_event
from gateway.store.nodes import is_off, lease_clock
from gateway.store.rows import RunWrite, dump, lease_of, load
from gateway.store.sql import Connection, Row, dialect_of, none_of
from gateway.store.texts import add_parts, shorten


def leasable(db: Connection, blocked: Sequence[str]) -> str:
    """Return FROM and WHERE for the tasks that may be leased; its parameters are `blocked`.

    Tasks of a blocked slug are included only if already submitted. Without the hint, SQLite would
    read and sort every unfinished task.
    """
    hint = dialect_of(db).indexed_by("tasks_due")
    return f"""FROM tasks {hint} WHERE status IN ('queued', 'processing')
        AND (handle IS NOT NULL OR sent_at IS NOT NULL OR {none_of("slug", blocked)})"""


def lease_due(
    db: Connection,
    limit: int,
    lease_s: float,
    now: float,
    blocked: Sequence[str],
    node: str | None = None,
) -> list[Lease]:
    """Lease the tasks that are due longest. See `SqlQueue.lease`."""
    clock = lease_clock(db, now)
    if is_off(now, clock):
        return []
    due = db.execute(
        f"""SELECT id {leasable(db, blocked)} AND due_at <= ? ORDER BY due_at LIMIT ?
            {dialect_of(db).skip_locked}""",
        (*blocked, clock, limit),
    ).fetchall()
    until = clock + lease_s
    leased = [_lease_task(db, row["id"], until, now, node) for row in due]
    return [lease_of(row, until=now + lease_s) for row in leased]


def _lease_task(db: Connection, task_id: str, until: float, now: float, node: str | None) -> Row:
    row: Row = db.execute(
        """UPDATE tasks SET status = ?,
               attempt = attempt + CASE WHEN handle IS NULL THEN 1 ELSE 0 END,
               lease_token = ?, leased_by = ?, due_at = ?, started_at = coalesce(started_at, ?)
           WHERE id = ?
           RETURNING id, slug, request, attempt, lease_token, started_at, handle,
               sent_at, payment_id, request_id,
               (SELECT data FROM task_files WHERE task_id = tasks.id) AS data""",
        (TaskStatus.PROCESSING, secrets.token_hex(16), node, until, now, task_id),
    ).fetchone()
    return row


def begin_submit(db: Connection, lease: Lease, now: float) -> bool:
    """Mark that a submit is about to be sent; an attempt that finds only this must not submit."""
    return _change_leased(db, lease, "sent_at = ?", now)


def save_handle(db: Connection, lease: Lease, handle: Handle) -> bool:
    """Store the handle of the submitted job; raises if it does not survive serialization."""
    load(dump(handle), Handle)
    return _change_leased(db, lease, "handle = ?", dump(handle))


def _change_leased(db: Connection, lease: Lease, change: str, *values: object) -> bool:
    """Change a leased task; False if the lease was lost."""
    sql = f"UPDATE tasks SET {change} WHERE id = ? AND lease_token = ?"  # noqa: S608 - constants
    return bool(db.execute(sql, (*values, lease.task_id, lease.token)).rowcount)


def complete(
    db: Connection,
    lease: Lease,
    result: StoredResult,
    expires_at: float,
    now: float,
    cost: Cost | None,
    provider: str | None,
) -> bool:
    """Mark a task `completed` and store its result; raises if it does not survive serialization."""
    short, parts = shorten(result)
    written = dump(short)
    load(written, StoredResult)
    row = db.execute(
        """UPDATE tasks SET status = ?, result = ?, progress = 1, completed_at = ?, expires_at = ?,
               cost_micros = ?, cost_source = ?, provider = ?, lease_token = NULL
           WHERE id = ? AND lease_token = ? RETURNING callback_url""",
        (
            *(TaskStatus.COMPLETED, written, now, expires_at),
            *((cost.micros, cost.source) if cost is not None else (None, None)),
            *(provider, lease.task_id, lease.token),
        ),
    ).fetchone()
    if row is None:
        return False
    add_parts(db, lease.task_id, parts)
    _note_end(db, lease, row["callback_url"], EventType.TASK_COMPLETED, now)
    return True


def fail(
    db: Connection,
    lease: Lease,
    details: str,
    error: str,
    now: float,
    reason: str | None,
    provider: str | None,
) -> bool:
    """Mark a task `failed` and its payment `refund_due`."""
    row = db.execute(
        """UPDATE tasks SET status = ?, code = 'GENERATION_FAILED', error = ?, details = ?,
               completed_at = ?, reason = ?, provider = ?, lease_token = NULL
           WHERE id = ? AND lease_token = ? RETURNING payment_id, callback_url""",
        (TaskStatus.FAILED, error, details, now, reason, provider, lease.task_id, lease.token),
    ).fetchone()
    if row is None:
        return False
    _owe_refund(db, row["payment_id"], details, now)
    _note_end(db, lease, row["callback_url"], EventType.TASK_FAILED, now)
    return True


def _owe_refund(db: Connection, payment_id: int, reason: str, now: float) -> None:
    db.execute(
        "UPDATE payments SET state = ?, updated_at = ? WHERE id = ?",
        (PaymentState.REFUND_DUE, now, payment_id),
    )
    db.execute(
        """INSERT INTO refunds (payment_id, amount_units, recipient, reason, created_at, updated_at)
           SELECT p.id, p.paid_units, coalesce(lower(m.refund_to), p.payer), ?, ?, ?
           FROM payments p LEFT JOIN method_proofs m ON m.payment_id = p.id WHERE p.id = ?""",
        (reason, now, now, payment_id),
    )


def _note_end(
    db: Connection, lease: Lease, callback_url: str | None, kind: EventType, now: float
) -> None:
    """Delete the request file, and add the event for its readers."""
    if lease.request.attachment is not None:
        db.execute("DELETE FROM task_files WHERE task_id = ?", (lease.task_id,))
    add_event(db, lease.task_id, kind, now, has_callback=callback_url is not None)


def retry(db: Connection, lease: Lease, delay_s: float, now: float, uncounted: int) -> bool:
    """End a lease, for a new submit later. Takes back `uncounted` attempts (0 or 1)."""
    change = """due_at = ?, attempt = attempt - ?, handle = NULL, sent_at = NULL,
        lease_token = NULL, progress = NULL, note = NULL"""
    return _change_leased(db, lease, change, lease_clock(db, now) + delay_s, uncounted)


def give_back(db: Connection, lease: Lease) -> bool:
    """End a lease unchanged, due by its age. Only a submitted job counts as an attempt."""
    due_at = dialect_of(db).not_in_future("created_at")
    change = f"""due_at = {due_at}, lease_token = NULL,
        attempt = attempt - CASE WHEN handle IS NULL THEN 1 ELSE 0 END"""
    return _change_leased(db, lease, change)


def extend(
    db: Connection,
    lease: Lease,
    lease_s: float,
    now: float,
    progress: float | None,
    note: str | None,
) -> bool:
    """Extend a lease and update the task's progress."""
    change = "due_at = ?, progress = coalesce(?, progress), note = coalesce(?, note)"
    return _change_leased(db, lease, change, lease_clock(db, now) + lease_s, progress, note)


def recover(db: Connection, now: float, node: str | None = None) -> int:
    """Make every task that a node had leased due again, ahead of newer ones; returns how many.

    Without a name, the database has one node, which held every lease. Leases of other nodes expire
    on their own.
    """
    own = "" if node is None else "AND leased_by = ?"
    clock = lease_clock(db, now)
    return db.execute(
        f"""UPDATE tasks SET lease_token = NULL,
               due_at = CASE WHEN created_at < ? THEN created_at ELSE ? END
           WHERE status = 'processing' AND lease_token IS NOT NULL {own}""",  # noqa: S608
        (clock, clock, *([node] if node is not None else [])),
    ).rowcount


def forget_outputs(db: Connection, task_ids: Sequence[str]) -> None:
    """Mark the outputs of tasks as deleted."""
    for task_id in task_ids:
        db.execute("UPDATE tasks SET outputs_gone = 1 WHERE id = ?", (task_id,))


def next_due(db: Connection, blocked: Sequence[str], now: float) -> float | None:
    """Return when the next task may be leased, by the caller's clock. See `SqlQueue.next_due`."""
    clock = lease_clock(db, now)
    if is_off(now, clock):
        return None
    due: float | None = db.execute(
        f"SELECT min(due_at) {leasable(db, blocked)}",
        tuple(blocked),
    ).fetchone()[0]
    return due + (now - clock) if due is not None else None


def depth(db: Connection) -> dict[str, int]:
    """Return the number of unfinished tasks in each status."""
    rows = db.execute(
        """SELECT status, count(*) FROM tasks
           WHERE status IN ('held', 'queued', 'processing') GROUP BY status"""
    )
    return {row[0]: row[1] for row in rows}


class SqlQueue:
    """Tasks that wait, run, or have just ended. Each method is one write or one read.

    In docs/payments.md `lease` is T4, and `complete` and `fail` are T5.
    """

    def __init__(
        self, write: RunWrite, query: RunWrite, read_row: RunWrite, node: str | None
    ) -> None:
        self._write = write
        self._query = query
        self._read_row = read_row
        # None for the only node of its database.
        self._node = node

    async def lease(
        self, limit: int, *, lease_s: float, now: float, blocked: Sequence[str] = ()
    ) -> list[Lease]:
        """Lease the tasks that are due longest. Each lease counts as an attempt unless a job runs.

        A task not completed, failed or retried within `lease_s` seconds is due again: its worker
        has died. Tasks of the slugs in `blocked` are leased only if already submitted.

        On a database that nodes share, the database's clock decides; `now`, the node's time, is
        only compared with it. A node whose clock is off gets no lease.
        """
        leases: list[Lease] = await self._write(lease_due, limit, lease_s, now, blocked, self._node)
        return leases

    async def begin_submit(self, lease: Lease, *, now: float) -> bool:
        """Mark that a submit is about to be sent. Returns False if the lease was lost."""
        return bool(await self._write(begin_submit, lease, now))

    async def save_handle(self, lease: Lease, handle: Handle) -> bool:
        """Store the handle of the submitted job. Returns False if the lease was lost."""
        return bool(await self._write(save_handle, lease, handle))

    async def complete(
        self,
        lease: Lease,
        result: StoredResult,
        *,
        expires_at: float,
        now: float,
        cost: Cost | None = None,
        provider: str | None = None,
    ) -> bool:
        """Store the result and make it visible. Returns False if the lease was lost.

        `provider` is the name of the one that generated it. `cost` is None if unknown.
        """
        return bool(await self._write(complete, lease, result, expires_at, now, cost, provider))

    async def fail(
        self,
        lease: Lease,
        *,
        details: str,
        error: str,
        now: float,
        reason: str | None = None,
        provider: str | None = None,
    ) -> bool:
        """Mark the task failed and its refund due.

        The buyer sees `error`; `reason`, in the vendor's words, is for the operator. Returns False
        if the lease was lost.
        """
        return bool(await self._write(fail, lease, details, error, now, reason, provider))

    async def retry(self, lease: Lease, *, delay_s: float, now: float, costs_attempt: bool) -> bool:
        """End a lease and discard its job. The task is submitted again after `delay_s`.

        Returns False if the lease was lost.
        """
        return bool(await self._write(retry, lease, delay_s, now, int(not costs_attempt)))

    async def give_back(self, lease: Lease) -> bool:
        """End a lease without counting an attempt. The task continues later, ahead of newer tasks.

        Returns False if the lease was lost.
        """
        return bool(await self._write(give_back, lease))

    async def extend(
        self,
        lease: Lease,
        *,
        lease_s: float,
        now: float,
        progress: float | None,
        note: str | None = None,
    ) -> bool:
        """Extend a lease to `lease_s` from now, and store progress.

        Returns False if the lease was lost.
        """
        return bool(await self._write(extend, lease, lease_s, now, progress, note))

    async def recover(self, *, now: float) -> int:
        """At startup, make due the tasks that this node had leased: their workers have died.

        Returns how many.
        """
        return int(await self._write(recover, now, self._node))

    async def next_due(self, blocked: Sequence[str] = (), *, now: float) -> float | None:
        """Return when the next task is due, by the clock of `now`; None if no task waits.

        `blocked` is as in `lease`. Always None for a node whose clock is off.
        """
        # With no blocked slugs this reads one index entry; otherwise it scans all waiting tasks.
        run = self._query if blocked else self._read_row
        due: float | None = await run(next_due, blocked, now)
        return due

    async def depth(self) -> dict[str, int]:
        """Return the number of unfinished tasks in each status, however many have ended."""
        counts: dict[str, int] = await self._query(depth)
        return counts
