"""What the store takes and returns about tasks: new ones, leases, costs, and jobs at providers."""

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
