"""What the refund ledger promises: it writes down decisions, sending, and how refunds end."""

from collections.abc import Sequence
from typing import Protocol

from gateway.contracts.payments import SignedTransaction, UnsignedTransaction
from gateway.domain import Decision, MinedTransfer, PaymentState, RefundCase


class RefundLedger(Protocol):
    """Refunds from due to paid. Each method is one write, durable when it returns."""

    async def cases(self, *states: PaymentState) -> list[RefundCase]:
        """Return the refunds in these states, oldest first. Without states, return all."""
        ...

    async def case(self, task_id: str) -> RefundCase | None:
        """Return the refund of a task, or None."""
        ...

    async def case_of(self, payment_id: int) -> RefundCase | None:
        """Return the refund of a payment, or None."""
        ...

    async def decide(
        self, task_id: str, decision: Decision, *, recipient: str | None, note: str, now: float
    ) -> RefundCase:
        """Write down the operator's decision. `recipient` replaces the payer's address, if given.

        Raises `RefundRefused` if the refund is being sent or is paid.
        """
        ...

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
        """Write down payment `refunding`, the signed transaction and its nonce, before it is sent.

        An unsigned transaction gets the first free nonce. Returns what is to be sent.
        A refund without an approval counts against `cap_units` in 24 hours. Raises
        `RefundRefused` if the cap is used up, and `RuntimeError` if the refund is closed, was begun
        by another key, goes to another address meanwhile, or if the nonce was taken. A `cap_units`
        of None says that an approval sends it: `RuntimeError` if the approval was taken back.
        """
        ...

    async def sent_automatically(self, *, now: float) -> int:
        """Return the units of the refunds without an approval that began in the last 24 hours."""
        ...

    async def end(self, payment_id: int, tx_hash: str, *, now: float) -> bool:
        """Write down payment `refunded`. Returns False if the refund is closed already."""
        ...

    async def fail(self, payment_id: int, problem: str, *, now: float) -> bool:
        """Write down payment `refund_failed`, so that the operator looks at the problem.

        Returns False if the refund is closed already.
        """
        ...

    async def note_problem(self, payment_id: int, problem: str | None) -> None:
        """Write down why a refund is not sent yet."""
        ...

    async def unclaimed(self, transfers: Sequence[MinedTransfer]) -> list[MinedTransfer]:
        """Return the transfers that paid for no task."""
        ...
