"""Lists of tasks: filtered and searched, newest first."""

import re
from collections.abc import Sequence

import attrs

from gateway.store.sql import Connection, dialect_of, placeholders
from gateway_operator.sql.sums import sold_slugs

_TX_HASH = re.compile(r"0x[0-9a-f]{64}")
_ADDRESS = re.compile(r"0x[0-9a-f]{40}")

_SELECT = """SELECT t.id, t.slug, t.status, t.attempt, t.code, t.details, t.error,
        t.reason AS vendor_message, t.provider, t.created_at, t.completed_at, t.cost_micros,
        coalesce(p.method, p.flow) AS flow, p.method, coalesce(m.payer, p.payer) AS payer,
        p.state AS payment_state, p.price_units, p.paid_units, r.amount_units AS refund_units,
        r.decision
    FROM tasks t JOIN payments p ON p.id = t.payment_id
    LEFT JOIN method_proofs m ON m.payment_id = p.id
    LEFT JOIN refunds r ON r.payment_id = p.id"""

# By address, or as a payment method names the payer.
_OF_PAYER = """SELECT id FROM payments WHERE payer = lower(?) AND method IS NULL
    UNION ALL SELECT payment_id FROM method_proofs WHERE payer = ?"""

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
    slug: str = ""

    # Such as `content_policy`.
    reason: str = ""
    payer: str = ""

    # Unix seconds; `since` is included, `until` is not.
    since: float | None = None
    until: float | None = None

    # A task, transaction, payer, vendor's job, or a method's claim.
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
    given = {
        "t.slug = ?": wanted.slug or None,
        "t.details = ?": wanted.reason or None,
        "t.created_at >= ?": wanted.since,
        "t.created_at < ?": wanted.until,
    }
    where += [text for text, value in given.items() if value is not None]
    values += [value for value in given.values() if value is not None]
    if wanted.payer:
        where.append(f"t.payment_id IN ({_OF_PAYER})")
        values += [wanted.payer, wanted.payer]
    if wanted.search:
        payments = _search(db, wanted.search.strip())
        where.append(f"t.payment_id IN ({placeholders(payments)})")
        values += payments
    if wanted.before:
        where.append(
            "(t.created_at, t.payment_id) < (SELECT created_at, payment_id FROM tasks WHERE id = ?)"
        )
        values.append(wanted.before)
    return where, values


# More than one page shows.
_MAX_FOUND = 200
# The beginning of a task, hash or address, or both its ends, as pages shorten them: 0x835e…307d.
_PART = re.compile(r"((?:0x)?[0-9a-f-]{4,40})(?:(?:…|\.{2,3})([0-9a-f]{1,40})?)?")


def _search(db: Connection, text: str) -> Sequence[int]:
    """Return the payments that match a searched text, newest first."""
    lower = text.lower()
    if _TX_HASH.fullmatch(lower):
        sql = """SELECT id FROM payments WHERE paid_tx = ? AND method IS NULL
            UNION SELECT payment_id FROM refunds WHERE tx_hash = ?
            UNION SELECT payment_id FROM sent_transactions WHERE tx_hash = ?
            UNION SELECT payment_id FROM sent_payments WHERE tx_hash = ?
            ORDER BY 1 DESC LIMIT ?"""
        values: tuple[object, ...] = (lower, lower, lower, lower, _MAX_FOUND)
    elif _ADDRESS.fullmatch(lower):
        sql = f"{_OF_PAYER} ORDER BY 1 DESC LIMIT ?"
        values = (text, text, _MAX_FOUND)
    elif found := _PART.fullmatch(lower):
        sql = """SELECT id FROM payments WHERE paid_tx LIKE ? AND method IS NULL
            UNION SELECT id FROM payments WHERE payer LIKE ? AND method IS NULL
            UNION SELECT payment_id FROM refunds WHERE tx_hash LIKE ?
            UNION SELECT payment_id FROM tasks WHERE id LIKE ?
            ORDER BY 1 DESC LIMIT ?"""
        part = f"{found[1]}%{found[2] or ''}"
        values = (part, part, part, part, _MAX_FOUND)
    else:
        job_id = dialect_of(db).json_text("handle", "id")
        sql = f"""SELECT payment_id FROM tasks WHERE id = ?
            UNION SELECT payment_id FROM tasks WHERE handle IS NOT NULL AND {job_id} = ?
            UNION SELECT payment_id FROM method_proofs WHERE claim = ?
            UNION SELECT payment_id FROM method_proofs WHERE payer = ?
            ORDER BY 1 DESC LIMIT ?"""  # noqa: S608 - constants only
        values = (lower, text, text, text, _MAX_FOUND)
    return [row[0] for row in db.execute(sql, values)]
