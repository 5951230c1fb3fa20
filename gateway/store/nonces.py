"""Signed transactions and their nonces, which survive a restart.

A batch settles several payments: one row of `sent_transactions` with one nonce, and one row of
`sent_payments` for each payment in it. All are recorded before broadcast, as for a single payment.
"""

from collections.abc import Collection, Sequence

import attrs

from gateway.contracts import SignedTransaction, UnsignedBatch, UnsignedTransaction
from gateway.contracts.store import FailedSettlement
from gateway.domain import Payment, PaymentState, Receipt
from gateway.domain.eip3009 import usual_gas
from gateway.errors import ChainUnavailable
from gateway.store.rows import PAYMENT_COLUMNS, SIGNED_COLUMNS, payment_of, signed_of
from gateway.store.sql import Connection, locked, none_of, placeholders

# The transactions signed for a payment, alone or in a batch. Takes the payment id twice; may return
# a row twice for the first payment of a batch.
_SENT_FOR = """SELECT * FROM sent_transactions WHERE payment_id = ?
    UNION ALL SELECT s.* FROM sent_payments m JOIN sent_transactions s ON s.tx_hash = m.tx_hash
    WHERE m.payment_id = ?"""


def write_down(
    db: Connection, payment_id: int, transaction: SignedTransaction | UnsignedTransaction
) -> SignedTransaction:
    """Record a payment's transaction before it is sent, and return the transaction to send.

    An unsigned transaction is signed here with the next free nonce. If another submit already
    recorded a transaction since the simulation, that one is returned. Raises `RuntimeError` if the
    payment has used another nonce, and `ChainUnavailable` if the signer has too many pending
    transactions.
    """
    if isinstance(transaction, UnsignedTransaction):
        if known := unmined_of(db, payment_id, *transaction.signers):
            return known
        if nonces_of(db, payment_id, *transaction.signers) != transaction.used_nonces:
            raise RuntimeError(f"payment {payment_id} used up another nonce meanwhile")
        if waiting_of(db, transaction.signer, transaction.chain_nonce) >= transaction.most_waiting:
            raise ChainUnavailable(f"Too many transactions of {transaction.signer} wait.")
        transaction = transaction.sign(next_nonce(db, transaction.signer, transaction.chain_nonce))
    check_nonce_free(db, transaction)
    insert_transaction(db, payment_id, transaction)
    return transaction


def next_nonce(db: Connection, signer: str, chain_nonce: int) -> int:
    """Return the first nonce from `chain_nonce` on that the signer has not used.

    This is not the highest nonce plus one. If an RPC endpoint ever returned too high a number,
    there would be a gap, and no transaction above a gap is mined.
    """
    nonce = chain_nonce
    for (used,) in db.execute(
        """SELECT DISTINCT nonce FROM sent_transactions
           WHERE signer = ? AND nonce >= ? ORDER BY nonce""",
        (signer, chain_nonce),
    ):
        if used > nonce:
            break
        nonce = used + 1
    return nonce


def check_nonce_free(db: Connection, transaction: SignedTransaction) -> None:
    """Raise `RuntimeError` if another transaction has the signer's nonce.

    The same bytes may be recorded already: a repeat after a COMMIT whose response was lost.
    """
    taken = db.execute(
        "SELECT 1 FROM sent_transactions WHERE signer = ? AND nonce = ? AND tx_hash <> ?",
        (transaction.signer, transaction.nonce, transaction.tx_hash),
    ).fetchone()
    if taken:
        raise RuntimeError(f"nonce {transaction.nonce} of {transaction.signer} is taken")


def insert_transaction(db: Connection, payment_id: int, transaction: SignedTransaction) -> None:
    """Insert a signed transaction; a replacement with the same nonce gets its own row.

    Another process of this gateway may already have inserted the same bytes.
    """
    db.execute(
        """INSERT INTO sent_transactions (tx_hash, payment_id, signer, nonce, raw,
               max_fee_wei, max_priority_wei, sent_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT (tx_hash) DO NOTHING""",
        (
            transaction.tx_hash,
            payment_id,
            transaction.signer,
            transaction.nonce,
            transaction.raw,
            transaction.max_fee_wei,
            transaction.max_priority_wei,
            transaction.sent_at,
        ),
    )


def unmined_of(db: Connection, payment_id: int, *signers: str) -> SignedTransaction | None:
    """Return a payment's newest transaction of these keys whose nonce is not known to be mined."""
    # A payment has few rows. `+ 0` and `|| ''` keep SQLite from the far larger index by signer.
    row = db.execute(
        f"""SELECT * FROM ({_SENT_FOR}) AS sent WHERE mined + 0 = 0
             AND signer || '' IN ({placeholders(signers)})
           ORDER BY nonce DESC, max_fee_wei DESC LIMIT 1""",  # noqa: S608 - placeholders
        (payment_id, payment_id, *signers),
    ).fetchone()
    return signed_of(row) if row else None


def sent_hashes(db: Connection, payment_id: int, signer: str) -> list[str]:
    """Return the hashes of all of a key's transactions for a payment, newest first."""
    rows = db.execute(
        f"SELECT DISTINCT tx_hash, nonce, sent_at FROM ({_SENT_FOR}) AS sent "  # noqa: S608 - a constant
        "WHERE signer || '' = ? ORDER BY nonce DESC, sent_at DESC",
        (payment_id, payment_id, signer),
    )
    return [row["tx_hash"] for row in rows]


def nonces_of(db: Connection, payment_id: int, *signers: str) -> int:
    """Return the number of nonces of these keys that a payment has used."""
    count: int = db.execute(
        f"""SELECT count(*) FROM (SELECT DISTINCT signer, nonce FROM ({_SENT_FOR}) AS sent
           WHERE signer || '' IN ({placeholders(signers)})) AS used""",  # noqa: S608 - placeholders
        (payment_id, payment_id, *signers),
    ).fetchone()[0]
    return count


def waiting_of(db: Connection, signer: str, chain_nonce: int) -> int:
    """Return the number of nonces from `chain_nonce` on that the signer has used."""
    count: int = db.execute(
        "SELECT count(DISTINCT nonce) FROM sent_transactions WHERE signer = ? AND nonce >= ?",
        (signer, chain_nonce),
    ).fetchone()[0]
    return count


def failed_gas(db: Connection, since: float) -> int:
    """Return the wei burned by failed settlements, except for causes proven to burn little."""
    wei: int = db.execute(
        """SELECT coalesce(sum(fee_wei), 0) FROM sent_transactions
           WHERE failed_at > ? AND failure IN ('wallet', 'burned', 'unexplained')""",
        (since,),
    ).fetchone()[0]
    return wei


def unmined(db: Connection, signer: str) -> list[tuple[Payment, SignedTransaction]]:
    """Return (payment, newest transaction) per nonce not known to be mined, by nonce."""
    rows = db.execute(
        f"""SELECT s.*, {PAYMENT_COLUMNS} FROM sent_transactions s
            JOIN payments p ON p.id = s.payment_id
            WHERE s.signer = ? AND s.mined = 0 AND NOT EXISTS (
                SELECT 1 FROM sent_transactions o
                WHERE o.signer = s.signer AND o.mined = 0 AND o.nonce = s.nonce
                    AND (o.max_fee_wei > s.max_fee_wei
                        OR (o.max_fee_wei = s.max_fee_wei AND o.tx_hash > s.tx_hash)))
            ORDER BY s.nonce""",  # noqa: S608 - constants
        (signer,),
    ).fetchall()
    return [(payment_of(row), signed_of(row)) for row in rows]


def mark_mined(db: Connection, signer: str, below_nonce: int) -> None:
    """Mark every nonce below `below_nonce` as mined, and the others as not mined.

    A mined nonce can become unused again through a reorg.
    """
    db.execute(
        "UPDATE sent_transactions SET mined = 1 WHERE signer = ? AND mined = 0 AND nonce < ?",
        (signer, below_nonce),
    )
    db.execute(
        """UPDATE sent_transactions SET mined = 0, gas_wei = NULL, l1_fee_wei = NULL,
               mined_block = NULL, mined_at = NULL, succeeded = NULL
           WHERE signer = ? AND mined = 1 AND nonce >= ?""",
        (signer, below_nonce),
    )


def open_by_signer(db: Connection) -> dict[str, int]:
    """Return the number of open payments that each settlement key has signed for."""
    rows = db.execute(
        """SELECT signer, count(DISTINCT payment_id) FROM (
               SELECT p.id AS payment_id, s.signer FROM payments p
                   JOIN sent_transactions s ON s.payment_id = p.id
                   WHERE p.state IN ('reserved', 'settling')
               UNION ALL SELECT p.id, s.signer FROM payments p
                   JOIN sent_payments b ON b.payment_id = p.id
                   JOIN sent_transactions s ON s.tx_hash = b.tx_hash
                   WHERE p.state IN ('reserved', 'settling')
           ) AS sent GROUP BY signer ORDER BY signer"""
    )
    return {row[0]: row[1] for row in rows}


def unmined_by_signer(db: Connection) -> dict[str, int]:
    """Return the number of nonces of each key that are not known to be mined."""
    rows = db.execute(
        """SELECT signer, count(DISTINCT nonce) FROM sent_transactions WHERE mined = 0
           GROUP BY signer"""
    )
    return {row[0]: row[1] for row in rows}


# The largest value that the column holds. A fee of nine ETH must be false.
_MAX_WEI = 2**63


# A mined transaction `s` whose block time is unknown; one row per nonce.
UNDATED = """s.mined = 1 AND s.mined_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM sent_transactions o WHERE o.signer = s.signer AND o.nonce = s.nonce
        AND (o.mined_at IS NOT NULL OR (o.sent_at, o.tx_hash) > (s.sent_at, s.tx_hash)))"""


def note_mined(db: Connection, mined: Receipt) -> None:
    """Record the receipt of one of our transactions. Ignores any other transaction."""
    db.execute(
        """UPDATE sent_transactions SET gas_wei = coalesce(?, gas_wei),
               l1_fee_wei = coalesce(?, l1_fee_wei), mined_block = ?,
               mined_at = ?, succeeded = ? WHERE tx_hash = ?""",
        (
            _as_column(mined.gas_wei),
            _as_column(mined.l1_fee_wei),
            mined.block.number,
            float(mined.block.timestamp),
            int(mined.succeeded),
            mined.tx_hash,
        ),
    )
    _note_excess(db, mined)


def _note_excess(db: Connection, mined: Receipt) -> None:
    """Record excess gas of a successful batch, burned by a payer's code."""
    if not mined.succeeded or mined.gas_used is None or mined.fee_wei is None:
        return
    payments = db.execute(
        "SELECT count(*) FROM sent_payments WHERE tx_hash = ?", (mined.tx_hash,)
    ).fetchone()[0]
    excess = mined.gas_used - usual_gas(payments)
    if payments and excess > 0:
        db.execute(
            """UPDATE sent_transactions SET failed_at = ?, failure = 'burned', fee_wei = ?
               WHERE tx_hash = ?""",
            (
                float(mined.block.timestamp),
                _as_column(mined.fee_wei * excess // mined.gas_used),
                mined.tx_hash,
            ),
        )


def _as_column(wei: int | None) -> int | None:
    return wei if wei is not None and 0 <= wei < _MAX_WEI else None


def undated(db: Connection, limit: int, skip: Collection[str]) -> list[str]:
    """Return the newest mined transactions whose block time is unknown, except `skip`.

    Only one transaction per nonce is mined. Once that one is known, its replacements are skipped.
    """
    skipped = list(skip)
    rows = db.execute(
        f"""SELECT s.tx_hash FROM sent_transactions s
           WHERE s.mined = 1 AND s.mined_at IS NULL AND {none_of("s.tx_hash", skipped)}
               AND NOT EXISTS (SELECT 1 FROM sent_transactions o WHERE o.signer = s.signer
                   AND o.nonce = s.nonce AND o.mined_at IS NOT NULL)
           ORDER BY s.sent_at DESC LIMIT ?""",  # noqa: S608 - placeholders
        (*skipped, limit),
    )
    return [row[0] for row in rows]


# A batch has at least this many payments.
_MIN_PAYMENTS = 2

UNJUDGED_IN_BATCHES = """sent_payments m JOIN sent_transactions s ON s.tx_hash = m.tx_hash
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
    if waiting_of(db, batch.signer, batch.chain_nonce) >= batch.most_waiting:
        raise ChainUnavailable(f"Too many transactions of {batch.signer} wait.")
    transaction = batch.sign(next_nonce(db, batch.signer, batch.chain_nonce), taken)
    check_nonce_free(db, transaction)
    insert_transaction(db, taken[0], transaction)
    for payment_id in taken:
        db.execute(
            "UPDATE payments SET state = ?, updated_at = ? WHERE id = ?",
            (PaymentState.SETTLING, now, payment_id),
        )
    _insert_payments(db, transaction.tx_hash, taken)
    return transaction, taken


def _is_fresh(db: Connection, payment_id: int, signers: Sequence[str]) -> bool:
    row = db.execute("SELECT state FROM payments WHERE id = ?", (payment_id,)).fetchone()
    return PaymentState(row["state"]).is_open and nonces_of(db, payment_id, *signers) == 0


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
    insert_transaction(db, payment_id, transaction)
    if rows:
        _insert_payments(db, transaction.tx_hash, [row[0] for row in rows])


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
