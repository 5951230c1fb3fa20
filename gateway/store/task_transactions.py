"""The queue's transactions T4 and T5: claim, complete, fail, retry; fenced by the lease token."""

import sqlite3
from collections.abc import Sequence

from gateway.contracts import Lease
from gateway.domain import PaymentState, StoredResult, TaskStatus
from gateway.store.rows import dump, lease_of, load


def claim(db: sqlite3.Connection, limit: int, lease_s: float, now: float) -> list[Lease]:
    """T4: lease the longest-due tasks; each claim counts as an attempt."""
    rows = db.execute(
        """UPDATE tasks SET status = ?, attempt = attempt + 1, lease_token = hex(randomblob(16)),
               due_at = ?, started_at = coalesce(started_at, ?)
           WHERE id IN (SELECT id FROM tasks WHERE status IN ('queued', 'processing')
               AND due_at <= ? ORDER BY due_at LIMIT ?)
           RETURNING id, slug, request, attempt, lease_token, due_at""",
        (TaskStatus.PROCESSING, now + lease_s, now, now, limit),
    ).fetchall()
    return [lease_of(row, _file(db, row["id"])) for row in rows]


def _file(db: sqlite3.Connection, task_id: str) -> bytes | None:
    row = db.execute("SELECT data FROM task_files WHERE task_id = ?", (task_id,)).fetchone()
    return row[0] if row else None


def complete(
    db: sqlite3.Connection, lease: Lease, result: StoredResult, expires_at: float, now: float
) -> bool:
    """T5: the result, before anybody can see it; one that cannot be read back is refused."""
    load(dump(result), StoredResult)
    changed = db.execute(
        """UPDATE tasks SET status = ?, result = ?, progress = 1, completed_at = ?, expires_at = ?,
               lease_token = NULL WHERE id = ? AND lease_token = ?""",
        (TaskStatus.COMPLETED, dump(result), now, expires_at, lease.task_id, lease.token),
    ).rowcount
    return _ended(db, lease, changed)


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
    """Give a lease back; `refund_attempts` of 1 takes the claim's attempt back as well."""
    return bool(
        db.execute(
            """UPDATE tasks SET due_at = ?, attempt = attempt - ?, lease_token = NULL,
                   progress = NULL WHERE id = ? AND lease_token = ?""",
            (due_at, refund_attempts, lease.task_id, lease.token),
        ).rowcount
    )


def extend(db: sqlite3.Connection, lease: Lease, until: float, progress: float | None) -> bool:
    """Prolong a lease and note progress."""
    return bool(
        db.execute(
            """UPDATE tasks SET due_at = ?, progress = coalesce(?, progress)
               WHERE id = ? AND lease_token = ?""",
            (until, progress, lease.task_id, lease.token),
        ).rowcount
    )


def recover(db: sqlite3.Connection, now: float) -> int:
    """Make every leased task due: whoever held it has died."""
    return db.execute(
        """UPDATE tasks SET due_at = ?, lease_token = NULL
           WHERE status = 'processing' AND lease_token IS NOT NULL""",
        (now,),
    ).rowcount


def forget_outputs(db: sqlite3.Connection, task_ids: Sequence[str]) -> None:
    """Note that outputs were deleted."""
    db.executemany(
        "UPDATE tasks SET outputs_gone = 1 WHERE id = ?", [(task_id,) for task_id in task_ids]
    )


def count_attempt(
    db: sqlite3.Connection, address: str, limit: int, window_s: int, now: float
) -> float:
    """Count a login attempt; returns 0, or the seconds until the next is allowed."""
    db.execute("DELETE FROM login_attempts WHERE at <= ?", (now - window_s,))
    times = [
        row[0]
        for row in db.execute(
            "SELECT at FROM login_attempts WHERE address = ? ORDER BY at DESC LIMIT ?",
            (address, limit),
        )
    ]
    if len(times) >= limit:
        return float(times[-1]) + window_s - now
    db.execute("INSERT INTO login_attempts (address, at) VALUES (?, ?)", (address, now))
    return 0.0


def meta(db: sqlite3.Connection, key: str, made: str) -> str:
    """Return a stored value, keeping `made` where there is none."""
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (key, made))
    value: str = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0]
    return value
