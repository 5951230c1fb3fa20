"""Mined transactions of the gateway's keys: block, time and gas cost."""

from collections.abc import Collection

from gateway.domain import Receipt
from gateway.domain.eip3009 import usual_gas
from gateway.store.sql import Connection, none_of

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
    """Return the newest mined transactions whose block time is unknown.

    Only one transaction per nonce is mined. Once that one is known, its replacements are skipped.
    """
    skipped = list(skip)
    rows = db.execute(
        f"""SELECT s.tx_hash FROM sent_transactions s
           WHERE s.mined = 1 AND s.mined_at IS NULL AND {none_of("s.tx_hash", skipped)}
               AND NOT EXISTS (SELECT 1 FROM sent_transactions o WHERE o.signer = s.signer
                   AND o.nonce = s.nonce AND o.mined_at IS NOT NULL)
           ORDER BY s.sent_at DESC LIMIT ?""",  # noqa: S608 - marks
        (*skipped, limit),
    )
    return [row[0] for row in rows]
