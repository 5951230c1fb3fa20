"""The refund ledger as a part of the store: its writes are functions of `refunds`."""

from collections import Counter
from collections.abc import Sequence

from gateway.contracts import SignedTransaction, UnsignedTransaction
from gateway.domain import Decision, MinedTransfer, PaymentState, RefundCase
from gateway.store import refunds
from gateway.store.refunds import SELECT_CASE
from gateway.store.rows import ReadRows, RunWrite, refund_case_of


class SqlRefunds:
    """Refunds from owed to paid. Implements `contracts.RefundLedger`."""

    def __init__(self, write: RunWrite, rows: ReadRows) -> None:
        self._write = write
        self._rows = rows

    async def cases(self, *states: PaymentState) -> list[RefundCase]:
        wanted = states or tuple(PaymentState)
        marks = ", ".join("?" * len(wanted))
        rows = await self._rows(
            f"{SELECT_CASE} WHERE p.state IN ({marks}) ORDER BY r.payment_id", *wanted
        )
        return [refund_case_of(row) for row in rows]

    async def case(self, task_id: str) -> RefundCase | None:
        return await self._find("t.id = ?", task_id)

    async def case_of(self, payment_id: int) -> RefundCase | None:
        return await self._find("p.id = ?", payment_id)

    async def _find(self, where: str, value: object) -> RefundCase | None:
        rows = await self._rows(f"{SELECT_CASE} WHERE {where}", value)
        return refund_case_of(rows[0]) if rows else None

    async def decide(
        self, task_id: str, decision: Decision, *, recipient: str | None, note: str, now: float
    ) -> RefundCase:
        case: RefundCase = await self._write(
            refunds.decide, task_id, decision, recipient, note, now
        )
        return case

    async def begin(
        self,
        payment_id: int,
        transaction: SignedTransaction | UnsignedTransaction | None,
        *,
        sender: str,
        recipient: str,
        search_from_block: int,
        cap_units: int | None,
        now: float,
    ) -> SignedTransaction | None:
        written: SignedTransaction | None = await self._write(
            refunds.begin,
            payment_id,
            transaction,
            sender,
            recipient,
            search_from_block,
            cap_units,
            now,
        )
        return written

    async def sent_automatically(self, *, now: float) -> int:
        rows = await self._rows(refunds.SENT_AUTOMATICALLY, now - refunds.DAY_S)
        return int(rows[0][0])

    async def end(self, payment_id: int, tx_hash: str, *, now: float) -> bool:
        return bool(await self._write(refunds.end, payment_id, tx_hash, now))

    async def fail(self, payment_id: int, problem: str, *, now: float) -> bool:
        return bool(await self._write(refunds.fail, payment_id, problem, now))

    async def note_problem(self, payment_id: int, problem: str | None) -> None:
        await self._write(refunds.note_problem, payment_id, problem)

    async def unclaimed(self, transfers: Sequence[MinedTransfer]) -> list[MinedTransfer]:
        # Transfers are compared by sender and amount: a log gets another index where its block is
        # replaced.
        paid: Counter[tuple[str, str, int]] = Counter()
        for tx_hash in {transfer.tx_hash for transfer in transfers}:
            rows = await self._rows(
                "SELECT payer, paid_units FROM payments WHERE paid_tx = ?", tx_hash
            )
            paid.update((tx_hash, row["payer"], row["paid_units"]) for row in rows)
        found = []
        for transfer in transfers:
            key = (transfer.tx_hash, transfer.sender, transfer.amount_units)
            if paid[key] == 0:
                found.append(transfer)
            else:
                paid[key] -= 1
        return found
