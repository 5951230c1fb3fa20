"""The payer records as a part of the store: their writes are functions of `payers`."""

import attrs

from gateway.contracts import SignedTransaction
from gateway.contracts.payers import FailedSettlement, OpenPayments
from gateway.domain import Payment
from gateway.store import batches, payers
from gateway.store.rows import PAYMENT_COLUMNS, ReadRows, RunWrite, payment_of, signed_of
from gateway.store.sql import Row

# So many settled payments of one payer are counted: more than any limit asks for.
_MOST_COUNTED = 64


class SqlPayers:
    """Open payments and failures by payer. Implements `contracts.payers.PayerRecords`."""

    def __init__(self, write: RunWrite, rows: ReadRows, query: RunWrite) -> None:
        self._write = write
        self._rows = rows
        self._query = query

    async def open_of(self, payer: str, *, now: float) -> OpenPayments:
        rows = await self._rows(
            f"""SELECT count(*), coalesce(sum(p.price_units), 0),
                   (SELECT count(*) FROM (SELECT 1 FROM payments WHERE payer = ? AND state IN
                       ('settled', 'refund_due', 'refunding', 'refunded', 'refund_failed')
                       AND flow = 'x402' LIMIT ?) AS few)
               FROM payments p WHERE p.payer = ? AND {payers.IS_OPEN}""",  # noqa: S608 - constants
            payer,
            _MOST_COUNTED,
            payer,
            now - payers.LOST_S,
        )
        count, units, settled = rows[0]
        return OpenPayments(count=count, units=units, settled=settled)

    async def failure_of(self, payer: str, *, since: float) -> FailedSettlement | None:
        rows = await self._rows(
            f"""SELECT p.payer, s.* FROM {payers.BARRING} AND p.payer = ?
                ORDER BY s.failed_at DESC LIMIT 1""",  # noqa: S608 - constants
            since,
            since,
            payer,
        )
        return _failure_of(rows[0]) if rows else None

    async def failures(self, *, since: float) -> list[FailedSettlement]:
        rows = await self._rows(
            f"""SELECT * FROM (SELECT p.payer, s.*, row_number() OVER (
                    PARTITION BY p.payer ORDER BY s.failed_at DESC, s.tx_hash) AS nth_newest
                FROM {payers.BARRING}) AS barring
                WHERE nth_newest = 1 ORDER BY failed_at DESC""",  # noqa: S608 - constants
            since,
            since,
        )
        return [_failure_of(row) for row in rows]

    async def lift(self, payer: str, *, note: str, now: float) -> None:
        await self._write(payers.lift, payer.lower(), note, now)

    async def unjudged(self) -> list[tuple[Payment, SignedTransaction]]:
        found = await self._rows(
            f"""SELECT 1 FROM sent_transactions s WHERE s.mined = 1 AND s.judged = 0
                UNION ALL SELECT 1 FROM {batches.UNJUDGED} LIMIT 1"""  # noqa: S608 - constants
        )
        if not found:
            return []
        await self._write(payers.skip_known)
        rows = await self._rows(
            f"""SELECT s.*, {PAYMENT_COLUMNS} FROM sent_transactions s
                JOIN payments p ON p.id = s.payment_id
                WHERE {payers.UNJUDGED} AND NOT EXISTS {batches.PAYMENTS_OF}"""  # noqa: S608 - constants
        )
        alone = [(payment_of(row), signed_of(row)) for row in sorted(rows, key=_sent)]
        together: list[tuple[Payment, SignedTransaction]] = await self._query(batches.unjudged)
        return alone + together

    async def unjudged_batches(self) -> list[SignedTransaction]:
        rows = await self._rows(
            f"""SELECT s.*,
                    (SELECT count(*) FROM sent_payments o WHERE o.tx_hash = s.tx_hash) AS payments
                FROM sent_transactions s
                WHERE {payers.UNJUDGED} AND EXISTS {batches.PAYMENTS_OF}"""  # noqa: S608 - constants
        )
        return [
            attrs.evolve(signed_of(row), payments=row["payments"])
            for row in sorted(rows, key=_sent)
        ]

    async def judge(
        self,
        transaction: SignedTransaction,
        failure: FailedSettlement | None,
        payment_id: int | None = None,
    ) -> None:
        await self._write(payers.judge, transaction, failure, payment_id)


def _sent(row: Row) -> tuple[str, int, float]:
    """Order transactions by their nonce. In SQL, SQLite would read all of them for that order."""
    return row["signer"], row["nonce"], row["sent_at"]


def _failure_of(row: Row) -> FailedSettlement:
    return FailedSettlement(
        payer=row["payer"],
        tx_hash=row["tx_hash"],
        at=row["failed_at"],
        failure=row["failure"],
        fee_wei=row["fee_wei"],
    )
