"""Receipts of batches: each payment of a batch is judged for itself."""

import attrs

from gateway.contracts import SignedTransaction
from gateway.contracts.store import FailedSettlement
from gateway.domain import Payment
from gateway.store.nonces import OF_NONCE
from gateway.store.rows import PAYMENT_COLUMNS, SIGNED_COLUMNS, payment_of, signed_of
from gateway.store.sql import Connection

UNJUDGED_IN_BATCHES = """sent_payments m JOIN sent_transactions s ON s.tx_hash = m.tx_hash
    WHERE m.judged = 0 AND s.mined = 1"""
# The payments of a transaction `s`; empty unless it is a batch.
PAYMENTS_OF = "(SELECT 1 FROM sent_payments m WHERE m.tx_hash = s.tx_hash)"


def unjudged_in_batches(db: Connection) -> list[tuple[Payment, SignedTransaction]]:
    """Return (payment, transaction) of mined batches whose receipt was not yet judged per payment.

    The cost of the batch itself is judged separately: see `payers.UNJUDGED`.
    """
    columns = ", ".join(f"s.{name}" for name in SIGNED_COLUMNS)
    rows = db.execute(
        f"""SELECT {columns}, {PAYMENT_COLUMNS},
                (SELECT count(*) FROM sent_payments o WHERE o.tx_hash = s.tx_hash) AS payments
            FROM sent_payments m JOIN sent_transactions s ON s.tx_hash = m.tx_hash
                JOIN payments p ON p.id = m.payment_id
            WHERE m.judged = 0 AND s.mined = 1
            ORDER BY s.signer, s.nonce, p.id, s.sent_at"""  # noqa: S608 - constants
    ).fetchall()
    return [
        (payment_of(row), attrs.evolve(signed_of(row), payments=row["payments"])) for row in rows
    ]


def judge_in_batch(
    db: Connection,
    transaction: SignedTransaction,
    failure: FailedSettlement | None,
    payment_id: int,
) -> bool:
    """Record one payment's result from a receipt. False if it is not in the batch."""
    changed = db.execute(
        f"UPDATE sent_payments SET judged = 1 WHERE payment_id = ? AND tx_hash IN {OF_NONCE}",  # noqa: S608 - a constant
        (payment_id, transaction.signer, transaction.nonce),
    ).rowcount
    if changed and failure is not None:
        db.execute(
            """UPDATE sent_payments SET failed_at = ?, fee_wei = ?, failure = ?
               WHERE payment_id = ? AND tx_hash = ?""",
            (failure.at, failure.fee_wei, failure.failure, payment_id, failure.tx_hash),
        )
    return bool(changed)


def skip_paid_in_batches(db: Connection) -> None:
    """Mark the paid payments of mined batches as judged."""
    db.execute(
        """UPDATE sent_payments SET judged = 1 WHERE judged = 0
           AND tx_hash IN (SELECT tx_hash FROM sent_transactions WHERE mined = 1)
           AND payment_id IN (
               SELECT id FROM payments WHERE state NOT IN ('reserved', 'settling', 'released'))"""
    )
