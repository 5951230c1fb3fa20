"""What the refund ledger promises: decisions, sending, and the end of each refund."""

from collections.abc import Sequence
from typing import Protocol

from gateway.contracts.payments import SignedTransaction
from gateway.domain import Decision, MinedTransfer, PaymentState, RefundCase


class RefundLedger(Protocol):
    """Refunds from owed to paid. Each method is one transaction, durable when it returns."""

    async def cases(self, *states: PaymentState) -> list[RefundCase]:
        """Return the refunds in these states, oldest first; all of them without any."""
        ...

    async def case(self, task_id: str) -> RefundCase | None:
        """Return the refund of a task."""
        ...

    async def case_of(self, payment_id: int) -> RefundCase | None:
        """Return the refund of a payment."""
        ...

    async def decide(
        self, task_id: str, decision: Decision, *, recipient: str | None, note: str, now: float
    ) -> RefundCase:
        """Note the operator's decision, and where the money goes if not to the payer.

        Raises `RefundRefused` for a refund that is being sent or is paid.
        """
        ...

    async def begin(
        self,
        payment_id: int,
        transaction: SignedTransaction | None,
        *,
        sender: str,
        recipient: str,
        search_from_block: int,
        cap_units: int,
        now: float,
    ) -> None:
        """Payment `refunding`, what was signed for it, its nonce used up; before it is sent.

        Without an approval it counts against `cap_units` in 24 hours. Raises `RefundRefused`
        where that is used up, `RuntimeError` where the refund is closed or the nonce was taken.
        """
        ...

    async def end(self, payment_id: int, tx_hash: str, *, now: float) -> bool:
        """Payment `refunded`; False where it is closed already."""
        ...

    async def fail(self, payment_id: int, problem: str, *, now: float) -> bool:
        """Payment `refund_failed`: the operator has to look; False where it is closed already."""
        ...

    async def note_problem(self, payment_id: int, problem: str | None) -> None:
        """Keep why a refund is not sent yet."""
        ...

    async def unclaimed(self, transfers: Sequence[MinedTransfer]) -> list[MinedTransfer]:
        """Return the transfers that paid for nothing."""
        ...
