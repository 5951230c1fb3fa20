"""The task queue: lease, complete, fail, retry. The lease token fences each write."""

import secrets
from collections.abc import Sequence

import attrs

from gateway.contracts import Cost, Lease
from gateway.contracts.parts import EventType
from gateway.domain import Handle, PaymentState, StoredResult, TaskStatus
from gateway.store.events import add_event
from gateway.store.long_texts import add_parts, shorten
from gateway.store.rows import dump, lease_of, load
from gateway.store.sql import (
    Connection,
    Row,
    Run,
    Tables,
    as_query,
    as_write,
    dialect_of,
    is_off,
    lease_clock,
    none_of,
    placeholders,
)


def leasable(db: Connection, blocked: Sequence[str], known: Sequence[str] | None = None) -> str:
    """Return FROM and WHERE for the tasks that may be leased; see `_parameters`.

    Only tasks of known slugs are included (None: of all), and those of a blocked slug only if
    already submitted. Without the hint, SQLite would read and sort every unfinished task.
    """
    hint = dialect_of(db).indexed_by("tasks_due")
    is_known = "1 = 1" if known is None else f"slug IN ({placeholders(known)})"
    return f"""FROM tasks {hint} WHERE status IN ('queued', 'processing') AND {is_known}
        AND (handle IS NOT NULL OR sent_at IS NOT NULL OR {none_of("slug", blocked)})"""


def _parameters(blocked: Sequence[str], known: Sequence[str] | None) -> tuple[str, ...]:
    """Return the parameters of `leasable`."""
    return (*(known or ()), *blocked)


def lease_due(
    db: Connection,
    limit: int,
    lease_s: float,
    now: float,
    blocked: Sequence[str],
    node: str | None = None,
    known: Sequence[str] | None = None,
) -> list[Lease]:
    """Lease the tasks that are due longest. See `SqlQueue.lease`."""
    clock = lease_clock(db, now)
    if is_off(now, clock):
        return []
    due = db.execute(
        f"""SELECT id {leasable(db, blocked, known)} AND due_at <= ? ORDER BY due_at LIMIT ?
            {dialect_of(db).skip_locked}""",
        (*_parameters(blocked, known), clock, limit),
    ).fetchall()
    until = clock + lease_s
    leased = [_lease_task(db, row["id"], until, now, node) for row in due]
    return [lease_of(row, until=now + lease_s) for row in leased]


def lease_unknown(
    db: Connection, task_id: str, lease_s: float, now: float, node: str | None = None
) -> Lease | None:
    """Lease one task whatever its slug, to fail it; None if it is not due, or has ended."""
    clock = lease_clock(db, now)
    due = db.execute(
        """SELECT 1 FROM tasks
           WHERE id = ? AND status IN ('queued', 'processing') AND due_at <= ?""",
        (task_id, clock),
    ).fetchone()
    if due is None or is_off(now, clock):
        return None
    return lease_of(_lease_task(db, task_id, clock + lease_s, now, node), until=now + lease_s)


@attrs.frozen(kw_only=True)
class WaitingTask:
    """A due task that a node may not lease."""

    id: str
    slug: str
    # Unix seconds.
    created_at: float


def find_unknown(
    db: Connection, known: Sequence[str], disabled: Sequence[str], now: float, limit: int
) -> list[WaitingTask]:
    """Return the due tasks of unknown slugs, and of disabled ones unless submitted, oldest first.

    No node may have them, or all that do are busy.
    """
    rows = db.execute(
        f"""SELECT id, slug, created_at FROM tasks
           WHERE status IN ('queued', 'processing') AND due_at <= ?
               AND ({none_of("slug", known)} OR (handle IS NULL AND sent_at IS NULL
                   AND slug IN ({placeholders(disabled)})))
           ORDER BY created_at, id LIMIT ?""",  # noqa: S608 - placeholders
        (lease_clock(db, now), *known, *disabled, limit),
    ).fetchall()
    return [
        WaitingTask(id=row["id"], slug=row["slug"], created_at=row["created_at"]) for row in rows
    ]


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
    """Mark that a submit is about to be sent. An attempt that finds only this must not submit."""
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
    cost: Cost | None = None,
    provider: str | None = None,
) -> bool:
    """Mark a task `completed` and store its result; raises if it does not survive serialization.

    `provider` is the name of the one that generated it. `cost` is None if unknown. Also True if the
    task has this result already: a repeat after a COMMIT whose response was lost.
    """
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
        return _has_result(db, lease.task_id, written)
    add_parts(db, lease.task_id, parts)
    _note_end(db, lease, row["callback_url"], EventType.TASK_COMPLETED, now)
    return True


def _has_result(db: Connection, task_id: str, written: str) -> bool:
    """Whether a task has this result. The outputs' keys differ between leases."""
    row = db.execute("SELECT result FROM tasks WHERE id = ?", (task_id,)).fetchone()
    return row is not None and row["result"] == written


def fail(
    db: Connection,
    lease: Lease,
    details: str,
    error: str,
    now: float,
    reason: str | None = None,
    provider: str | None = None,
) -> bool:
    """Mark a task `failed` and its payment `refund_due`.

    The buyer sees `error`; `reason`, in the vendor's words, is for the operator.
    """
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


def retry(db: Connection, lease: Lease, *, delay_s: float, now: float, costs_attempt: bool) -> bool:
    """End a lease and discard its job. The task is submitted again after `delay_s`."""
    change = """due_at = ?, attempt = attempt - ?, handle = NULL, sent_at = NULL,
        lease_token = NULL, progress = NULL, note = NULL"""
    return _change_leased(db, lease, change, lease_clock(db, now) + delay_s, int(not costs_attempt))


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
    note: str | None = None,
) -> bool:
    """Extend a lease to `lease_s` from now, and update the task's progress."""
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


def next_due(
    db: Connection, blocked: Sequence[str], now: float, known: Sequence[str] | None = None
) -> float | None:
    """Return when the next task may be leased, by the caller's clock. See `SqlQueue.next_due`."""
    clock = lease_clock(db, now)
    if is_off(now, clock):
        return None
    due: float | None = db.execute(
        f"SELECT min(due_at) {leasable(db, blocked, known)}", _parameters(blocked, known)
    ).fetchone()[0]
    return due + (now - clock) if due is not None else None


def depth(db: Connection) -> dict[str, int]:
    """Return the number of unfinished tasks in each status."""
    rows = db.execute(
        """SELECT status, count(*) FROM tasks
           WHERE status IN ('held', 'queued', 'processing') GROUP BY status"""
    )
    return {row[0]: row[1] for row in rows}


class SqlQueue(Tables):
    """Tasks that wait, run, or have just ended.

    In docs/payments.md `lease` is T4, and `complete` and `fail` are T5. Those that return a bool
    return False if the lease was lost.
    """

    def __init__(self, *runs: Run, node: str | None) -> None:
        """Take `node`, None for the only node of its database."""
        super().__init__(*runs)
        self._node = node

    begin_submit = as_write(begin_submit)
    save_handle = as_write(save_handle)
    complete = as_write(complete)
    fail = as_write(fail)
    retry = as_write(retry)
    give_back = as_write(give_back)
    extend = as_write(extend)
    depth = as_query(depth)

    async def lease(
        self,
        limit: int,
        *,
        lease_s: float,
        now: float,
        known: Sequence[str] | None = None,
        blocked: Sequence[str] = (),
    ) -> list[Lease]:
        """Lease the tasks that are due longest. Each lease counts as an attempt unless a job runs.

        A task not completed, failed or retried within `lease_s` seconds is due again: its worker
        has died. Only tasks of the slugs in `known` are leased (None: of all), and those of the
        slugs in `blocked` only if already submitted.

        On a database that nodes share, the database's clock decides; `now`, the node's time, is
        only compared with it. A node whose clock is off gets no lease.
        """
        leases: list[Lease] = await self._write(
            lease_due, limit, lease_s, now, blocked, self._node, known
        )
        return leases

    async def lease_unknown(self, task_id: str, *, lease_s: float, now: float) -> Lease | None:
        """Lease one task whatever its slug, to fail it; None if it is not due, or has ended."""
        lease: Lease | None = await self._write(lease_unknown, task_id, lease_s, now, self._node)
        return lease

    find_unknown = as_query(find_unknown)

    async def recover(self, *, now: float) -> int:
        """At startup, make due the tasks that this node had leased: their workers have died.

        Returns how many.
        """
        return int(await self._write(recover, now, self._node))

    async def next_due(
        self,
        blocked: Sequence[str] = (),
        *,
        now: float,
        known: Sequence[str] | None = None,
    ) -> float | None:
        """Return when the next task is due, by the clock of `now`; None if no task waits.

        `known` and `blocked` are as in `lease`. Always None for a node whose clock is off.
        """
        # With no blocked slugs this reads one index entry; otherwise it scans all waiting tasks.
        run = self._query if blocked else self._read_row
        due: float | None = await run(next_due, blocked, now, known)
        return due
