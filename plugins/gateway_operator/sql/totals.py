"""Totals since the first sale, for metrics, read incrementally.

Ids of payments and tasks rise, and closed ones do not change. So a total up to the first open one
is final, and later totals add to it.
"""

import attrs

from gateway.store.rows import SOLD
from gateway.store.sql import Connection

# At least a minute older than the newest one.
_A_MINUTE_OLD = "WHERE created_at <= (SELECT max(created_at) FROM payments) - 60"


@attrs.frozen(kw_only=True)
class Sales:
    """The sales of one endpoint and flow."""

    slug: str
    flow: str
    sales: int
    # 10⁻⁶ USDC.
    units: int


@attrs.frozen(kw_only=True)
class Ended:
    """The ended tasks of one endpoint and outcome."""

    slug: str
    # `completed`, or the details of the failure.
    outcome: str
    tasks: int
    # 10⁻⁶ US dollars, without tasks of unknown cost.
    cost_micros: int
    # Completed tasks without a known cost.
    unknown_costs: int


@attrs.frozen(kw_only=True)
class Waiting:
    """The items in one state now."""

    state: str
    count: int
    # 10⁻⁶ USDC.
    units: int
    # Unix seconds.
    oldest_at: float


@attrs.frozen(kw_only=True)
class ReadTotals:
    """One state of the database: totals that became final, newer ones, and waiting items."""

    # Up to these ids everything is final.
    last_payment: int
    last_task: int
    final_sales: list[Sales]
    final_ended: list[Ended]
    new_sales: list[Sales]
    new_ended: list[Ended]
    queue: list[Waiting]
    payments: list[Waiting]
    refunds: list[Waiting]


def read_totals(db: Connection, payments: int, tasks: int) -> ReadTotals:
    """Read everything newer than these payments and tasks, and waiting items."""
    last_payment = max(payments, last_final_payment(db))
    last_task = max(tasks, last_final_task(db))
    return ReadTotals(
        last_payment=last_payment,
        last_task=last_task,
        final_sales=sales_between(db, payments, last_payment),
        final_ended=ended_between(db, tasks, last_task),
        new_sales=sales_between(db, last_payment, None),
        new_ended=ended_between(db, last_task, None),
        queue=waiting_tasks(db),
        payments=open_payments(db),
        refunds=open_refunds(db),
    )


def last_final_payment(db: Connection) -> int:
    """Return the id up to which payments are final: none is open, and none can be added."""
    oldest_open = "SELECT min(id) FROM payments WHERE state IN ('reserved', 'settling')"
    newest = f"SELECT coalesce(max(id), 0) FROM payments {_A_MINUTE_OLD}"  # noqa: S608 - constants
    return _last_final(db, oldest_open, newest)


def last_final_task(db: Connection) -> int:
    """Return the payment id up to which tasks are final, as `last_final_payment` does."""
    oldest_open = """SELECT min(payment_id) FROM tasks
        WHERE status IN ('held', 'queued', 'processing')"""
    newest = f"SELECT coalesce(max(payment_id), 0) FROM tasks {_A_MINUTE_OLD}"  # noqa: S608 - constants
    return _last_final(db, oldest_open, newest)


def _last_final(db: Connection, oldest_open: str, newest: str) -> int:
    """Return the id before the oldest open one, but at least a minute old.

    PostgreSQL assigns ids before it commits, so a payment may appear after one with a higher id.
    Below a final id, it would never be counted.
    """
    settled = int(db.execute(newest).fetchone()[0])
    row = db.execute(oldest_open).fetchone()
    return settled if row[0] is None else min(int(row[0]) - 1, settled)


def sales_between(db: Connection, after: int, until: int | None) -> list[Sales]:
    """Return sales with a payment id above `after` and, if given, up to `until`."""
    rows = db.execute(
        f"""SELECT {SOLD}, coalesce(p.method, p.flow) AS flow, count(*) AS sales,
               sum(p.paid_units) AS units
           FROM payments p JOIN tasks t ON t.payment_id = p.id
           WHERE p.id > ? AND p.id <= coalesce(?, p.id) AND p.paid_tx IS NOT NULL
           GROUP BY {SOLD}, coalesce(p.method, p.flow)""",  # noqa: S608 - constants
        (after, until),
    )
    return [Sales(slug=slug, flow=flow, sales=n, units=units) for slug, flow, n, units in rows]


def ended_between(db: Connection, after: int, until: int | None) -> list[Ended]:
    """Return ended tasks, by payment id as in `sales_between`."""
    rows = db.execute(
        """SELECT slug, CASE status WHEN 'completed' THEN 'completed'
                   ELSE coalesce(details, code) END AS outcome,
               count(*), coalesce(sum(cost_micros), 0),
               count(CASE WHEN status = 'completed' AND cost_micros IS NULL THEN 1 END)
           FROM tasks
           WHERE payment_id > ? AND payment_id <= coalesce(?, payment_id)
               AND status IN ('completed', 'failed')
           GROUP BY slug, outcome""",
        (after, until),
    )
    return [
        Ended(slug=slug, outcome=outcome, tasks=n, cost_micros=cost, unknown_costs=unknown)
        for slug, outcome, n, cost, unknown in rows
    ]


def gas_by_purpose(db: Connection) -> dict[str, float]:
    """Return the cost of mined transactions in wei, by purpose: `settle` or `refund`.

    As floats: nine ETH in wei exceed SQLite's integers.
    """
    rows = db.execute(
        """SELECT CASE WHEN r.sender = s.signer THEN 'refund' ELSE 'settle' END AS purpose,
               sum(CAST(s.gas_wei AS DOUBLE PRECISION)
                   + CAST(coalesce(s.l1_fee_wei, 0) AS DOUBLE PRECISION))
           FROM sent_transactions s LEFT JOIN refunds r ON r.payment_id = s.payment_id
           WHERE s.gas_wei IS NOT NULL GROUP BY purpose"""
    )
    return {"settle": 0.0, "refund": 0.0} | dict(rows.fetchall())


def waiting_tasks(db: Connection) -> list[Waiting]:
    """Return queued and running tasks, by status."""
    return _waiting(
        db,
        """SELECT t.status, count(*), sum(p.price_units), min(t.created_at)
           FROM tasks t JOIN payments p ON p.id = t.payment_id
           WHERE t.status IN ('queued', 'processing') GROUP BY t.status""",
    )


def open_payments(db: Connection) -> list[Waiting]:
    """Return the payments whose outcome is not known yet, by state."""
    return _waiting(
        db,
        """SELECT state, count(*), sum(price_units), min(created_at) FROM payments
           WHERE state IN ('reserved', 'settling') GROUP BY state""",
    )


def open_refunds(db: Connection) -> list[Waiting]:
    """Return the refunds that are still owed, by the state of their payment."""
    return _waiting(
        db,
        """SELECT p.state, count(*), sum(r.amount_units), min(r.created_at)
           FROM payments p JOIN refunds r ON r.payment_id = p.id
           WHERE p.state IN ('refund_due', 'refunding', 'refund_failed')
           AND (r.decision IS NULL OR r.decision != 'rejected') GROUP BY p.state""",
    )


def _waiting(db: Connection, sql: str) -> list[Waiting]:
    return [
        Waiting(state=state, count=count, units=units, oldest_at=oldest_at)
        for state, count, units, oldest_at in db.execute(sql)
    ]
