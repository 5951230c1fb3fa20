"""The attempts at a task: those that are recorded, and the last one."""

import attrs

from gateway.domain import TaskStatus
from gateway_operator.sql.task_detail import TaskFacts


@attrs.frozen(kw_only=True)
class ShownAttempt:
    """One attempt. Times are Unix seconds; None: it runs, or the time was not recorded."""

    # Tries that did not count, such as one during which the gateway stopped, repeat a number.
    number: int
    begun_at: float | None
    ended_at: float | None

    # `running`, `completed`, `failed`, `put_off`, `stopped` or `died`.
    outcome: str

    # A reason of a failure such as `timed_out`, and the vendor's message or the gateway's.
    details: str | None = None
    message: str | None = None

    # The name of the node; None for the only one.
    node: str | None = None

    # Tries that ended alike, of which `ended_at` is the last one's.
    times: int = 1


def list_attempts(facts: TaskFacts) -> list[ShownAttempt]:
    """Return the attempts, oldest first. Earlier releases recorded only the last one."""
    found = [ShownAttempt(**attrs.asdict(one)) for one in facts.ended_attempts]
    last = _find_last(facts)
    return [*found, last] if last is not None else found


def _find_last(facts: TaskFacts) -> ShownAttempt | None:
    row, own = facts.row, facts.own
    has_failed = row.status == TaskStatus.FAILED
    has_ended = has_failed or row.status == TaskStatus.COMPLETED
    if not row.attempt or not (has_ended or own.begun_at is not None):
        return None
    ended = "failed" if has_failed else "completed"
    return ShownAttempt(
        number=row.attempt,
        begun_at=own.begun_at,
        ended_at=row.completed_at,
        outcome=ended if has_ended else "running",
        details=row.details if has_failed else None,
        message=(row.vendor_message or row.error) if has_failed else None,
        node=own.leased_by,
    )
