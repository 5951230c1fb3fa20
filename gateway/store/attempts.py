"""A task's earlier leases, in its row: they cost no write of their own, and end with the task."""

import attrs

from gateway.contracts import Lease
from gateway.contracts.store import AttemptOutcome, AttemptRecord
from gateway.store.rows import attempts_of, dump
from gateway.store.sql import Row

# Of a row with more, later leases that do not count as attempts are added to one of their kind. As
# attempts are limited, a row has at most 16 records more.
_MOST = 20

ATTEMPT_COLUMNS = "attempt, attempts, begun_at, leased_by"


def end_lease(
    lease: Lease,
    outcome: AttemptOutcome,
    now: float,
    *,
    details: str | None = None,
    message: str | None = None,
) -> str:
    """Return the records of a task, with the end of its lease, as its row stores them."""
    new = AttemptRecord(
        number=lease.attempt,
        begun_at=lease.begun_at,
        ended_at=now,
        outcome=outcome,
        details=details,
        message=message,
        node=lease.node,
    )
    return dump(_add(lease.ended, new))


def end_dead(row: Row, now: float, message: str) -> str:
    """Return the records of a task whose worker has died; `row` has `ATTEMPT_COLUMNS`."""
    new = AttemptRecord(
        number=row["attempt"],
        begun_at=row["begun_at"],
        ended_at=now,
        outcome="died",
        message=message,
        node=row["leased_by"],
    )
    return dump(_add(attempts_of(row["attempts"]), new))


def _add(ended: tuple[AttemptRecord, ...], new: AttemptRecord) -> tuple[AttemptRecord, ...]:
    alike = [
        place
        for place, one in enumerate(ended)
        if (one.number, one.outcome) == (new.number, new.outcome) and new.outcome != "failed"
    ]
    repeats = new.outcome == "put_off" and alike[-1:] == [len(ended) - 1]
    if not alike or not (repeats or len(ended) >= _MOST):
        return (*ended, new)
    place, last = alike[-1], ended[alike[-1]]
    grown = attrs.evolve(new, begun_at=last.begun_at, times=last.times + 1)
    return (*ended[:place], grown, *ended[place + 1 :])
