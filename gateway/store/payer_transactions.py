"""What payers have open and what they made fail: plain functions of the write connection."""

import sqlite3

from gateway.contracts import NewTask, SignedTransaction
from gateway.contracts.payers import FailedSettlement, PayerBusy, ReserveLimits
from gateway.errors import ExecutionError

# A payment of unknown outcome, or one that was given up while a transaction of it may still cost
# gas: what became of that is not known yet, so it counts as open. Not for ever: what a key signed
# that is used no more is never mined, and would shut its payer out.
IS_OPEN = """(p.state IN ('reserved', 'settling') OR (p.state = 'released' AND EXISTS (
    SELECT 1 FROM sent_transactions s
    WHERE s.payment_id = p.id AND s.judged = 0 AND s.sent_at > ?)))"""
# Of settlements that failed, those whose payment did not get its money after all. An unexplained
# failure may be our own fault, so it bars nobody.
BARRING = """payments p JOIN sent_transactions s ON s.payment_id = p.id
    LEFT JOIN lifted_payers l ON l.payer = p.payer
    WHERE p.state IN ('reserved', 'settling', 'released') AND s.failure != 'unexplained'
    AND s.failed_at > ? AND s.failed_at > coalesce(l.at, 0)"""
LOST_S = 3600.0  # after its signing, a transaction that is not mined is given up


def check_limits(db: sqlite3.Connection, task: NewTask, payer: str, limits: ReserveLimits) -> None:
    """Raise where T1 may not add this task: `PayerBusy`, or `ExecutionError` for its file.

    What is open counts at the full price: a balance pays for all of it or for none.
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
    if task.request.attachment is not None:
        held = db.execute(
            """SELECT coalesce(sum(length(f.data)), 0) FROM tasks t
               JOIN task_files f ON f.task_id = t.id WHERE t.status = 'held'"""
        ).fetchone()[0]
        if held + len(task.request.attachment.data) > limits.held_file_bytes:
            raise ExecutionError(
                "Too many documents wait for their payments now; nothing was charged. Try again "
                "in a minute."
            )


def _is_barred(db: sqlite3.Connection, payer: str, since: float) -> bool:
    found = db.execute(
        f"SELECT 1 FROM {BARRING} AND p.payer = ? LIMIT 1",  # noqa: S608 - a constant
        (since, payer),
    ).fetchone()
    return found is not None


def judge(
    db: sqlite3.Connection, transaction: SignedTransaction, failure: FailedSettlement | None
) -> None:
    """Note what the receipt of a nonce said; a replacement of the same nonce needs no look."""
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


def skip_paid(db: sqlite3.Connection) -> None:
    """Note that mined transactions of paid payments need no look: theirs settled, or a copy did."""
    db.execute(
        """UPDATE sent_transactions SET judged = 1
           WHERE mined = 1 AND judged = 0 AND payment_id IN (
               SELECT id FROM payments WHERE state NOT IN ('reserved', 'settling', 'released'))"""
    )


def lift(db: sqlite3.Connection, payer: str, note: str, now: float) -> None:
    """Forgive a payer what failed up to now."""
    db.execute(
        """INSERT INTO lifted_payers (payer, at, note) VALUES (?, ?, ?)
           ON CONFLICT (payer) DO UPDATE SET at = excluded.at, note = excluded.note""",
        (payer, now, note),
    )
