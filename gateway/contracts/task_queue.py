"""What the durable queue of tasks promises to workers."""

from collections.abc import Sequence
from typing import Literal, Protocol

import attrs

from gateway.domain import GenerationRequest, Handle, StoredResult

CostSource = Literal["told", "set", "table"]


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

    # Of the HTTP request that bought the task; None for tasks of earlier releases.
    request_id: str | None = None


@attrs.frozen(kw_only=True)
class Cost:
    """What one generation cost the operator."""

    # In 10⁻⁶ US dollars.
    micros: int

    # Told by the vendor, set by the operator, or of the adapter's table of models.
    source: CostSource


class TaskQueue(Protocol):
    """Tasks that wait, are worked on, or have just ended. Each method is one write.

    In docs/payments.md `claim` is T4, and `complete` and `fail` are T5.
    """

    async def claim(
        self, limit: int, *, lease_s: float, now: float, resting: Sequence[str] = ()
    ) -> list[Lease]:
        """Lease the longest-due tasks. Each lease counts as an attempt unless a job is under way.

        A task that is not completed, failed or retried within `lease_s` seconds is due again: its
        worker has died. Of the slugs in `resting`, only tasks that were submitted already are
        leased.

        On a database that nodes share, its own clock decides; `now`, the node's, is only compared
        with it. A node whose clock is off gets no lease.
        """
        ...

    async def begin_submit(self, lease: Lease, *, now: float) -> bool:
        """Write down that a submit is about to go out. Returns False if the lease was lost."""
        ...

    async def save_handle(self, lease: Lease, handle: Handle) -> bool:
        """Write down the job that a submit has begun. Returns False if the lease was lost."""
        ...

    async def complete(
        self,
        lease: Lease,
        result: StoredResult,
        *,
        expires_at: float,
        now: float,
        cost: Cost | None = None,
        provider: str | None = None,
    ) -> bool:
        """Write the result down, so that it can be seen. Returns False if the lease was lost.

        `provider` is who generated; a `cost` of None is not known.
        """
        ...

    async def fail(
        self,
        lease: Lease,
        *,
        details: str,
        error: str,
        now: float,
        reason: str | None = None,
        provider: str | None = None,
    ) -> bool:
        """Write down that the task failed and its refund is due.

        The buyer reads `error`; `reason` is for the operator, in the vendor's words. Returns False
        if the lease was lost.
        """
        ...

    async def retry(self, lease: Lease, *, delay_s: float, now: float, costs_attempt: bool) -> bool:
        """End a lease. The task is submitted anew after `delay_s`, and its job is forgotten.

        Returns False if the lease was lost.
        """
        ...

    async def give_back(self, lease: Lease) -> bool:
        """End a lease at no cost. The task goes on where it was left, before younger tasks.

        Returns False if the lease was lost.
        """
        ...

    async def extend(
        self,
        lease: Lease,
        *,
        lease_s: float,
        now: float,
        progress: float | None,
        note: str | None = None,
    ) -> bool:
        """Let a lease end `lease_s` from now, and write progress down.

        Returns False if the lease was lost.
        """
        ...

    async def recover(self, *, now: float) -> int:
        """Make due now what this node had leased, at its start: the workers of these leases died.

        Returns how many tasks that were.
        """
        ...

    async def next_due(self, resting: Sequence[str] = (), *, now: float) -> float | None:
        """Return when the next task is due, by the clock of `now`; None if no task waits.

        `resting` is as in `claim`. A node whose clock is off has nothing to wait for.
        """
        ...

    async def depth(self) -> dict[str, int]:
        """Return how many unfinished tasks are in each status; cheap however many have ended."""
        ...
