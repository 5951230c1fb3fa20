"""What the store promises about payers: what they have open, and settlements they made fail."""

from typing import Protocol

import attrs

from gateway.contracts.payments import SignedTransaction
from gateway.domain import Payment


@attrs.frozen(kw_only=True)
class ReserveLimits:
    """What `Store.reserve` checks in its own write, so that two purchases at once cannot both pass.

    `most_open` is None for a payment that is on the chain already: it burns no gas, needs no
    balance and waits for no settlement, so none of them holds.
    """

    held_file_bytes: int
    most_open: int | None = None
    balance_units: int = 0
    barred_since: float | None = None
    """A failure of the payer after this moment, in unix seconds, bars it; None looks for none."""


class PayerBusy(Exception):
    """The payer may have no further payment now, as its records are; nothing was written down."""


@attrs.frozen(kw_only=True)
class OpenPayments:
    """What a payer has open, and how often it has paid."""

    count: int
    units: int
    settled: int


@attrs.frozen(kw_only=True)
class FailedSettlement:
    """A settlement of ours that reverted in a block and did not pay."""

    payer: str
    tx_hash: str
    at: float
    failure: str
    """`wallet`, `spent` and `drained` are the payer's doing. `late`: mined after it had expired.
    `burned`: a batch of which some payer used up gas. `unexplained`: none of these is shown.
    """
    fee_wei: int


class PayerRecords(Protocol):
    """What payers have open, and what their failures cost. Each method is one transaction."""

    async def open_of(self, payer: str, *, now: float) -> OpenPayments:
        """Return the payer's x402 payments of unknown outcome."""
        ...

    async def failure_of(self, payer: str, *, since: float) -> FailedSettlement | None:
        """Return the newest failure that bars a payer from x402; None where there is none.

        A failure counts until the payment is settled after all, or the operator lifts it; only
        a cause that is the payer's bars it.
        """
        ...

    async def failures(self, *, since: float) -> list[FailedSettlement]:
        """Return the newest failure of each payer that is barred, newest first."""
        ...

    async def lift(self, payer: str, *, note: str, now: float) -> None:
        """Forgive a payer what failed up to now."""
        ...

    async def unjudged(self) -> list[tuple[Payment, SignedTransaction]]:
        """Return our mined settlements whose receipt was not looked at, whether paid or not.

        A batch comes with each of its unpaid payments.
        """
        ...

    async def unjudged_batches(self) -> list[SignedTransaction]:
        """Return our mined batches whose receipt was not looked at, whatever was paid."""
        ...

    async def judge(
        self,
        transaction: SignedTransaction,
        failure: FailedSettlement | None,
        payment_id: int | None = None,
    ) -> None:
        """Note what a receipt said of a transaction; its nonce is not looked at again.

        For a transaction of several payments it says that of `payment_id` only.
        """
        ...
