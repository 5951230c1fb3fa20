"""What payers have open, and settlements they made fail."""

import attrs


@attrs.frozen(kw_only=True)
class ReserveLimits:
    """What `reserve` checks in its own write, so that two purchases at once cannot both pass.

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
