"""Limits per payer: open payments, and failed settlements."""

import attrs

from gateway.contracts import NewTask, SignedTransaction
from gateway.contracts.store import (
    DeploymentLimit,
    FailedSettlement,
    OpenPayments,
    PayerBusy,
    ReserveLimits,
)
from gateway.domain import Payment
from gateway.errors import ExecutionError, PaymentRequired
from gateway.store import batch_receipts
from gateway.store.rows import PAYMENT_COLUMNS, payment_of, signed_of
from gateway.store.sql import Connection, Cursor, Row, Tables, as_write

# Settled payments are counted up to this; no limit asks for more.
_MAX_COUNTED = 64
# An unmined signed transaction counts as lost after this many seconds.
LOST_S = 3600.0
# A payment is open while its outcome is unknown. A released payment also stays open while one of
# its transactions may still be mined and cost gas, until its receipt is judged. That ends after
# LOST_S: a transaction of an abandoned key is never mined, and would bar the payer forever.
IS_OPEN = """(p.state IN ('reserved', 'settling') OR (p.state = 'released' AND EXISTS (
    SELECT 1 FROM (
        SELECT s.sent_at FROM sent_transactions s WHERE s.payment_id = p.id AND s.judged = 0
            AND NOT EXISTS (SELECT 1 FROM sent_payments b WHERE b.tx_hash = s.tx_hash)
        UNION ALL
        SELECT s.sent_at FROM sent_payments m JOIN sent_transactions s ON s.tx_hash = m.tx_hash
        WHERE m.payment_id = p.id AND m.judged = 0
    ) AS unjudged WHERE unjudged.sent_at > ?)))"""
# Failed settlements of payments that were never paid, with causes that are the payer's fault. Takes
# the start time twice.
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
# Mined settlements, single or batched, whose own receipt was not judged yet, whatever became of
# their payments. Refund transactions are excluded.
UNJUDGED = """s.mined = 1 AND s.judged = 0
    AND NOT EXISTS (SELECT 1 FROM sent_transactions o
        WHERE o.signer = s.signer AND o.nonce = s.nonce AND o.succeeded = 1)
    AND NOT EXISTS (SELECT 1 FROM refunds r
        WHERE r.payment_id = s.payment_id AND r.sender = s.signer)"""


@attrs.frozen(eq=False, repr=False)
class Standing:
    """What decides about a payer's limits, read by `check_limits`."""

    barring: Cursor | None
    open: Cursor


def find_standing(db: Connection, task: NewTask, payer: str, limits: ReserveLimits) -> Standing:
    """Find failed settlements that bar a payer, and number and sum of its open payments."""
    barring = None
    if limits.barred_since is not None:
        since = limits.barred_since
        barring = db.execute(
            f"SELECT 1 FROM {BARRING} AND p.payer = ? LIMIT 1",  # noqa: S608 - a constant
            (since, since, payer),
        )
    found = db.execute(
        f"""SELECT count(*), coalesce(sum(p.price_units), 0) FROM payments p
            WHERE p.payer = ? AND {IS_OPEN}""",  # noqa: S608 - a constant
        (payer, task.created_at - LOST_S),
    )
    return Standing(barring, found)


def check_limits(db: Connection, task: NewTask, standing: Standing, limits: ReserveLimits) -> None:
    """Raise `PayerBusy` if the payer is at its limits, `ExecutionError` if held files are.

    Raises `PaymentRequired` if too many wallets were deployed. Open payments count at their full
    prices: the payer's balance must cover all of them.
    """
    if limits.most_open is None:
        return
    # A failed payment counts as open until its receipt is judged, and bars the payer from then on.
    # This check also catches a purchase that was validated before the judgement.
    if _is_barred(standing):
        raise PayerBusy
    count, units = standing.open.fetchone()
    if count >= limits.most_open:
        raise PayerBusy
    if count and units + task.price_units > limits.balance_units:
        raise PayerBusy
    if limits.deployments is not None:
        _check_deployments(db, limits.deployments)
    check_held_files(db, task, limits.held_file_bytes)


def _is_barred(standing: Standing) -> bool:
    return standing.barring is not None and standing.barring.fetchone() is not None


def _check_deployments(db: Connection, limit: DeploymentLimit) -> None:
    """Raise `PaymentRequired` if the day's wallets are deployed."""
    count = db.execute(
        """SELECT count(*) FROM payments
           WHERE deploys = 1 AND created_at > ? AND state != 'released'""",
        (limit.since,),
    ).fetchone()[0]
    if count >= limit.most:
        raise PaymentRequired(
            "This gateway deploys no more new smart wallets today. Deploy the wallet by a "
            "transaction of its own, pay by a USDC transfer, or use another account."
        )


def check_held_files(db: Connection, task: NewTask, most_bytes: int) -> None:
    """Raise `ExecutionError` if the files of unpaid tasks would exceed `most_bytes`."""
    if task.request.attachment is None:
        return
    held = db.execute(
        """SELECT coalesce(sum(length(f.data)), 0) FROM tasks t
           JOIN task_files f ON f.task_id = t.id WHERE t.status = 'held'"""
    ).fetchone()[0]
    if held + len(task.request.attachment.data) > most_bytes:
        raise ExecutionError(
            "Too many documents wait for their payments now. Try again in a minute."
        )


def name_file_lock(task: NewTask, *_: object) -> list[str]:
    """Return the lock for the sum of unpaid tasks' files, if this task has a file."""
    return ["files"] if task.request.attachment is not None else []


def judge(
    db: Connection,
    transaction: SignedTransaction,
    failure: FailedSettlement | None,
    payment_id: int | None = None,
) -> None:
    """Record the result of a nonce's receipt; its replacements count as judged, too.

    For a batch the result concerns only `payment_id`.
    """
    if payment_id is not None and batch_receipts.judge_in_batch(
        db, transaction, failure, payment_id
    ):
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
    """Mark as judged whatever needs no receipt: successes, refunds, paid payments of batches."""
    db.execute(
        f"""UPDATE sent_transactions SET judged = 1 WHERE mined = 1 AND judged = 0
            AND tx_hash NOT IN (SELECT s.tx_hash FROM sent_transactions s WHERE {UNJUDGED})"""  # noqa: S608 - a constant
    )
    batch_receipts.skip_paid_in_batches(db)


def lift(db: Connection, payer: str, note: str, now: float) -> None:
    """Forgive a payer the settlements that have failed so far."""
    db.execute(
        """INSERT INTO lifted_payers (payer, at, note) VALUES (?, ?, ?)
           ON CONFLICT (payer) DO UPDATE SET at = excluded.at, note = excluded.note""",
        (payer.lower(), now, note),
    )


class SqlPayers(Tables):
    """Open payments and failed settlements per payer."""

    lift = as_write(lift)
    judge = as_write(judge)

    async def open_of(self, payer: str, *, now: float) -> OpenPayments:
        """Return the payer's x402 payments with an unknown outcome."""
        rows = await self._rows(
            f"""SELECT count(*), coalesce(sum(p.price_units), 0),
                   (SELECT count(*) FROM (SELECT 1 FROM payments WHERE payer = ? AND state IN
                       ('settled', 'refund_due', 'refunding', 'refunded', 'refund_failed')
                       AND flow = 'x402' LIMIT ?) AS few)
               FROM payments p WHERE p.payer = ? AND {IS_OPEN}""",  # noqa: S608 - constants
            payer,
            _MAX_COUNTED,
            payer,
            now - LOST_S,
        )
        count, units, settled = rows[0]
        return OpenPayments(count=count, units=units, settled=settled)

    async def failure_of(self, payer: str, *, since: float) -> FailedSettlement | None:
        """Return the newest failure that bars a payer from x402, or None.

        Only causes that are the payer's fault count, until the payment settles after all or the
        operator lifts the bar.
        """
        rows = await self._rows(
            f"""SELECT p.payer, s.* FROM {BARRING} AND p.payer = ?
                ORDER BY s.failed_at DESC LIMIT 1""",  # noqa: S608 - constants
            since,
            since,
            payer,
        )
        return _failure_of(rows[0]) if rows else None

    async def failures(self, *, since: float) -> list[FailedSettlement]:
        """Return the newest failure of each barred payer, newest first."""
        rows = await self._rows(
            f"""SELECT * FROM (SELECT p.payer, s.*, row_number() OVER (
                    PARTITION BY p.payer ORDER BY s.failed_at DESC, s.tx_hash) AS nth_newest
                FROM {BARRING}) AS barring
                WHERE nth_newest = 1 ORDER BY failed_at DESC""",  # noqa: S608 - constants
            since,
            since,
        )
        return [_failure_of(row) for row in rows]

    async def unjudged(self) -> list[tuple[Payment, SignedTransaction]]:
        """Return our mined settlements whose receipt was not judged, paid or not.

        A batch is returned once for each of its unpaid payments.
        """
        found = await self._rows(
            f"""SELECT 1 FROM sent_transactions s WHERE s.mined = 1 AND s.judged = 0
                UNION ALL SELECT 1 FROM {batch_receipts.UNJUDGED_IN_BATCHES} LIMIT 1"""  # noqa: S608 - constants
        )
        if not found:
            return []
        await self._write(skip_known)
        rows = await self._rows(
            f"""SELECT s.*, {PAYMENT_COLUMNS} FROM sent_transactions s
                JOIN payments p ON p.id = s.payment_id
                WHERE {UNJUDGED} AND NOT EXISTS {batch_receipts.PAYMENTS_OF}"""  # noqa: S608 - constants
        )
        alone = [(payment_of(row), signed_of(row)) for row in sorted(rows, key=_sent)]
        together: list[tuple[Payment, SignedTransaction]] = await self._long_read(
            batch_receipts.unjudged_in_batches
        )
        return alone + together

    async def unjudged_batches(self) -> list[SignedTransaction]:
        """Return our mined batches whose own receipt was not judged, paid or not."""
        rows = await self._rows(
            f"""SELECT s.*,
                    (SELECT count(*) FROM sent_payments o WHERE o.tx_hash = s.tx_hash) AS payments
                FROM sent_transactions s
                WHERE {UNJUDGED} AND EXISTS {batch_receipts.PAYMENTS_OF}"""  # noqa: S608 - constants
        )
        return [
            attrs.evolve(signed_of(row), payments=row["payments"])
            for row in sorted(rows, key=_sent)
        ]


def _sent(row: Row) -> tuple[str, int, float]:
    """Sort key by nonce; sorting in SQL would make SQLite read every transaction."""
    return row["signer"], row["nonce"], row["sent_at"]


def _failure_of(row: Row) -> FailedSettlement:
    return FailedSettlement(
        payer=row["payer"],
        tx_hash=row["tx_hash"],
        at=row["failed_at"],
        failure=row["failure"],
        fee_wei=row["fee_wei"],
    )
