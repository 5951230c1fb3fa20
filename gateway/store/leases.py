"""Which tasks a node may lease, and the leases. The methods are those of `SqlQueue`."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from gateway.contracts import Lease
from gateway.domain import TaskStatus
from gateway.store.attempts import end_dead
from gateway.store.rows import lease_of
from gateway.store.sql import (
    Connection,
    LeaseClock,
    Row,
    dialect_of,
    is_off,
    lease_clock,
    none_of,
    placeholders,
)

# The tasks that a lease may be for; see `SqlQueue.lease`.
Which = Literal["all", "suspects", "others"]
_EXPIRED = "The lease expired: the gateway died, hung, or could not write."
# The columns of a task that its lease changes or has.
_COLUMNS = """id, slug, sold_as, request, attempt, restarts, lone_runs, lease_token, started_at,
    handle, sent_at, payment_id, request_id, leased_by, begun_at, attempts"""
# The outer statement reads files of the chosen tasks only: a sort would carry those of all.
_WITH_FILES = "SELECT (SELECT data FROM task_files WHERE task_id = due.id) AS data, due.* FROM"


def leasable(
    db: Connection,
    blocked: Sequence[str],
    known: Sequence[str] | None = None,
    now: float = 0.0,
    which: Which = "all",
) -> str:
    """Return FROM and WHERE for the tasks that may be leased; see `_parameters`.

    Only tasks of known slugs are included (None: of all), and those of a blocked slug only if
    already submitted. `which` is as in `SqlQueue.lease`. Without the hint, SQLite would read and
    sort every unfinished task.
    """
    hint = dialect_of(db).indexed_by("tasks_due")
    is_known = "1 = 1" if known is None else f"slug IN ({placeholders(known)})"
    # The second kind is a lease that expired: another node died. A job is only polled, which
    # ends no process.
    clock = f"(SELECT {dialect_of(db).clock})" if dialect_of(db).is_shared else repr(now)
    expired = f"(lease_token IS NOT NULL AND due_at <= {clock})"
    died = f"(handle IS NULL AND (restarts > 0 OR {expired}))"
    kind = {"all": "", "suspects": f"AND {died}", "others": f"AND NOT {died}"}[which]
    return f"""FROM tasks {hint} WHERE status IN ('queued', 'processing') AND {is_known} {kind}
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
    which: Which = "all",
) -> list[Lease]:
    """Lease the tasks that are due longest. See `SqlQueue.lease`."""
    clock = LeaseClock.of(db, now)
    order = "restarts, due_at" if which == "suspects" else "due_at"
    due = db.execute(
        f"""{_WITH_FILES} (SELECT {_COLUMNS}{clock.column}
            {leasable(db, blocked, known, now, which)} AND due_at <= {clock.sql}
            ORDER BY {order} LIMIT ? {dialect_of(db).skip_locked}) AS due""",
        (*_parameters(blocked, known), *clock.parameters, limit),
    ).fetchall()
    if not due or is_off(now, clock.read(due[0])):
        return []
    until, lone = clock.read(due[0]) + lease_s, int(which == "suspects")
    leased = [_lease_task(db, row, until, now, node, lone) for row in due]
    return [lease_of(row, until=now + lease_s) for row in leased]


def lease_unknown(
    db: Connection, task_id: str, lease_s: float, now: float, node: str | None = None
) -> Lease | None:
    """Lease one task whatever its slug, to fail it; None if it is not due, or has ended."""
    clock = lease_clock(db, now)
    due = db.execute(
        f"""{_WITH_FILES} (SELECT {_COLUMNS} FROM tasks
           WHERE id = ? AND status IN ('queued', 'processing') AND due_at <= ?) AS due""",  # noqa: S608
        (task_id, clock),
    ).fetchone()
    if due is None or is_off(now, clock):
        return None
    leased = _lease_task(db, due, clock + lease_s, now, node)
    return lease_of(leased, until=now + lease_s)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class WaitingTask:
    """A due task that a node may not lease."""

    id: str
    slug: str
    # Unix seconds.
    created_at: float


def _from_unknown(known: Sequence[str], disabled: Sequence[str]) -> str:
    """Return FROM and WHERE; their parameters are the clock, `known` and `disabled`."""
    return f"""FROM tasks WHERE status IN ('queued', 'processing') AND due_at <= ?
        AND ({none_of("slug", known)} OR (handle IS NULL AND sent_at IS NULL
            AND slug IN ({placeholders(disabled)})))"""


def count_unknown(
    db: Connection, known: Sequence[str], disabled: Sequence[str], now: float, before: float
) -> dict[str, int]:
    """Return the number of tasks of each slug as in `find_unknown`, if created until `before`."""
    rows = db.execute(
        f"SELECT slug, count(*) {_from_unknown(known, disabled)} AND created_at <= ? GROUP BY slug",
        (lease_clock(db, now), *known, *disabled, before),
    ).fetchall()
    return {row[0]: row[1] for row in rows}


def find_unknown(
    db: Connection, known: Sequence[str], disabled: Sequence[str], now: float, limit: int
) -> list[WaitingTask]:
    """Return the due tasks of unknown slugs, and of disabled ones unless submitted, oldest first.

    No node may have them, or all that do are busy.
    """
    rows = db.execute(
        f"""SELECT id, slug, created_at {_from_unknown(known, disabled)}
           ORDER BY created_at, id LIMIT ?""",
        (lease_clock(db, now), *known, *disabled, limit),
    ).fetchall()
    return [
        WaitingTask(id=row["id"], slug=row["slug"], created_at=row["created_at"]) for row in rows
    ]


def _lease_task(
    db: Connection, due: Row, until: float, now: float, node: str | None, lone: int = 0
) -> Mapping[str, Any]:
    """Lease a due task, whose `_COLUMNS` cannot change meanwhile; returns the new ones.

    An expired lease was ended by a death, which is no attempt.
    """
    is_dead = due["lease_token"] is not None
    changed = {
        "attempt": due["attempt"] + int(due["handle"] is None and not is_dead),
        "restarts": due["restarts"] + int(is_dead),
        "lone_runs": due["lone_runs"] + lone,
        "lease_token": secrets.token_hex(16),
        "leased_by": node,
        "started_at": now if due["started_at"] is None else due["started_at"],
        "begun_at": now,
        "attempts": end_dead(due, now, _EXPIRED) if is_dead else due["attempts"],
    }
    columns = ", ".join(f"{name} = ?" for name in changed)
    db.execute(
        f"UPDATE tasks SET status = ?, due_at = ?, note = NULL, {columns} WHERE id = ?",  # noqa: S608 - names of columns
        (TaskStatus.PROCESSING, until, *changed.values(), due["id"]),
    )
    return dict(zip(due.keys(), due, strict=True)) | changed


def next_due(
    db: Connection,
    blocked: Sequence[str],
    now: float,
    known: Sequence[str] | None = None,
    which: Which = "all",
) -> float | None:
    """Return when the next task may be leased, by the caller's clock. See `SqlQueue.next_due`."""
    clock = LeaseClock.of(db, now)
    row = db.execute(
        f"SELECT min(due_at){clock.column} {leasable(db, blocked, known, now, which)}",
        _parameters(blocked, known),
    ).fetchone()
    if row[0] is None or is_off(now, clock.read(row)):
        return None
    return float(row[0]) + (now - clock.read(row))
