"""Lists of payments: open ones, overpaid ones, and transfers without one."""

import json
import re
from collections import Counter
from collections.abc import Sequence

import attrs

from gateway.domain import MinedTransfer
from gateway.store.rows import SOLD
from gateway.store.sql import Connection, dialect_of

_HASH_DIGITS = re.compile("(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


@attrs.frozen(kw_only=True)
class PaymentRow:
    """One payment in a list. Money is in units of 10⁻⁶, times are Unix seconds."""

    payment_id: int
    task_id: str
    slug: str

    # `x402`, `direct` or a payment method.
    flow: str

    # None: USDC on the chain.
    method: str | None
    state: str

    # An address, or the payment method's name for the payer.
    payer: str
    price_units: int
    paid_units: int | None
    created_at: float
    updated_at: float

    # When the authorization expires; None in the direct flow.
    valid_before: int | None

    # The newest transaction that the gateway signed for it.
    tx_hash: str | None


_SELECT = f"""SELECT p.id AS payment_id, t.id AS task_id, {SOLD} AS slug,
        coalesce(p.method, p.flow) AS flow, p.method, coalesce(m.payer, p.payer) AS payer,
        p.state, p.price_units, p.paid_units, p.created_at, p.updated_at,
        p."authorization" AS signed,
        (SELECT tx_hash FROM (
            SELECT tx_hash, sent_at FROM sent_transactions WHERE payment_id = p.id
            UNION ALL SELECT s.tx_hash, s.sent_at FROM sent_payments b
                JOIN sent_transactions s ON s.tx_hash = b.tx_hash WHERE b.payment_id = p.id
         ) AS sent ORDER BY sent_at DESC, tx_hash LIMIT 1) AS tx_hash
    FROM payments p JOIN tasks t ON t.payment_id = p.id
    LEFT JOIN method_proofs m ON m.payment_id = p.id"""  # noqa: S608 - a constant


def open_and_over(db: Connection, limit: int) -> tuple[list[PaymentRow], list[PaymentRow]]:
    """Return open payments, and overpaid payments."""
    return open_payments(db, limit), overpaid_payments(db, limit)


def open_payments(db: Connection, limit: int) -> list[PaymentRow]:
    """Return payments whose outcome is not known, oldest first."""
    return _find(db, "p.state IN ('reserved', 'settling') ORDER BY p.id LIMIT ?", limit)


def overpaid_payments(db: Connection, limit: int) -> list[PaymentRow]:
    """Return payments of more than the price, newest first."""
    return _find(db, "p.paid_units > p.price_units ORDER BY p.id DESC LIMIT ?", limit)


def unused(db: Connection, transfers: Sequence[MinedTransfer]) -> list[MinedTransfer]:
    """Return the transfers that bought nothing."""
    # Compare by sender and amount: a log's index changes if its block is replaced.
    paid: Counter[tuple[str, str, int]] = Counter()
    for tx_hash in {transfer.tx_hash for transfer in transfers}:
        rows = db.execute("SELECT payer, paid_units FROM payments WHERE paid_tx = ?", (tx_hash,))
        paid.update((tx_hash, row["payer"], row["paid_units"]) for row in rows)
    found = []
    for transfer in transfers:
        key = (transfer.tx_hash, transfer.sender, transfer.amount_units)
        if paid[key] == 0:
            found.append(transfer)
        else:
            paid[key] -= 1
    named = _named_by_methods(db) if found else set()
    return [transfer for transfer in found if transfer.tx_hash not in named]


def _named_by_methods(db: Connection) -> set[str]:
    """Return the transactions named by payment methods, which may take USDC on the chain.

    Such a payment has no `tx:` claim: its method's claim or receipt names the transaction.
    """
    rows = db.execute(
        """SELECT lower(m.claim || ' ' || coalesce(m.answer, '')) AS words
           FROM method_proofs m JOIN payments p ON p.id = m.payment_id
           WHERE p.state <> 'released'"""
    )
    return {f"0x{digits}" for row in rows for digits in _HASH_DIGITS.findall(row["words"])}


def methods_between(db: Connection, since: float, until: float) -> list[tuple[float, str]]:
    """Return the time and method of payments by methods in a period, unless never taken."""
    rows = db.execute(
        f"""SELECT p.created_at, p.method FROM method_proofs m
           {dialect_of(db).ordered_join} payments p ON p.id = m.payment_id
           WHERE p.created_at BETWEEN ? AND ? AND p.state <> 'released'""",  # noqa: S608 - constants
        (since, until),
    )
    return [(row["created_at"], row["method"]) for row in rows]


def paid_alike(
    db: Connection, payer: str, amount_units: int, since: float, until: float
) -> str | None:
    """Return a task that an address bought for this amount in a period, or None."""
    row = db.execute(
        """SELECT t.id FROM payments p JOIN tasks t ON t.payment_id = p.id
           WHERE p.payer = ? AND p.method IS NULL AND p.paid_units = ?
               AND p.created_at BETWEEN ? AND ?
           ORDER BY p.id DESC LIMIT 1""",
        (payer, amount_units, since, until),
    ).fetchone()
    return None if row is None else str(row["id"])


def has_paid(db: Connection, payer: str) -> bool:
    """Whether an address has paid for any task."""
    row = db.execute(
        """SELECT 1 FROM payments
           WHERE payer = ? AND method IS NULL AND paid_tx IS NOT NULL LIMIT 1""",
        (payer,),
    ).fetchone()
    return row is not None


def _find(db: Connection, rest: str, limit: int) -> list[PaymentRow]:
    rows = db.execute(f"{_SELECT} WHERE {rest}", (limit,))
    names = [field.name for field in attrs.fields(PaymentRow)]
    names.remove("valid_before")
    return [
        PaymentRow(**{name: row[name] for name in names}, valid_before=_valid_before(row["signed"]))
        for row in rows
    ]


def _valid_before(signed: str | None) -> int | None:
    return int(json.loads(signed)["valid_before"]) if signed is not None else None
