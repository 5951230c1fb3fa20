"""What the store promises about payers: their open payments, and settlements they made fail."""

from typing import Protocol

import attrs

from gateway.contracts.payments import SignedTransaction
from gateway.domain import Payment


@attrs.frozen(kw_only=True)
class ReserveLimits:
    """What `Store.reserve` checks in its own write, so that two purchases at once cannot both pass.

    `most_open` is None for a payment that is on the chain already: it costs no gas, needs no
    balance and waits for no settlement, so none of the limits is checked.
    """

    held_file_bytes: int
    most_open: int | None = None
    balance_units: int = 0


class PayerBusy(Exception):
    """The payer has as many open payments as it may have. Nothing was written down."""


@attrs.frozen(kw_only=True)
class OpenPayments:
    """How many payments a payer has open, their sum in units, and how many were settled."""

    count: int
    units: int
    settled: int


@attrs.frozen(kw_only=True)
class FailedSettlement:
    """A settlement of ours that reverted in a block, so the payment was not made."""

    payer: str
    tx_hash: str
    at: float
    failure: str
    """`wallet`, `spent`, `drained`, or `unexplained`."""
    fee_wei: int


class PayerRecords(Protocol):
    """What payers have open, and what their failed settlements cost. Each method is one write."""

    async def open_of(self, payer: str, *, now: float) -> OpenPayments:
        """Return the payer's x402 payments of unknown outcome."""
        ...

    async def failure_of(self, payer: str, *, since: float) -> FailedSettlement | None:
        """Return the newest failure since `since` (Unix seconds) that bars a payer, or None.

        A failure counts until the payment is settled after all, or the operator lifts it. An
        `unexplained` failure bars no payer.
        """
        ...

    async def failures(self, *, since: float) -> list[FailedSettlement]:
        """Return the newest failure of each barred payer, newest first."""
        ...

    async def lift(self, payer: str, *, note: str, now: float) -> None:
        """End the bar of a payer: failures up to `now` no longer count."""
        ...

    async def unjudged(self) -> list[tuple[Payment, SignedTransaction]]:
        """Return our mined settlements of unpaid payments, if their receipt was not judged yet."""
        ...

    async def judge(self, transaction: SignedTransaction, failure: FailedSettlement | None) -> None:
        """Note what the receipt of a transaction showed. Its nonce is not judged again."""
        ...
