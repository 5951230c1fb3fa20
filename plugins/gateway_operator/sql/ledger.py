"""The books: a dated row for each sale, refund, transaction and result, and their sums.

Lists and sums share one statement. Money is in units of 10⁻⁶, gas in wei, and costs are negative.
NULL is unknown.
"""

import attrs

from gateway.store.nonces import UNDATED
from gateway.store.rows import SOLD
from gateway.store.sql import Connection, dialect_of

# Wei are summed in two parts: nine ETH exceed 64 bits.
_GIGA = 10**9
# A payment method's sale has no transaction.
_FLOW = "coalesce(p.method, p.flow)"
_PAID_TX = "CASE WHEN p.method IS NULL THEN p.paid_tx END"
_SALES = f"""
    SELECT p.created_at AS at, 'sale' AS kind, t.id AS task_id, {SOLD} AS slug,
        t.provider AS provider, {_FLOW} AS flow,
        coalesce(m.payer, p.payer) AS payer, {_PAID_TX} AS tx_hash,
        p.paid_block AS block, p.paid_units AS units,
        CAST(NULL AS BIGINT) AS wei, CAST(NULL AS BIGINT) AS cost_micros,
        NULL AS cost_source, p.state AS state, r.tx_hash AS related_tx,
        m.claim AS claim, m.answer AS receipt
    FROM payments p JOIN tasks t ON t.payment_id = p.id
        LEFT JOIN refunds r ON r.payment_id = p.id
        LEFT JOIN method_proofs m ON m.payment_id = p.id
    WHERE p.created_at >= :since AND p.created_at < :until AND p.paid_tx IS NOT NULL"""  # noqa: S608 - constants
_REFUNDS = f"""
    SELECT e.at, 'refund', t.id, {SOLD}, t.provider, {_FLOW}, r.recipient, r.tx_hash,
        (SELECT s.mined_block FROM sent_transactions s WHERE s.tx_hash = r.tx_hash),
        -r.amount_units, NULL, NULL, NULL, p.state, {_PAID_TX}, NULL, NULL
    FROM payments p JOIN refunds r ON r.payment_id = p.id JOIN tasks t ON t.payment_id = p.id
        JOIN payment_events e ON e.payment_id = p.id AND e.new_state = 'refunded'
    WHERE p.state = 'refunded' AND e.at >= :since AND e.at < :until"""  # noqa: S608 - constants
_MINED = """
    SELECT {at}, 'gas', t.id, {sold}, t.provider,
        CASE WHEN r.sender = s.signer THEN 'refund' ELSE {flow} END, s.signer, s.tx_hash,
        s.mined_block, NULL, -(s.gas_wei + coalesce(s.l1_fee_wei, 0)), NULL, NULL,
        CASE s.succeeded WHEN 0 THEN 'reverted' ELSE 'mined' END, {paid_tx}, NULL, NULL
    FROM sent_transactions s JOIN payments p ON p.id = s.payment_id
        JOIN tasks t ON t.payment_id = p.id LEFT JOIN refunds r ON r.payment_id = p.id
    WHERE {at} >= :since AND {at} < :until AND {which}"""
# Dated by its sending until the block's time is known.
_GAS = " UNION ALL ".join(
    _MINED.format(at=at, sold=SOLD, flow=_FLOW, paid_tx=_PAID_TX, which=which)
    for at, which in (("s.mined_at", "s.mined_at IS NOT NULL"), ("s.sent_at", UNDATED))
)
_RESULTS = f"""
    SELECT t.completed_at, 'vendor', t.id, {SOLD}, t.provider, {_FLOW}, '', NULL, NULL,
        NULL, NULL, -t.cost_micros,
        CASE WHEN t.cost_micros IS NULL THEN 'unknown' ELSE t.cost_source END,
        t.status, {_PAID_TX}, NULL, NULL
    FROM tasks t JOIN payments p ON p.id = t.payment_id
    WHERE t.completed_at >= :since AND t.completed_at < :until AND t.status = 'completed'"""  # noqa: S608 - constants
_ROWS = f"{_SALES} UNION ALL {_REFUNDS} UNION ALL {_GAS} UNION ALL {_RESULTS}"


@attrs.frozen(kw_only=True)
class LedgerRow:
    """One event with income or expense."""

    # Unix seconds.
    at: float

    # `sale`, `refund`, `gas` or `vendor`.
    kind: str
    task_id: str
    slug: str
    provider: str | None

    # `x402`, `direct` or a payment method; of gas, `refund` if it sent a refund.
    flow: str

    # The payer, the refund's recipient, or the key of gas; empty for a vendor.
    payer: str
    tx_hash: str | None
    block: int | None

    # 10⁻⁶ USDC, wei, 10⁻⁶ US dollars; None: not applicable or not known.
    units: int | None
    wei: int | None
    cost_micros: int | None
    cost_source: str | None
    state: str

    # A sale's refund; of all others the sale.
    related_tx: str | None

    # Of a sale by a payment method.
    claim: str | None
    receipt: str | None


@attrs.frozen(kw_only=True)
class LedgerSum:
    """The sum of all rows of one kind and endpoint."""

    kind: str
    slug: str
    rows: int
    units: int
    wei: int
    cost_micros: int

    # Rows of gas or of a vendor without a known amount.
    unknown: int


@attrs.frozen(kw_only=True)
class OwedChange:
    """A change of the amount owed to buyers."""

    at: float

    # 10⁻⁶ USDC; positive: a refund became due.
    units: int


@attrs.frozen(kw_only=True)
class Booked:
    """A transfer in the database, of a sale or a refund."""

    tx_hash: str
    other: str
    units: int
    task_id: str

    # None: written by an earlier release.
    block: int | None


def rows(db: Connection, since: float, until: float) -> list[LedgerRow]:
    """Return the rows of a period in the order of time."""
    found = db.execute(
        f"""SELECT * FROM ({_ROWS}) AS ledger
            ORDER BY at, kind, task_id {dialect_of(db).by_bytes}""",  # noqa: S608 - constants
        {"since": since, "until": until},
    )
    names = [field.name for field in attrs.fields(LedgerRow)]
    return [LedgerRow(**dict(zip(names, row, strict=True))) for row in found]


def sums(db: Connection, since: float, until: float) -> list[LedgerSum]:
    """Return the sums of a period's rows, by kind and endpoint."""
    found = db.execute(
        f"""SELECT kind, slug, count(*), coalesce(sum(units), 0),
                coalesce(sum(wei / {_GIGA}), 0), coalesce(sum(wei % {_GIGA}), 0),
                coalesce(sum(cost_micros), 0),
                count(CASE WHEN (kind = 'gas' AND wei IS NULL)
                    OR (kind = 'vendor' AND cost_micros IS NULL) THEN 1 END)
            FROM ({_ROWS}) AS ledger GROUP BY kind, slug""",  # noqa: S608 - constants
        {"since": since, "until": until},
    )
    return [
        LedgerSum(
            kind=kind,
            slug=slug,
            rows=count,
            units=units,
            wei=giga * _GIGA + rest,
            cost_micros=cost,
            unknown=unknown,
        )
        for kind, slug, count, units, giga, rest, cost, unknown in found
    ]


def failed(db: Connection, since: float, until: float) -> dict[str, int]:
    """Return the number of paid tasks that failed in a period, by slug."""
    found = db.execute(
        """SELECT slug, count(*) FROM tasks
           WHERE completed_at >= ? AND completed_at < ? AND status = 'failed' GROUP BY slug""",
        (since, until),
    )
    return dict(found.fetchall())


def owed_changes(db: Connection) -> list[OwedChange]:
    """Return every change of the amount owed, oldest first. A rejected refund is not owed."""
    found = db.execute(
        """SELECT e.at, e.payment_id, e.new_state, r.amount_units, r.decision
           FROM payment_events e JOIN refunds r ON r.payment_id = e.payment_id
           WHERE e.new_state IN ('refund_due', 'refunding', 'refunded', 'refund_failed')
           ORDER BY e.id"""
    )
    changes, owed = [], set()
    for at, payment_id, state, units, decision in found:
        is_owed = state != "refunded" and not (state == "refund_failed" and decision == "rejected")
        if is_owed and payment_id not in owed:
            owed.add(payment_id)
            changes.append(OwedChange(at=at, units=units))
        elif not is_owed and payment_id in owed:
            owed.discard(payment_id)
            changes.append(OwedChange(at=at, units=-units))
    return changes


def first_sale_at(db: Connection) -> float | None:
    """Return the time of the first payment, or None."""
    found: float | None = db.execute("SELECT min(created_at) FROM payments").fetchone()[0]
    return found


def booked_sales(db: Connection, since: float, until: float, first: int, last: int) -> list[Booked]:
    """Return the sales whose transfer is, or may be, in a range of blocks.

    Without a known block, a sale of the period is included. Sales by a payment method have no
    transfer.
    """
    return _booked(
        db,
        """SELECT p.paid_tx, p.payer, p.paid_units, t.id, p.paid_block
           FROM payments p JOIN tasks t ON t.payment_id = p.id
           WHERE p.paid_tx IS NOT NULL AND p.method IS NULL
               AND (p.paid_block BETWEEN :first AND :last
               OR (p.paid_block IS NULL AND p.created_at >= :since AND p.created_at < :until))""",
        {"since": since, "until": until, "first": first, "last": last},
    )


def booked_refunds(db: Connection, since: float, until: float) -> list[Booked]:
    """Return the refunds that were seen on-chain in a period."""
    return _booked(
        db,
        """SELECT r.tx_hash, r.recipient, r.amount_units, t.id,
               (SELECT s.mined_block FROM sent_transactions s WHERE s.tx_hash = r.tx_hash)
           FROM payments p JOIN refunds r ON r.payment_id = p.id
               JOIN tasks t ON t.payment_id = p.id
               JOIN payment_events e ON e.payment_id = p.id AND e.new_state = 'refunded'
           WHERE p.state = 'refunded' AND e.at >= :since AND e.at < :until""",
        {"since": since, "until": until},
    )


def refund_senders(db: Connection) -> set[str]:
    """Return the keys, in lower case, that signed refunds."""
    found = db.execute("SELECT DISTINCT lower(sender) FROM refunds WHERE sender IS NOT NULL")
    return {row[0] for row in found}


def _booked(db: Connection, sql: str, values: dict[str, float]) -> list[Booked]:
    return [
        Booked(tx_hash=tx_hash, other=other, units=units, task_id=task_id, block=block)
        for tx_hash, other, units, task_id, block in db.execute(sql, values)
    ]
