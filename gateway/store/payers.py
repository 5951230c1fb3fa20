"""What payers have open and made fail: limits and writes, as functions of the write connection.

The reads of the same records, and the class that offers both, are in `payer_records`.
"""

from gateway.contracts import NewTask, SignedTransaction
from gateway.contracts.payers import FailedSettlement, PayerBusy, ReserveLimits
from gateway.errors import ExecutionError
from gateway.store.batches import judge_in_batch, skip_paid_in_batches
from gateway.store.sql import Connection

# After this many seconds a signed transaction that is not mined counts as lost.
LOST_S = 3600.0
# A payment is open while its outcome is unknown. A released payment is open, too, while a
# transaction of it may still be mined and cost gas: its receipt was not looked at yet. That ends
# after LOST_S. What an abandoned key signed is never mined, and would bar its payer for ever.
IS_OPEN = """(p.state IN ('reserved', 'settling') OR (p.state = 'released' AND EXISTS (
    SELECT 1 FROM (
        SELECT s.sent_at FROM sent_transactions s WHERE s.payment_id = p.id AND s.judged = 0
            AND NOT EXISTS (SELECT 1 FROM sent_payments b WHERE b.tx_hash = s.tx_hash)
        UNION ALL
        SELECT s.sent_at FROM sent_payments m JOIN sent_transactions s ON s.tx_hash = m.tx_hash
        WHERE m.payment_id = p.id AND m.judged = 0
    ) AS unjudged WHERE unjudged.sent_at > ?)))"""
# Settlements that failed, of payments that did not get their money after all. Only a cause that is
# the payer's bars him. Takes the first moment twice.
BARRING = """(
        SELECT payment_id, tx_hash, failed_at, fee_wei, failure FROM sent_transactions
        WHERE failed_at > ?
        UNION ALL
        SELECT payment_id, tx_hash, failed_at, fee_wei, failure FROM sent_payments
        WHERE failed_at > ?
    ) AS s JOIN payments p ON p.id = s.payment_id
    LEFT JOIN lifted_payers l ON l.payer = p.payer
    WHERE p.state IN ('reserved', 'settling', 'released')
    AND s.failure IN ('wallet', 'spent', 'drained')
    AND s.failed_at > coalesce(l.at, 0)"""
# Mined settlements, alone or of batches, whose own receipt was not looked at: what became of their
# payments meanwhile does not count. A refund's transaction is no settlement.
UNJUDGED = """s.mined = 1 AND s.judged = 0
    AND NOT EXISTS (SELECT 1 FROM sent_transactions o
        WHERE o.signer = s.signer AND o.nonce = s.nonce AND o.succeeded = 1)
    AND NOT EXISTS (SELECT 1 FROM refunds r
        WHERE r.payment_id = s.payment_id AND r.sender = s.signer)"""


def check_limits(db: Connection, task: NewTask, payer: str, limits: ReserveLimits) -> None:
    """Raise `PayerBusy` or, for the task's file, `ExecutionError` where no task may be reserved.

    Open payments count at their full prices: the payer's balance must reach all of them.
    """
    if limits.most_open is None:
        return
    # The payment that failed counts as open until its receipt is judged, and from then on it bars:
    # a purchase that was checked before the judgement finds here what the judgement wrote.
    if limits.barred_since is not None and _is_barred(db, payer, limits.barred_since):
        raise PayerBusy
    count, units = db.execute(
        f"""SELECT count(*), coalesce(sum(p.price_units), 0) FROM payments p
            WHERE p.payer = ? AND {IS_OPEN}""",  # noqa: S608 - a constant
        (payer, task.created_at - LOST_S),
    ).fetchone()
    if count >= limits.most_open:
        raise PayerBusy
    if count and units + task.price_units > limits.balance_units:
        raise PayerBusy
    check_held_files(db, task, limits.held_file_bytes)


def check_held_files(db: Connection, task: NewTask, most_bytes: int) -> None:
    """Raise `ExecutionError` where the files of unpaid tasks would take more than `most_bytes`."""
    if task.request.attachment is None:
        return
    held = db.execute(
        """SELECT coalesce(sum(length(f.data)), 0) FROM tasks t
           JOIN task_files f ON f.task_id = t.id WHERE t.status = 'held'"""
    ).fetchone()[0]
    if held + len(task.request.attachment.data) > most_bytes:
        raise ExecutionError(
            "Too many documents wait for their payments now; nothing was charged. Try again in a "
            "minute."
        )


def _is_barred(db: Connection, payer: str, since: float) -> bool:
    found = db.execute(
        f"SELECT 1 FROM {BARRING} AND p.payer = ? LIMIT 1",  # noqa: S608 - a constant
        (since, since, payer),
    ).fetchone()
    return found is not None


def judge(
    db: Connection,
    transaction: SignedTransaction,
    failure: FailedSettlement | None,
    payment_id: int | None,
) -> None:
    """Note what the receipt of a nonce said; replacements of the nonce need no look any more.

    In a batch it said that of one payment only.
    """
    if payment_id is not None and judge_in_batch(db, transaction, failure, payment_id):
        return
    db.execute(
        "UPDATE sent_transactions SET judged = 1 WHERE signer = ? AND nonce = ?",
        (transaction.signer, transaction.nonce),
    )
    if failure is not None:
        db.execute(
            """UPDATE sent_transactions SET failed_at = ?, fee_wei = ?, failure = ?
               WHERE tx_hash = ?""",
            (failure.at, failure.fee_wei, failure.failure, failure.tx_hash),
        )


def skip_known(db: Connection) -> None:
    """Note what needs no look: what succeeded, refunds, and paid payments of batches."""
    db.execute(
        f"""UPDATE sent_transactions SET judged = 1 WHERE mined = 1 AND judged = 0
            AND tx_hash NOT IN (SELECT s.tx_hash FROM sent_transactions s WHERE {UNJUDGED})"""  # noqa: S608 - a constant
    )
    skip_paid_in_batches(db)


def lift(db: Connection, payer: str, note: str, now: float) -> None:
    """Forgive a payer the settlements that failed up to now."""
    db.execute(
        """INSERT INTO lifted_payers (payer, at, note) VALUES (?, ?, ?)
           ON CONFLICT (payer) DO UPDATE SET at = excluded.at, note = excluded.note""",
        (payer, now, note),
    )
