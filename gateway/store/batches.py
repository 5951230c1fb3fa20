"""Batch settlement: transactions that settle several payments.

A batch is one row of `sent_transactions` with one nonce, and one row of `sent_payments` for each
payment in it. Everything is recorded before broadcast, as for a single payment.
"""

from collections.abc import Sequence

import attrs

from gateway.contracts import SignedTransaction, UnsignedBatch
from gateway.contracts.store import FailedSettlement
from gateway.domain import Payment, PaymentState
from gateway.errors import ChainUnavailable
from gateway.store import nonces
from gateway.store.locks import locked
from gateway.store.rows import PAYMENT_COLUMNS, SIGNED_COLUMNS, payment_of, signed_of
from gateway.store.sql import Connection

# A batch has at least this many payments.
_MIN_PAYMENTS = 2

UNJUDGED = """sent_payments m JOIN sent_transactions s ON s.tx_hash = m.tx_hash
    WHERE m.judged = 0 AND s.mined = 1"""
# The payments of a transaction `s`; empty unless it is a batch.
PAYMENTS_OF = "(SELECT 1 FROM sent_payments m WHERE m.tx_hash = s.tx_hash)"
_OF_NONCE = "(SELECT tx_hash FROM sent_transactions WHERE signer = ? AND nonce = ?)"


# The free nonce and the number of pending transactions must not change under us.
@locked(lambda batch, *_: [f"signer:{batch.signer}"])
def begin_batch(
    db: Connection, batch: UnsignedBatch, now: float
) -> tuple[SignedTransaction, Sequence[int]] | None:
    """Sign one transaction for several payments with the next free nonce, and mark them `settling`.

    Their calls were simulated earlier. A payment that was closed or signed for since then is left
    out. Returns the transaction and the payments in it, or None, with nothing written, if fewer
    than two payments remain. Raises `ChainUnavailable` if the signer has too many pending
    transactions.
    """
    taken = [each for each in batch.payments if _is_fresh(db, each, batch.signers)]
    if len(taken) < _MIN_PAYMENTS:
        return None
    if nonces.waiting_of(db, batch.signer, batch.chain_nonce) >= batch.most_waiting:
        raise ChainUnavailable(f"Too many transactions of {batch.signer} wait.")
    transaction = batch.sign(nonces.next_nonce(db, batch.signer, batch.chain_nonce), taken)
    nonces.check_nonce_free(db, transaction)
    nonces.insert_transaction(db, taken[0], transaction)
    for payment_id in taken:
        db.execute(
            "UPDATE payments SET state = ?, updated_at = ? WHERE id = ?",
            (PaymentState.SETTLING, now, payment_id),
        )
    _insert_payments(db, transaction.tx_hash, taken)
    return transaction, taken


def _is_fresh(db: Connection, payment_id: int, signers: Sequence[str]) -> bool:
    row = db.execute("SELECT state FROM payments WHERE id = ?", (payment_id,)).fetchone()
    is_open = row["state"] in (PaymentState.RESERVED, PaymentState.SETTLING)
    return is_open and nonces.nonces_of(db, payment_id, *signers) == 0


def _insert_payments(db: Connection, tx_hash: str, payment_ids: Sequence[int]) -> None:
    for payment_id in payment_ids:
        db.execute(
            """INSERT INTO sent_payments (payment_id, tx_hash) VALUES (?, ?)
               ON CONFLICT (payment_id, tx_hash) DO NOTHING""",
            (payment_id, tx_hash),
        )


def add_replacement(db: Connection, payment_id: int, transaction: SignedTransaction) -> None:
    """Record a replacement with the same nonce and a higher fee, before it is sent.

    It settles the same payments as the first one.
    """
    rows = db.execute(
        f"""SELECT DISTINCT payment_id FROM sent_payments WHERE tx_hash IN {_OF_NONCE}
            ORDER BY payment_id""",  # noqa: S608 - a constant
        (transaction.signer, transaction.nonce),
    ).fetchall()
    nonces.insert_transaction(db, payment_id, transaction)
    if rows:
        _insert_payments(db, transaction.tx_hash, [row[0] for row in rows])


def unjudged(db: Connection) -> list[tuple[Payment, SignedTransaction]]:
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
        f"UPDATE sent_payments SET judged = 1 WHERE payment_id = ? AND tx_hash IN {_OF_NONCE}",  # noqa: S608 - a constant
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
