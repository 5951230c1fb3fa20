"""Lists of refunds, by their kind."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import attrs

from gateway.domain import PaymentState
from gateway.store.sql import Connection, Row, dialect_of, placeholders

Kind = Literal["undecided", "moving", "paid", "rejected", "failed"]
KINDS: Sequence[Kind] = get_args(Kind)

_DAY_S = 86_400.0

# The first parameter: whether the settings refund proven payers automatically.
_KIND = """CASE
    WHEN p.state = 'refunded' THEN 'paid'
    WHEN p.state = 'refund_failed' AND r.decision = 'rejected' THEN 'rejected'
    WHEN p.state = 'refund_failed' THEN 'failed'
    WHEN p.state = 'refunding' OR r.decision = 'approved' THEN 'moving'
    WHEN ? AND p.payer_proven = 1 AND r.problem IS NULL THEN 'moving'
    ELSE 'undecided' END"""

# So that the index on the state is used.
_STATES: Mapping[Kind, Sequence[PaymentState]] = {
    "undecided": (PaymentState.REFUND_DUE,),
    "moving": (PaymentState.REFUND_DUE, PaymentState.REFUNDING),
    "paid": (PaymentState.REFUNDED,),
    "rejected": (PaymentState.REFUND_FAILED,),
    "failed": (PaymentState.REFUND_FAILED,),
}

# Takes the parameter of `_KIND`. The join order reads payments first, by state.
_SELECT = f"""SELECT {_KIND} AS kind, t.id AS task_id, p.id AS payment_id,
        t.slug, t.details, t.error, t.reason AS vendor_message, t.handle IS NOT NULL AS has_job,
        t.cost_micros, coalesce(p.method, p.flow) AS flow, p.method,
        coalesce(m.payer, p.payer) AS payer, lower(m.refund_to) AS refund_to, p.payer_proven,
        r.amount_units, r.recipient, r.decision, r.note, r.problem, r.sender, r.tx_hash,
        r.created_at, r.updated_at
    FROM payments p {{join}} refunds r ON r.payment_id = p.id
    {{join}} tasks t ON t.payment_id = p.id
    LEFT JOIN method_proofs m ON m.payment_id = p.id"""  # noqa: S608 - constants only


@attrs.frozen(kw_only=True)
class RefundRow:
    """One refund in a list. Money is in units of 10⁻⁶, times are Unix seconds."""

    kind: Kind
    task_id: str
    payment_id: int
    slug: str

    # The failure: the gateway's code and sentence, and the vendor's message.
    details: str | None
    error: str | None
    vendor_message: str | None

    # Whether the vendor had accepted a job, and its cost.
    has_job: bool
    cost_micros: int | None

    # `x402`, `direct` or a payment method.
    flow: str

    # None: USDC on the chain.
    method: str | None

    # An address, or the payment method's name for the payer.
    payer: str

    # In a payment method's proof.
    refund_to: str | None
    payer_proven: bool
    amount_units: int
    recipient: str
    decision: str | None
    note: str | None
    problem: str | None

    # The key that signed it; None before that.
    sender: str | None
    tx_hash: str | None
    created_at: float
    updated_at: float


@attrs.frozen(kw_only=True)
class KindCount:
    """Count, sum and oldest creation time of the refunds of a kind."""

    count: int = 0
    units: int = 0
    since: float | None = None


def find_refunds(
    db: Connection, kind: Kind, before: int | None, limit: int, *, is_automatic: bool
) -> list[RefundRow]:
    """Return refunds of a kind, newest first; `before` is the last payment id already shown."""
    states = _STATES[kind]
    rows = db.execute(
        f"""{_select(db)} WHERE p.state IN ({placeholders(states)}) AND p.id < ?
            AND ({_KIND}) = ? ORDER BY p.id DESC LIMIT ?""",
        (is_automatic, *states, before if before is not None else 2**62, is_automatic, kind, limit),
    )
    return [_row_of(row) for row in rows]


def _select(db: Connection) -> str:
    return _SELECT.format(join=dialect_of(db).ordered_join)


def find_chosen(db: Connection, task_ids: Sequence[str], *, is_automatic: bool) -> list[RefundRow]:
    """Return the refunds of these tasks, in their order; tasks without one are skipped."""
    found = (_find_one(db, task_id, is_automatic=is_automatic) for task_id in task_ids)
    return [_row_of(row) for row in found if row is not None]


def sums(db: Connection, now: float, *, is_automatic: bool) -> tuple[dict[Kind, KindCount], int]:
    """Return the counts of all kinds, and the units under the automatic daily cap."""
    return count_kinds(db, is_automatic=is_automatic), automatic_units(db, now)


def _find_one(db: Connection, task_id: str, *, is_automatic: bool) -> Row | None:
    # The subquery keeps the join order.
    row: Row | None = db.execute(
        f"{_select(db)} WHERE p.id = (SELECT payment_id FROM tasks WHERE id = ?)",  # noqa: S608
        (is_automatic, task_id),
    ).fetchone()
    return row


def count_kinds(db: Connection, *, is_automatic: bool) -> dict[Kind, KindCount]:
    """Return count and sum of each kind; of paid refunds only the count."""
    rows = db.execute(
        f"""SELECT {_KIND} AS kind, count(*), sum(r.amount_units), min(r.created_at)
            FROM payments p JOIN refunds r ON r.payment_id = p.id
            WHERE p.state IN ('refund_due', 'refunding', 'refund_failed')
            GROUP BY kind""",  # noqa: S608 - constants only
        (is_automatic,),
    )
    found = {row[0]: KindCount(count=row[1], units=row[2], since=row[3]) for row in rows}
    paid = db.execute("SELECT count(*) FROM payments WHERE state = 'refunded'").fetchone()[0]
    return {kind: found.get(kind, KindCount()) for kind in KINDS} | {"paid": KindCount(count=paid)}


def automatic_units(db: Connection, now: float) -> int:
    """Return the units refunded without a decision in the last 24 hours."""
    units: int = db.execute(
        """SELECT coalesce(sum(amount_units), 0) FROM refunds
           WHERE begun_at > ? AND decision IS NULL""",
        (now - _DAY_S,),
    ).fetchone()[0]
    return units


def _row_of(row: Row) -> RefundRow:
    facts = {field.name: row[field.name] for field in attrs.fields(RefundRow)}
    return RefundRow(**facts | {name: bool(facts[name]) for name in ("has_job", "payer_proven")})
