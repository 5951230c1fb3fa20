"""Lists of tasks: filtered and searched, newest first."""

import attrs

from gateway.store.rows import SOLD
from gateway.store.sql import Connection, placeholders
from gateway_operator.sql.payment_search import OF_PAYER, search_payments
from gateway_operator.sql.sums import sold_by, sold_slugs

_SELECT = f"""SELECT t.id, {SOLD} AS slug, t.status, t.attempt, t.code, t.details, t.error,
        t.reason AS vendor_message, t.provider, t.created_at, t.completed_at, t.cost_micros,
        coalesce(p.method, p.flow) AS flow, p.method, coalesce(m.payer, p.payer) AS payer,
        p.state AS payment_state, p.price_units, p.paid_units, r.amount_units AS refund_units,
        r.decision
    FROM tasks t JOIN payments p ON p.id = t.payment_id
    LEFT JOIN method_proofs m ON m.payment_id = p.id
    LEFT JOIN refunds r ON r.payment_id = p.id"""  # noqa: S608 - a constant

# States of the payment. All others are states of the task.
_OF_PAYMENT = {
    "owed": "p.state IN ('refund_due', 'refunding', 'refund_failed')",
    "refunded": "p.state = 'refunded'",
}


@attrs.frozen(kw_only=True)
class TaskFilter:
    """Which tasks a list shows. None and empty values do not filter."""

    # A status of a task, or `owed` or `refunded`.
    state: str = ""
    # Those sold at this endpoint, and those that it made as a fallback.
    slug: str = ""

    # Such as `content_policy`.
    reason: str = ""
    payer: str = ""

    # Unix seconds; `since` is included, `until` is not.
    since: float | None = None
    until: float | None = None

    # A task, transaction or payer, or the start of one; a vendor's job, or a method's claim.
    search: str = ""

    # The last task of the previous page.
    before: str = ""


@attrs.frozen(kw_only=True)
class TaskRow:
    """One task in a list. Money is in units of 10⁻⁶, times are Unix seconds."""

    id: str
    slug: str
    status: str
    attempt: int
    code: str | None
    details: str | None
    error: str | None
    vendor_message: str | None
    provider: str | None
    created_at: float
    completed_at: float | None
    cost_micros: int | None

    # `x402`, `direct` or a payment method.
    flow: str

    # None: USDC on the chain.
    method: str | None
    payment_state: str

    # An address, or the payment method's name for the payer.
    payer: str
    price_units: int
    paid_units: int | None
    refund_units: int | None
    decision: str | None


def find_referred(db: Connection, reference: str) -> str | None:
    """Return the id of the task with this reference (see `desk/references.py`), or None."""
    # Ids are UUIDs of one length, so the range is right in every collation.
    bounds = (f"{reference}-0000-000000000000", f"{reference}-ffff-ffffffffffff")
    row = db.execute("SELECT id FROM tasks WHERE id BETWEEN ? AND ?", bounds).fetchone()
    return row[0] if row is not None else None


def find_tasks(db: Connection, wanted: TaskFilter, limit: int) -> list[TaskRow]:
    """Return the newest tasks that match a filter."""
    where, values = _conditions(db, wanted)
    rows = db.execute(
        f"""{_SELECT} WHERE {" AND ".join(where) or "1 = 1"}
            ORDER BY t.created_at DESC, t.payment_id DESC LIMIT ?""",
        (*values, limit),
    )
    names = [field.name for field in attrs.fields(TaskRow)]
    return [TaskRow(**{name: row[name] for name in names}) for row in rows]


def choices(db: Connection) -> tuple[list[str], list[str]]:
    """Return the filter choices: slugs that were sold, and reasons why tasks failed."""
    return sold_slugs(db), failure_reasons(db)


def failure_reasons(db: Connection) -> list[str]:
    """Return every reason why a task failed, by a loose index scan."""
    rows = db.execute(
        """WITH RECURSIVE found (word) AS (
               SELECT min(details) FROM tasks WHERE details IS NOT NULL
               UNION ALL
               SELECT (SELECT min(details) FROM tasks WHERE details > found.word) FROM found
               WHERE found.word IS NOT NULL)
           SELECT word FROM found WHERE word IS NOT NULL"""
    )
    # The database's order depends on its locale.
    return sorted(row[0] for row in rows)


def _conditions(db: Connection, wanted: TaskFilter) -> tuple[list[str], list[object]]:
    where: list[str] = []
    values: list[object] = []
    if wanted.state:
        is_own = wanted.state not in _OF_PAYMENT
        where.append("t.status = ?" if is_own else _OF_PAYMENT[wanted.state])
        values += [wanted.state] if is_own else []
    if wanted.slug:
        sold = f"{sold_by(db)} = ?"
        # Not always: the database would sort all rows of the slug.
        is_maker = db.execute("SELECT 1 FROM tasks WHERE made_by = ? LIMIT 1", (wanted.slug,))
        is_either = is_maker.fetchone() is not None
        where.append(f"({sold} OR t.made_by = ?)" if is_either else sold)
        values += [wanted.slug] * (1 + is_either)
    given = {
        "t.details = ?": wanted.reason or None,
        "t.created_at >= ?": wanted.since,
        "t.created_at < ?": wanted.until,
    }
    where += [text for text, value in given.items() if value is not None]
    values += [value for value in given.values() if value is not None]
    if wanted.payer:
        where.append(f"t.payment_id IN ({OF_PAYER})")
        values += [wanted.payer, wanted.payer]
    if wanted.search:
        payments = search_payments(db, wanted.search)
        where.append(f"t.payment_id IN ({placeholders(payments)})")
        values += payments
    if wanted.before:
        where.append(
            "(t.created_at, t.payment_id) < (SELECT created_at, payment_id FROM tasks WHERE id = ?)"
        )
        values.append(wanted.before)
    return where, values
