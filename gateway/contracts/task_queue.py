"""What the durable queue of tasks promises to the lanes that work on it."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from gateway.domain import GenerationRequest, Handle, StoredResult


@attrs.frozen(kw_only=True)
class Lease:
    """The right to work on one task until `until`."""

    task_id: str
    token: str  # a result under another token is refused (fencing)
    slug: str
    request: GenerationRequest
    attempt: int
    until: float
    started_at: float  # of the first attempt
    handle: Handle | None = None  # of a job that was begun: it is polled, nothing is submitted
    sent_at: float | None = None  # a submit was begun then, and nobody wrote down how it ended


class TaskQueue(Protocol):
    """Tasks that wait, are worked on, or have just ended; each method is one transaction.

    The names T4 and T5 are those of docs/payments.md.
    """

    async def claim(
        self, limit: int, *, lease_s: float, now: float, resting: Sequence[str] = ()
    ) -> list[Lease]:
        """T4: hand out the longest-due tasks; `attempt` counts this claim unless a job is on.

        A task neither completed, failed nor retried within `lease_s` seconds is due again:
        whoever held it has died. Of the slugs in `resting`, only what was submitted already is.
        """
        ...

    async def begin_submit(self, lease: Lease, *, now: float) -> bool:
        """Note that a submit is about to go out; False where the lease was lost."""
        ...

    async def save_handle(self, lease: Lease, handle: Handle) -> bool:
        """Note the job that a submit has begun; False where the lease was lost."""
        ...

    async def complete(
        self,
        lease: Lease,
        result: StoredResult,
        *,
        expires_at: float,
        now: float,
        cost_micros: int | None = None,
    ) -> bool:
        """T5: the result can be seen; False where the lease was lost."""
        ...

    async def fail(self, lease: Lease, *, details: str, error: str, now: float) -> bool:
        """T5: the task failed and its payment is owed back; False where the lease was lost."""
        ...

    async def retry(self, lease: Lease, *, due_at: float, costs_attempt: bool) -> bool:
        """Give a lease back, to be submitted anew from `due_at`; its job, if any, is forgotten."""
        ...

    async def give_back(self, lease: Lease) -> bool:
        """Give a lease back at no cost, to be taken up where it was left, before younger tasks."""
        ...

    async def extend(
        self, lease: Lease, *, until: float, progress: float | None, note: str | None = None
    ) -> bool:
        """Prolong a lease and note progress; False where the lease was lost."""
        ...

    async def recover(self, *, now: float) -> int:
        """Make every leased task due now: at the start, whoever held one has died."""
        ...

    async def next_due(self, resting: Sequence[str] = ()) -> float | None:
        """Return when the next task is due, or None when none waits; `resting` as in T4."""
        ...

    async def depth(self) -> dict[str, int]:
        """Return how many unfinished tasks are in each status; cheap however many have ended."""
        ...
