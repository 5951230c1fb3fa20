"""Signed transactions and their nonces, which survive a restart.

A batch settles several payments: one row of `sent_transactions` with one nonce, and one row of
`sent_payments` for each payment in it. All are recorded before broadcast, as for a single payment.
"""

from collections.abc import Collection, Sequence

from gateway.contracts import NoFreeNonce, SignedTransaction, UnsignedBatch, UnsignedTransaction
from gateway.domain import Payment, PaymentState, Receipt
from gateway.domain.eip3009 import usual_gas
from gateway.store.rows import PAYMENT_COLUMNS, payment_of, signed_of
from gateway.store.sql import Connection, Cursor, Row, locked, none_of, placeholders

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
    payment has used another nonce, and `NoFreeNonce` if too many of the signer's are pending.
    """
    if isinstance(transaction, SignedTransaction):
        check_nonce_free(db, transaction)
        insert_transaction(db, payment_id, transaction)
        return transaction
    # Both statements are sent before a result is read: that is one round trip.
    sent = find_sent(db, payment_id, transaction.signers)
    used = find_used(db, transaction.signer, transaction.chain_nonce)
    rows = sent.fetchall()
    if known := newest_unmined(rows):
        return known
    signed = sign_next(payment_id, transaction, rows, [row[0] for row in used])
    insert_transaction(db, payment_id, signed)
    return signed


def sign_next(
    payment_id: int, transaction: UnsignedTransaction, sent: Sequence[Row], used: Sequence[int]
) -> SignedTransaction:
    """Sign a payment's transaction with the key's first nonce that is not `used`.

    `sent` are the payment's mined transactions. Raises as `write_down` does.
    """
    if _count_nonces(sent) != transaction.used_nonces:
        raise RuntimeError(f"payment {payment_id} used up another nonce meanwhile")
    chain_nonce = transaction.chain_nonce
    waiting = [nonce for nonce in used if nonce >= chain_nonce]
    return transaction.sign(
        _find_free(transaction.signer, waiting, chain_nonce, transaction.most_waiting)
    )


def next_nonce(db: Connection, signer: str, chain_nonce: int) -> int:
    """Return the first nonce from `chain_nonce` on that the signer has not used."""
    return first_unused([row[0] for row in find_used(db, signer, chain_nonce)], chain_nonce)


def find_used(db: Connection, signer: str, chain_nonce: int) -> Cursor:
    """Find the signer's nonces from `chain_nonce` on, in their order."""
    return db.execute(
        """SELECT DISTINCT nonce FROM sent_transactions
           WHERE signer = ? AND nonce >= ? ORDER BY nonce""",
        (signer, chain_nonce),
    )


def first_unused(used: Sequence[int], chain_nonce: int) -> int:
    """Return the first nonce from `chain_nonce` on that is not among these, in their order.

    This is not the highest nonce plus one. If an RPC endpoint ever returned too high a number,
    there would be a gap, and no transaction above a gap is mined.
    """
    nonce = chain_nonce
    for each in used:
        if each > nonce:
            break
        nonce = each + 1
    return nonce


def _find_free(signer: str, used: Sequence[int], chain_nonce: int, most_waiting: int) -> int:
    """Return the first nonce that is not among these, in their order.

    Raises `NoFreeNonce` if `most_waiting` before it are used. Those above a gap do not count: none
    of them is mined until the gap is filled.
    """
    nonce = first_unused(used, chain_nonce)
    if nonce - chain_nonce >= most_waiting:
        raise NoFreeNonce(signer)
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


def find_sent(db: Connection, payment_id: int, signers: Sequence[str]) -> Cursor:
    """Find a payment's transactions of these keys, newest first."""
    # A payment has few rows. `|| ''` keeps SQLite from the far larger index by signer.
    return db.execute(
        f"""SELECT * FROM ({_SENT_FOR}) AS sent WHERE signer || '' IN ({placeholders(signers)})
           ORDER BY nonce DESC, max_fee_wei DESC""",  # noqa: S608 - placeholders
        (payment_id, payment_id, *signers),
    )


def newest_unmined(rows: Sequence[Row]) -> SignedTransaction | None:
    """Return the first of these transactions whose nonce is not known to be mined."""
    return next((signed_of(row) for row in rows if not row["mined"]), None)


def _count_nonces(rows: Sequence[Row]) -> int:
    return len({(row["signer"], row["nonce"]) for row in rows})


def unmined_of(db: Connection, payment_id: int, *signers: str) -> SignedTransaction | None:
    """Return a payment's newest transaction of these keys whose nonce is not known to be mined."""
    return newest_unmined(find_sent(db, payment_id, signers).fetchall())


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
    return _count_nonces(find_sent(db, payment_id, signers).fetchall())


def waiting_of(db: Connection, signer: str, chain_nonce: int) -> int:
    """Return how many nonces in a row, from `chain_nonce` on, the signer has used."""
    return next_nonce(db, signer, chain_nonce) - chain_nonce


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


# A batch has at least this many payments.
_MIN_PAYMENTS = 2
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
    if mined.gas_used <= usual_gas(_MIN_PAYMENTS):
        # No batch's excess, so its size need not be read.
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


OF_NONCE = "(SELECT tx_hash FROM sent_transactions WHERE signer = ? AND nonce = ?)"


# The free nonce and the number of pending transactions must not change under us.
@locked(lambda batch, *_: [f"signer:{batch.signer}"])
def begin_batch(
    db: Connection, batch: UnsignedBatch, now: float
) -> tuple[SignedTransaction, Sequence[int]] | None:
    """Sign one transaction for several payments with the next free nonce, and mark them `settling`.

    Their calls were simulated earlier. A payment that was closed or signed for since then is left
    out. Returns the transaction and the payments in it, or None, with nothing written, if fewer
    than two payments remain. Raises `NoFreeNonce` if the signer has too many pending transactions.
    """
    asked = [
        (each, find_state(db, each), find_sent(db, each, batch.signers)) for each in batch.payments
    ]
    used = find_used(db, batch.signer, batch.chain_nonce)
    taken = [each for each, state, sent in asked if _is_fresh(state, sent)]
    if len(taken) < _MIN_PAYMENTS:
        return None
    nonces = [row[0] for row in used]
    nonce = _find_free(batch.signer, nonces, batch.chain_nonce, batch.most_waiting)
    transaction = batch.sign(nonce, taken)
    insert_transaction(db, taken[0], transaction)
    for payment_id in taken:
        db.execute(
            "UPDATE payments SET state = ?, updated_at = ? WHERE id = ?",
            (PaymentState.SETTLING, now, payment_id),
        )
    _insert_payments(db, transaction.tx_hash, taken)
    return transaction, taken


def find_state(db: Connection, payment_id: int) -> Cursor:
    """Find the state of a payment."""
    return db.execute("SELECT state FROM payments WHERE id = ?", (payment_id,))


def is_open(state: Cursor) -> bool:
    """Whether there is such a payment, by `find_state`, and it is open."""
    row = state.fetchone()
    return row is not None and PaymentState(row["state"]).is_open


def _is_fresh(state: Cursor, sent: Cursor) -> bool:
    return is_open(state) and not sent.fetchall()


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
        f"""SELECT DISTINCT payment_id FROM sent_payments WHERE tx_hash IN {OF_NONCE}
            ORDER BY payment_id""",  # noqa: S608 - a constant
        (transaction.signer, transaction.nonce),
    ).fetchall()
    insert_transaction(db, payment_id, transaction)
    if rows:
        _insert_payments(db, transaction.tx_hash, [row[0] for row in rows])
