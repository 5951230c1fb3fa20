"""All payments, filtered and searched, newest first; and the sums of one buyer."""

import attrs

from gateway.store.rows import SOLD
from gateway.store.sql import Connection, dialect_of, placeholders
from gateway_operator.sql.payment_search import OF_PAYER, search_payments

_SELECT = f"""SELECT p.id AS payment_id, t.id AS task_id, {SOLD} AS slug, t.status,
        coalesce(p.method, p.flow) AS flow, p.method, coalesce(m.payer, p.payer) AS payer,
        p.state, p.price_units, p.paid_units, p.created_at, r.decision,
        CASE WHEN p.method IS NULL THEN p.paid_tx END AS paid_tx,
        r.amount_units AS refund_units, r.tx_hash AS refund_tx
    FROM payments p JOIN tasks t ON t.payment_id = p.id
    LEFT JOIN method_proofs m ON m.payment_id = p.id
    LEFT JOIN refunds r ON r.payment_id = p.id"""  # noqa: S608 - a constant
# Each takes the payer, the values of the filter, and a limit. So a page reads no more than a page.
_OF_PAYER = """p.id IN (
    SELECT id FROM (SELECT p.id FROM payments p
        WHERE p.payer = lower(?) AND p.method IS NULL AND {where}
        ORDER BY p.id DESC LIMIT ?) AS own
    UNION ALL SELECT id FROM (SELECT p.id FROM method_proofs m
        {join} payments p ON p.id = m.payment_id
        WHERE m.payer = ? AND {where} ORDER BY p.id DESC LIMIT ?) AS named)"""
# Ids grow with time, so a day is a range of ids; the list needs no sorting.
_OF_DAY = """p.id BETWEEN (SELECT min(id) FROM payments WHERE created_at >= ? AND created_at < ?)
    AND (SELECT max(id) FROM payments WHERE created_at >= ? AND created_at < ?)
    AND p.created_at >= ? AND p.created_at < ?"""


@attrs.frozen(kw_only=True)
class PaymentFilter:
    """Which payments a list shows. None and empty values do not filter."""

    state: str = ""
    payer: str = ""

    # Unix seconds: the first is included, the last is not.
    day: tuple[float, float] | None = None

    # See `search_payments`.
    search: str = ""

    # The last payment of the previous page.
    before: int | None = None


@attrs.frozen(kw_only=True)
class ListedPayment:
    """One payment. Money is in units of 10⁻⁶ USDC, times are Unix seconds."""

    payment_id: int
    task_id: str
    slug: str

    # The task's.
    status: str

    # `x402`, `direct` or a payment method; None: USDC on the chain.
    flow: str
    method: str | None

    # An address, or the payment method's name for the payer.
    payer: str
    state: str
    price_units: int
    paid_units: int | None
    created_at: float

    # The operator's decision about its refund.
    decision: str | None

    # The transaction that paid, unless a payment method was used.
    paid_tx: str | None

    # None if no refund is due.
    refund_units: int | None
    refund_tx: str | None


@attrs.frozen(kw_only=True)
class BuyerGroup:
    """The payments of one buyer in the same state, with tasks in the same state."""

    state: str
    status: str
    decision: str | None
    payments: int
    paid_units: int
    refund_units: int
    first_at: float
    last_at: float


def find_payments(db: Connection, wanted: PaymentFilter, limit: int) -> list[ListedPayment]:
    """Return the newest payments that match a filter."""
    where, values = ["1 = 1"], list[object]()
    if wanted.state:
        where.append("p.state = ?")
        values.append(wanted.state)
    if wanted.day is not None:
        where.append(_OF_DAY)
        values += wanted.day * 3
    if wanted.search:
        found = search_payments(db, wanted.search)
        where.append(f"p.id IN ({placeholders(found)})")
        values += found
    if wanted.before is not None:
        where.append("p.id < ?")
        values.append(wanted.before)
    if wanted.payer:
        join = dialect_of(db).ordered_join
        where = [_OF_PAYER.format(where=" AND ".join(where), join=join)]
        values = [wanted.payer, *values, limit] * 2
    sql = f"{_SELECT} WHERE {' AND '.join(where)} ORDER BY p.id DESC LIMIT ?"
    names = [field.name for field in attrs.fields(ListedPayment)]
    rows = db.execute(sql, (*values, limit))
    return [ListedPayment(**{name: row[name] for name in names}) for row in rows]


def sum_buyer(db: Connection, payer: str) -> list[BuyerGroup]:
    """Return the payments of one payer, grouped by their state and their tasks'."""
    rows = db.execute(
        f"""SELECT p.state, t.status, r.decision, count(*) AS payments,
                coalesce(sum(p.paid_units), 0) AS paid_units,
                coalesce(sum(r.amount_units), 0) AS refund_units,
                min(p.created_at) AS first_at, max(p.created_at) AS last_at
            FROM payments p JOIN tasks t ON t.payment_id = p.id
                LEFT JOIN refunds r ON r.payment_id = p.id
            WHERE p.id IN ({OF_PAYER}) GROUP BY p.state, t.status, r.decision""",  # noqa: S608 - constants
        (payer, payer),
    )
    names = [field.name for field in attrs.fields(BuyerGroup)]
    return [
        BuyerGroup(
            **{name: row[name] for name in names if not name.endswith("_units")},
            paid_units=int(row["paid_units"]),
            refund_units=int(row["refund_units"]),
        )
        for row in rows
    ]
