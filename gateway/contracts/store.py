"""Records that the store takes and returns: tasks, leases, payers, and changes of endpoints."""

from collections.abc import Awaitable, Callable
from typing import Literal

import attrs

from gateway.domain import Endpoint, GenerationRequest, Handle

# A row of `gateway check`: its name, and what returns a sentence or raises what is wrong.
CheckRow = tuple[str, Callable[[], Awaitable[str]]]
CostSource = Literal["told", "set", "table"]


@attrs.frozen(kw_only=True)
class NewTask:
    """What the store writes down about a task when its payment is accepted."""

    id: str
    endpoint: Endpoint
    request: GenerationRequest
    request_hash: str
    price_units: int
    created_at: float

    # Of the HTTP request that bought the task, as its log lines carry it.
    request_id: str = ""


@attrs.frozen(kw_only=True)
class JobRecord:
    """What the operator may want to know about a task's work at its provider."""

    # The handle of the task's job.
    handle: Handle | None

    # When the last submit began (Unix seconds). None if none was begun, or if sending it again
    # does no harm.
    sent_at: float | None

    # The provider's note on its progress.
    note: str | None

    # 10⁻⁶ US dollars, and how that is known: `told`, `set` or `table`.
    cost_micros: int | None
    cost_source: str | None = None

    # The vendor's account that generated; None if none did.
    provider: str | None = None

    # Why the task failed, in the vendor's words.
    reason: str | None = None


@attrs.frozen(kw_only=True)
class Lease:
    """The right to work on one task until `until`. Times are Unix seconds, by the node's clock."""

    task_id: str

    # The queue refuses a result under another token (fencing).
    token: str
    slug: str
    request: GenerationRequest
    attempt: int
    until: float

    # When the first attempt began.
    started_at: float

    # The handle of a job that was begun. The job is polled, and nothing is submitted.
    handle: Handle | None = None

    # When a submit was begun whose end was never written down.
    sent_at: float | None = None
    payment_id: int | None = None

    # Of the HTTP request that bought the task; None if it had no id.
    request_id: str | None = None


@attrs.frozen(kw_only=True)
class Cost:
    """What one generation cost the operator."""

    # In 10⁻⁶ US dollars.
    micros: int

    # Told by the vendor, set by the operator, or of the adapter's table of models.
    source: CostSource


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


@attrs.frozen(kw_only=True)
class EarlierPrice:
    """A price that an endpoint had a moment ago, whose 402s are still good."""

    # None: the price of the settings file.
    price_units: int | None

    # Unix seconds.
    good_until: float


@attrs.frozen(kw_only=True)
class EndpointChange:
    """What was changed about an endpoint, above the settings file."""

    # Unix seconds of the newest change, one that takes another back included.
    changed_at: float

    # Unix seconds; None: it sells.
    paused_since: float | None = None
    pause_reason: str = ""

    # None: as the settings file says.
    price_units: int | None = None
    cost_micros: int | None = None
    earlier_prices: tuple[EarlierPrice, ...] = ()
