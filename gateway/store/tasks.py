"""The task queue: lease, complete, fail, retry. The lease token fences each write."""

from collections.abc import Sequence

from gateway.contracts import Cost, Lease
from gateway.contracts.parts import EventType
from gateway.contracts.store import AttemptOutcome
from gateway.domain import Handle, PaymentState, StoredResult, TaskStatus
from gateway.store.attempts import ATTEMPT_COLUMNS, end_dead, end_lease
from gateway.store.events import add_leased_event
from gateway.store.leases import (
    Which,
    count_unknown,
    find_unknown,
    lease_due,
    lease_unknown,
    next_due,
)
from gateway.store.long_texts import add_parts, shorten
from gateway.store.rows import dump, load
from gateway.store.sql import (
    Connection,
    Run,
    Tables,
    as_long_read,
    as_write,
    dialect_of,
    finish,
    lease_clock,
)

# Deaths in lone attempts at this many different tasks have another cause than one task.
_BLAMELESS = 3
_RESTARTED = "The gateway ended during it, and was restarted."


def leave_alone(db: Connection, lease: Lease) -> bool:
    """Note that a lone attempt has gone on for long enough: others may run beside it."""
    return _note_leased(db, lease, "lone_runs = 0")


def begin_submit(db: Connection, lease: Lease, now: float) -> bool:
    """Mark that a submit is about to be sent. An attempt that finds only this must not submit."""
    return _note_leased(db, lease, "sent_at = ?", now)


def save_handle(db: Connection, lease: Lease, handle: Handle) -> bool:
    """Store the handle of the submitted job; raises if it does not survive serialization."""
    load(dump(handle), Handle)
    return _note_leased(db, lease, "handle = ?", dump(handle))


def _note_leased(db: Connection, lease: Lease, change: str, *values: object) -> bool:
    """Change a leased task, which stays leased; False if the lease was lost."""
    sql = f"UPDATE tasks SET {change} WHERE id = ? AND lease_token = ?"  # noqa: S608 - constants
    changed = db.execute(sql, (*values, lease.task_id, lease.token))
    finish(db)
    return bool(changed.rowcount)


def _change_leased(db: Connection, lease: Lease, change: str, *values: object) -> bool:
    """Change a leased task, and end its lease; False if that was lost."""
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
    add_parts(db, lease, parts)
    _note_end(db, lease, EventType.TASK_COMPLETED, now)
    changed = db.execute(
        """UPDATE tasks SET status = ?, result = ?, progress = 1, completed_at = ?, expires_at = ?,
               cost_micros = ?, cost_source = ?, provider = ?, lease_token = NULL
           WHERE id = ? AND lease_token = ?""",
        (
            *(TaskStatus.COMPLETED, written, now, expires_at),
            *((cost.micros, cost.source) if cost is not None else (None, None)),
            *(provider, lease.task_id, lease.token),
        ),
    )
    finish(db)
    return bool(changed.rowcount) or _has_result(db, lease.task_id, written)


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
    _note_end(db, lease, EventType.TASK_FAILED, now)
    row = db.execute(
        """UPDATE tasks SET status = ?, code = 'GENERATION_FAILED', error = ?, details = ?,
               completed_at = ?, reason = ?, provider = ?, lease_token = NULL
           WHERE id = ? AND lease_token = ? RETURNING payment_id""",
        (TaskStatus.FAILED, error, details, now, reason, provider, lease.task_id, lease.token),
    ).fetchone()
    if row is None:
        return False
    owe_refund(db, row["payment_id"], details, now)
    return True


def owe_refund(db: Connection, payment_id: int, reason: str, now: float) -> None:
    """Mark a settled payment `refund_due`, of the whole amount, to its payer."""
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


def _note_end(db: Connection, lease: Lease, kind: EventType, now: float) -> None:
    """Delete the request file, and add the event for its readers, if the lease still holds.

    Call it before the change that ends the lease.
    """
    if lease.request.attachment is not None:
        db.execute(
            """DELETE FROM task_files WHERE task_id IN (
                   SELECT id FROM tasks WHERE id = ? AND lease_token = ?)""",
            (lease.task_id, lease.token),
        )
    add_leased_event(db, lease.task_id, lease.token, kind, now)


def retry(
    db: Connection,
    lease: Lease,
    *,
    delay_s: float,
    now: float,
    costs_attempt: bool,
    keeps_mark: bool = False,
    details: str | None = None,
    reason: str | None = None,
) -> bool:
    """End a lease and discard its job. The task is submitted again after `delay_s`.

    With `keeps_mark`, mark and handle stay, so a marked submit is not sent again. `details` and
    `reason` are as in `fail`.
    """
    outcome: AttemptOutcome = "failed" if costs_attempt else "put_off"
    ended = end_lease(lease, outcome, now, details=details, message=reason)
    discarded = "" if keeps_mark else "handle = NULL, sent_at = NULL,"
    change = f"""due_at = ?, attempt = attempt - ?, {discarded}
        restarts = 0, lone_runs = 0, lease_token = NULL, progress = NULL, note = NULL,
        begun_at = NULL, attempts = ?"""
    due_at = lease_clock(db, now) + delay_s
    return _change_leased(db, lease, change, due_at, int(not costs_attempt), ended)


def give_back(db: Connection, lease: Lease, stopped_at: float | None = None) -> bool:
    """End a lease unchanged, due by its age. Only a submitted job counts as an attempt.

    `stopped_at` is the time if the gateway stops during the attempt; None if none began.
    """
    ended = end_lease(lease, "stopped", stopped_at) if stopped_at is not None else None
    due_at = dialect_of(db).not_in_future("created_at")
    change = f"""due_at = {due_at}, lease_token = NULL,
        lone_runs = lone_runs - CASE WHEN lone_runs > 0 THEN 1 ELSE 0 END,
        attempt = attempt - CASE WHEN handle IS NULL THEN 1 ELSE 0 END,
        begun_at = NULL, attempts = coalesce(?, attempts)"""
    return _change_leased(db, lease, change, ended)


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
    return _note_leased(db, lease, change, lease_clock(db, now) + lease_s, progress, note)


def recover(db: Connection, now: float, node: str | None = None) -> int:
    """Make every task that a node had leased due again, ahead of newer ones; returns how many.

    The death counts as a restart of each, and not as an attempt. Without a name, the database has
    one node, which held every lease. Leases of other nodes expire on their own.
    """
    own = "" if node is None else "AND leased_by = ?"
    names, clock = [node] if node is not None else [], lease_clock(db, now)
    held = f"status = 'processing' AND lease_token IS NOT NULL {own}"
    _clear_suspicion(db, held, names)
    dead = f"SELECT id, lease_token, {ATTEMPT_COLUMNS} FROM tasks WHERE {held}"  # noqa: S608
    for row in db.execute(dead, names).fetchall():
        ended = end_dead(row, now, _RESTARTED)
        db.execute(
            "UPDATE tasks SET attempts = ? WHERE id = ? AND lease_token = ?",
            (ended, row["id"], row["lease_token"]),
        )
    return db.execute(
        f"""UPDATE tasks SET lease_token = NULL, begun_at = NULL, restarts = restarts + 1,
               attempt = attempt - CASE WHEN handle IS NULL THEN 1 ELSE 0 END,
               due_at = CASE WHEN created_at < ? THEN created_at ELSE ? END
           WHERE {held}""",  # noqa: S608
        (clock, clock, *names),
    ).rowcount


def _clear_suspicion(db: Connection, held: str, names: list[str]) -> None:
    """If a node died in lone attempts at three different tasks in a row, blame none of them.

    Two may well be two poisonous files, which the gateway has to survive.
    """
    others = "lone_runs > 0 AND lease_token IS NULL AND status IN ('queued', 'processing')"
    lone = _count(db, f"{held} AND lone_runs > 0", *names)
    if lone and _count(db, others) + 1 >= _BLAMELESS:
        db.execute(f"UPDATE tasks SET lone_runs = 0 WHERE {others}")  # noqa: S608


def _count(db: Connection, condition: str, *values: str) -> int:
    sql = f"SELECT count(*) FROM tasks WHERE {condition}"  # noqa: S608 - constants
    return int(db.execute(sql, values).fetchone()[0])


def forget_outputs(db: Connection, task_ids: Sequence[str]) -> None:
    """Mark the outputs of tasks as deleted."""
    for task_id in task_ids:
        db.execute("UPDATE tasks SET outputs_gone = 1 WHERE id = ?", (task_id,))


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
    leave_alone = as_write(leave_alone)
    depth = as_long_read(depth)

    async def lease(
        self,
        limit: int,
        *,
        lease_s: float,
        now: float,
        known: Sequence[str] | None = None,
        blocked: Sequence[str] = (),
        which: Which = "all",
    ) -> list[Lease]:
        """Lease the tasks that are due longest. Each lease counts as an attempt unless a job runs.

        A task not completed, failed or retried within `lease_s` seconds is due again: its worker
        has died, which counts as a restart. Only tasks of the slugs in `known` are leased (None: of
        all), and those of the slugs in `blocked` only if already submitted. Of these tasks,
        `suspects` are those whose worker has died, unless their job is only polled: lease one
        alone, since it may be what killed the worker.

        On a database that nodes share, the database's clock decides; `now`, the node's time, is
        only compared with it. A node whose clock is off gets no lease.
        """
        leases: list[Lease] = await self._write(
            lease_due, limit, lease_s, now, blocked, self._node, known, which
        )
        return leases

    async def lease_unknown(self, task_id: str, *, lease_s: float, now: float) -> Lease | None:
        """Lease one task whatever its slug, to fail it; None if it is not due, or has ended."""
        lease: Lease | None = await self._write(lease_unknown, task_id, lease_s, now, self._node)
        return lease

    find_unknown = as_long_read(find_unknown)
    count_unknown = as_long_read(count_unknown)

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
        which: Which = "all",
    ) -> float | None:
        """Return when the next task is due, by the clock of `now`; None if no task waits.

        `known`, `blocked` and `which` are as in `lease`. Always None for a node whose clock is off.
        """
        # Without conditions this reads one index entry; otherwise it scans all waiting tasks.
        run = self._long_read if blocked or which != "all" else self._read_row
        due: float | None = await run(next_due, blocked, now, known, which)
        return due

    @property
    def is_shared(self) -> bool:
        """Whether other nodes lease tasks of the same database."""
        return self._node is not None
