"""Records that the store takes and returns: tasks, leases, payers, and changes of endpoints."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import attrs

from gateway.domain import Endpoint, GenerationRequest, Handle, show_note

# A row of `gateway check`: its name, and a check that returns a sentence or raises an error.
CheckRow = tuple[str, Callable[[], Awaitable[str]]]
CostSource = Literal["told", "set", "table"]
AttemptOutcome = Literal["failed", "put_off", "stopped", "died"]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class NewTask:
    """A new task, as the store records it when its payment is accepted."""

    id: str
    endpoint: Endpoint
    request: GenerationRequest
    request_hash: str
    price_units: int
    created_at: float
    # Hash of the request without the endpoint's defaults, if known.
    sent_hash: str | None = None
    # Id of the HTTP request that bought the task, as in its log lines.
    request_id: str = ""
    # The fallback that makes it, if the bought endpoint does not.
    maker: Endpoint | None = None
    # Whether the task names the model that makes it. With a maker it always does.
    names_model: bool = False


@attrs.frozen(kw_only=True)
class AttemptRecord:
    """A lease of a task that ended without the task's end. Times are Unix seconds.

    `failed` counts as an attempt. The others do not: `put_off` by a vendor or a short machine,
    `stopped` with the gateway, and `died`, if the lease expired or its process had ended.
    """

    # Of the attempt. A lease that did not count shares it with the next one.
    number: int
    # None: leased by an earlier release.
    begun_at: float | None
    # When it was noticed, if the process died.
    ended_at: float
    # An `AttemptOutcome`, or one of a later release.
    outcome: str
    # The reason of a failure.
    details: str | None = None
    # In the vendor's words, or the gateway's.
    message: str | None = None
    # The name of the node; None for the only one.
    node: str | None = None
    # More than one: later ones of the same kind, of which `ended_at` is the last one's.
    times: int = 1


@attrs.frozen(kw_only=True)
class JobRecord:
    """A task's work at its provider, for the operator."""

    # The handle of the task's job.
    handle: Handle | None
    # When the last submit began (Unix seconds). None without one, or if repeating it is safe.
    sent_at: float | None
    # The note on its progress, the provider's or the gateway's.
    note: str | None = attrs.field(converter=show_note)
    # 10⁻⁶ US dollars, and their source: `told`, `set` or `table`.
    cost_micros: int | None
    cost_source: str | None = None
    # The vendor's account that generated; None if none did.
    provider: str | None = None
    # Why the task failed, in the vendor's words.
    reason: str | None = None


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Lease:
    """The right to work on one task until `until`. Times are Unix seconds, by the node's clock."""

    task_id: str
    # Fencing token: the queue refuses a result with another token.
    token: str
    # The endpoint that makes it: the bought one, or its fallback.
    slug: str
    request: GenerationRequest
    attempt: int
    until: float
    # When the first attempt began, and this lease.
    started_at: float
    begun_at: float | None = None
    # The handle of a running job, which is polled instead of submitting again.
    handle: Handle | None = None
    # When a submit began whose outcome was never recorded.
    sent_at: float | None = None
    # Deaths of the gateway during attempts at this task, since the last that ended.
    restarts: int = 0
    # Lone attempts after such a death, including this one. 0: others run beside it.
    lone_runs: int = 0
    payment_id: int | None = None
    # Id of the HTTP request that bought the task, if any.
    request_id: str | None = None
    # The name of the node; None for the only one.
    node: str | None = None
    # Leases that ended before, oldest first.
    ended: tuple[AttemptRecord, ...] = ()
    # The endpoint that was bought, if a fallback makes it.
    sold_as: str | None = None

    @property
    def bought(self) -> str:
        """The slug of the endpoint that was bought."""
        return self.slug if self.sold_as is None else self.sold_as


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Cost:
    """The operator's cost of one generation."""

    # In 10⁻⁶ US dollars.
    micros: int
    # Reported by the vendor, set by the operator, or from the adapter's table of models.
    source: CostSource


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ReserveLimits:
    """Limits that `reserve` checks in its own write, so that concurrent purchases cannot both pass.

    `most_open` is None for a payment that is on-chain already: it needs no gas, balance or
    settlement, so none of the limits applies.
    """

    held_file_bytes: int
    most_open: int | None = None
    balance_units: int = 0
    barred_since: float | None = None
    """A failure of the payer after this time (Unix seconds) bars it; None: no check."""
    deployments: "DeploymentLimit | None" = None
    """Set if the settlement deploys the payer's wallet."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DeploymentLimit:
    """How many settlements since `since` (Unix seconds) may deploy their payer's wallet."""

    most: int
    since: float


class PayerBusy(Exception):
    """The payer may not open another payment now; nothing was written."""


@attrs.frozen(kw_only=True)
class OpenPayments:
    """A payer's open payments, and its number of settled ones."""

    count: int
    units: int
    settled: int


@attrs.frozen(kw_only=True)
class FailedSettlement:
    """A settlement of the gateway that was mined and reverted."""

    payer: str
    tx_hash: str
    at: float
    failure: str
    """`wallet`, `spent` and `drained` are the payer's fault. `late`: mined after it had expired.
    `burned`: a batch in which some payer used up gas. `unexplained`: no evidence for any.
    """
    fee_wei: int


@attrs.frozen(kw_only=True)
class EarlierPrice:
    """An endpoint's previous price, whose 402s are still valid."""

    # None: the price of the settings file.
    price_units: int | None
    # Unix seconds.
    good_until: float
    # Prices that were set apart, by the names of `pricing.more_prices`.
    more_units: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class EndpointChange:
    """An operator's changes of an endpoint, which override the settings file."""

    # Unix seconds of the newest change, which may be a reversal.
    changed_at: float
    # Unix seconds; None: it is on sale.
    paused_since: float | None = None
    pause_reason: str = ""
    # None: as in the settings file.
    price_units: int | None = None
    # Prices by resolution or pages that were set apart; the others follow `price_units`.
    more_units: Mapping[str, int] = attrs.field(factory=dict)
    cost_micros: int | None = None
    earlier_prices: tuple[EarlierPrice, ...] = ()
    # The slug of the endpoint that makes its orders while its own vendor fails; None: none does.
    fallback: str | None = None
