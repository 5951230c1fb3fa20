"""The queue's transactions T4 and T5: claim, complete, fail, retry; fenced by the lease token."""

import json
import sqlite3
from collections.abc import Sequence

from gateway.contracts import Lease
from gateway.domain import Handle, PaymentState, StoredResult, TaskStatus
from gateway.store.rows import dump, lease_of, load

# Of the slugs that rest, only what was submitted already: it needs no submit.
# The planner would rather read every unfinished task by its status, and sort.
CLAIMABLE = """tasks INDEXED BY tasks_due WHERE status IN ('queued', 'processing')
    AND (handle IS NOT NULL OR sent_at IS NOT NULL
        OR slug NOT IN (SELECT value FROM json_each(?)))"""


def slugs(resting: Sequence[str]) -> str:
    """Return slugs as the parameter of `CLAIMABLE`."""
    return json.dumps(list(resting))


def claim(
    db: sqlite3.Connection, limit: int, lease_s: float, now: float, resting: Sequence[str]
) -> list[Lease]:
    """T4: lease the longest-due tasks; a claim counts as an attempt unless a job is under way."""
    due = db.execute(
        f"""SELECT id FROM {CLAIMABLE}
            AND due_at <= ? ORDER BY due_at LIMIT ?""",  # noqa: S608 - a constant
        (slugs(resting), now, limit),
    ).fetchall()
    return [_lease(db, row["id"], lease_s, now) for row in due]


def _lease(db: sqlite3.Connection, task_id: str, lease_s: float, now: float) -> Lease:
    row = db.execute(
        """UPDATE tasks SET status = ?, attempt = attempt + (handle IS NULL),
               lease_token = hex(randomblob(16)), due_at = ?, started_at = coalesce(started_at, ?)
           WHERE id = ?
           RETURNING id, slug, request, attempt, lease_token, due_at, started_at, handle,
               sent_at""",
        (TaskStatus.PROCESSING, now + lease_s, now, task_id),
    ).fetchone()
    return lease_of(row, _file(db, task_id))


def _file(db: sqlite3.Connection, task_id: str) -> bytes | None:
    row = db.execute("SELECT data FROM task_files WHERE task_id = ?", (task_id,)).fetchone()
    return row[0] if row else None


def begin_submit(db: sqlite3.Connection, lease: Lease, now: float) -> bool:
    """Note that a submit is about to go out: whoever finds this mark alone must not submit."""
    return _changed(db, lease, "sent_at = ?", now)


def save_handle(db: sqlite3.Connection, lease: Lease, handle: Handle) -> bool:
    """Note the job that a submit has begun; a handle that cannot be read back is refused."""
    load(dump(handle), Handle)
    return _changed(db, lease, "handle = ?", dump(handle))


def _changed(db: sqlite3.Connection, lease: Lease, change: str, *values: object) -> bool:
    """Change a leased task; False where the lease was lost."""
    sql = f"UPDATE tasks SET {change} WHERE id = ? AND lease_token = ?"  # noqa: S608 - constants
    return bool(db.execute(sql, (*values, lease.task_id, lease.token)).rowcount)


def complete(
    db: sqlite3.Connection,
    lease: Lease,
    result: StoredResult,
    expires_at: float,
    now: float,
    cost_micros: int | None,
) -> bool:
    """T5: the result, before anybody can see it; one that cannot be read back is refused."""
    load(dump(result), StoredResult)
    changed = _changed(
        db,
        lease,
        """status = ?, result = ?, progress = 1, completed_at = ?, expires_at = ?,
           cost_micros = ?, lease_token = NULL""",
        *(TaskStatus.COMPLETED, dump(result), now, expires_at, cost_micros),
    )
    return _ended(db, lease, int(changed))


def fail(db: sqlite3.Connection, lease: Lease, details: str, error: str, now: float) -> bool:
    """T5: the failure, and with it the money owed back."""
    row = db.execute(
        """UPDATE tasks SET status = ?, code = 'GENERATION_FAILED', error = ?, details = ?,
               completed_at = ?, lease_token = NULL WHERE id = ? AND lease_token = ?
           RETURNING payment_id""",
        (TaskStatus.FAILED, error, details, now, lease.task_id, lease.token),
    ).fetchone()
    if row is not None:
        _owe_refund(db, row["payment_id"], details, now)
    return _ended(db, lease, int(row is not None))


def _owe_refund(db: sqlite3.Connection, payment_id: int, reason: str, now: float) -> None:
    db.execute(
        "UPDATE payments SET state = ?, updated_at = ? WHERE id = ?",
        (PaymentState.REFUND_DUE, now, payment_id),
    )
    db.execute(
        """INSERT INTO refunds (payment_id, amount_units, recipient, reason, created_at, updated_at)
           SELECT id, paid_units, payer, ?, ?, ? FROM payments WHERE id = ?""",
        (reason, now, now, payment_id),
    )


def _ended(db: sqlite3.Connection, lease: Lease, changed: int) -> bool:
    """Drop the file of a task that has ended."""
    if changed:
        db.execute("DELETE FROM task_files WHERE task_id = ?", (lease.task_id,))
    return bool(changed)


def retry(db: sqlite3.Connection, lease: Lease, due_at: float, refund_attempts: int) -> bool:
    """Give a lease back to be submitted anew; `refund_attempts` of 1 takes back what it cost."""
    change = """due_at = ?, attempt = attempt - ?, handle = NULL, sent_at = NULL,
        lease_token = NULL, progress = NULL, note = NULL"""
    return _changed(db, lease, change, due_at, refund_attempts)


def give_back(db: sqlite3.Connection, lease: Lease) -> bool:
    """Give a lease back as it is: due by its age, and a claim that began no job cost nothing."""
    change = """due_at = created_at, attempt = attempt - (handle IS NULL), lease_token = NULL"""
    return _changed(db, lease, change)


def extend(
    db: sqlite3.Connection, lease: Lease, until: float, progress: float | None, note: str | None
) -> bool:
    """Prolong a lease and note progress."""
    change = "due_at = ?, progress = coalesce(?, progress), note = coalesce(?, note)"
    return _changed(db, lease, change, until, progress, note)


def recover(db: sqlite3.Connection, now: float) -> int:
    """Make every leased task due, before younger ones: whoever held it has died."""
    return db.execute(
        """UPDATE tasks SET due_at = min(created_at, ?), lease_token = NULL
           WHERE status = 'processing' AND lease_token IS NOT NULL""",
        (now,),
    ).rowcount


def forget_outputs(db: sqlite3.Connection, task_ids: Sequence[str]) -> None:
    """Note that outputs were deleted."""
    db.executemany(
        "UPDATE tasks SET outputs_gone = 1 WHERE id = ?", [(task_id,) for task_id in task_ids]
    )
