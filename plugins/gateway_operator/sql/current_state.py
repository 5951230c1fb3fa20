"""The current state: refunds owed, open payments, waiting tasks, overrides."""

from collections.abc import Sequence

import attrs

from gateway.domain.failure_reasons import FailureReason
from gateway.store.rows import SOLD
from gateway.store.sql import Connection, dialect_of, placeholders
from gateway_operator.sql.refund_lists import Kind, count_kinds
from gateway_operator.sql.sums import join_payments

_OWED: tuple[Kind, ...] = ("undecided", "moving", "failed")
# Of an endpoint's newest finished tasks, for failures and margins.
_RECENT = 20
# Tasks searched for a known cost; often none has one.
_SEARCHED = 200


@attrs.frozen(kw_only=True)
class OwedNow:
    """Unpaid refunds. Money is in units of 10⁻⁶, times are Unix seconds."""

    # Without a decision, and not sent by the settings.
    undecided: int
    undecided_units: int
    undecided_since: float | None
    # Approved, to be sent automatically, or being sent.
    moving: int
    moving_units: int
    # Not rejected.
    failed: int
    failed_units: int

    @property
    def units(self) -> int:
        """The total that may have to be paid."""
        return self.undecided_units + self.moving_units + self.failed_units


@attrs.frozen(kw_only=True)
class Waiting:
    """Waiting items, and since when the oldest waits (Unix seconds)."""

    count: int
    since: float | None


@attrs.frozen(kw_only=True)
class Override:
    """An operator's override of an endpoint's settings; `value` None: removed."""

    slug: str
    field: str
    value: str | None
    at: float
    actor: str
    reason: str


def owed_now(db: Connection, *, is_automatic: bool) -> OwedNow:
    """Return refunds owed; `is_automatic`: whether settings send them without a decision."""
    counts = count_kinds(db, is_automatic=is_automatic)
    undecided, moving, failed = (counts[kind] for kind in _OWED)
    return OwedNow(
        undecided=undecided.count,
        undecided_units=undecided.units,
        undecided_since=undecided.since,
        moving=moving.count,
        moving_units=moving.units,
        failed=failed.count,
        failed_units=failed.units,
    )


def open_payments(db: Connection) -> Waiting:
    """Return the payments whose outcome is not known."""
    row = db.execute(
        "SELECT count(*), min(created_at) FROM payments WHERE state IN ('reserved', 'settling')"
    ).fetchone()
    return Waiting(count=row[0], since=row[1])


def open_by_method(db: Connection) -> dict[str, int]:
    """Return the number of open payments of each payment method."""
    hint = dialect_of(db).indexed_by("payments_open_methods")
    rows = db.execute(
        f"""SELECT method, count(*) FROM payments {hint}
            WHERE method IS NOT NULL AND state IN ('reserved', 'settling') GROUP BY method"""  # noqa: S608
    )
    return {row[0]: row[1] for row in rows}


def waiting_tasks(db: Connection) -> Waiting:
    """Return the paid tasks that no worker has started."""
    row = db.execute(
        "SELECT count(*), min(created_at) FROM tasks WHERE status = 'queued'"
    ).fetchone()
    return Waiting(count=row[0], since=row[1])


def running_tasks(db: Connection) -> dict[str, int]:
    """Return the number of running tasks by slug."""
    rows = db.execute(
        f"SELECT {SOLD}, count(*) FROM tasks t WHERE status = 'processing' GROUP BY {SOLD}"  # noqa: S608 - constants
    )
    return {row[0]: row[1] for row in rows}


def recent_failures(db: Connection, slug: str) -> tuple[int, int]:
    """Return how many of the newest tasks that an endpoint ended failed, and how many there are.

    Tasks that a fallback made are the fallback's.
    Failures that say nothing about the endpoint are excluded, such as content policy refusals.
    """
    others = [reason.value for reason in FailureReason if not reason.counts]
    row = db.execute(
        f"""SELECT count(CASE WHEN status = 'failed' THEN 1 END), count(*) FROM (
                SELECT status FROM (
                    SELECT * FROM ({_newest("slug = ? AND made_by IS NULL", others)}) AS own
                    UNION ALL SELECT * FROM ({_newest("made_by = ?", others)}) AS lent
                ) AS made ORDER BY created_at DESC LIMIT ?) AS newest""",  # noqa: S608 - placeholders only
        (slug, *others, _RECENT, slug, *others, _RECENT, _RECENT),
    ).fetchone()
    return row[0], row[1]


def _newest(made: str, others: Sequence[str]) -> str:
    return f"""SELECT status, created_at FROM tasks
        WHERE {made} AND status IN ('completed', 'failed')
            AND coalesce(details, '') NOT IN ({placeholders(others)})
        ORDER BY created_at DESC LIMIT ?"""  # noqa: S608 - constants and placeholders


def recent_margin(db: Connection, slug: str) -> int | None:
    """Return the average margin of an endpoint's newest finished tasks, in units of 10⁻⁶.

    Only tasks with a known cost count; failed ones bring no income. None: fewer than 20.
    """
    row = db.execute(
        f"""SELECT count(*), avg(CASE WHEN status = 'completed' THEN paid_units ELSE 0 END
                                - cost_micros) FROM (
               SELECT t.status, t.cost_micros, p.paid_units FROM (
                   SELECT status, cost_micros, payment_id, created_at FROM tasks
                   WHERE slug = ? ORDER BY created_at DESC LIMIT ?) AS t
               {join_payments(db)}
               WHERE t.status IN ('completed', 'failed')
                   AND t.cost_micros IS NOT NULL AND p.paid_units IS NOT NULL
               ORDER BY t.created_at DESC LIMIT ?) AS newest""",  # noqa: S608 - constants only
        (slug, _SEARCHED, _RECENT),
    ).fetchone()
    return None if row[0] < _RECENT else round(row[1])


def overrides(db: Connection) -> list[Override]:
    """Return the newest override of each slug and field, with actor and reason."""
    rows = db.execute(
        """SELECT o.slug, o.field, o.value, o.at, a.actor, a.reason
           FROM endpoint_overrides o JOIN operator_actions a ON a.id = o.action_id
           WHERE o.id IN (SELECT max(id) FROM endpoint_overrides GROUP BY slug, field)"""
    )
    names = [field.name for field in attrs.fields(Override)]
    return [Override(**dict(zip(names, row, strict=True))) for row in rows]


def newest_backup_at(db: Connection) -> float | None:
    """Return the time of the newest successful backup (Unix seconds), or None."""
    row = db.execute(
        "SELECT max(at) FROM backups WHERE kind = 'backup' AND error IS NULL"
    ).fetchone()
    at: float | None = row[0]
    return at


def database_bytes(db: Connection) -> int:
    """Return the size of the database without its journal."""
    size: int = db.execute(dialect_of(db).size_query).fetchone()[0]
    return size
