"""Providers, and the job that the gateway passes to them."""

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from gateway.domain import Endpoint, GenerationRequest, Handle, Pending, Result

Clock = Callable[[], float]
"""Returns Unix seconds. Production passes `time.time`; a test may pass another function."""


class Job(Protocol):
    """The current attempt at a task."""

    task_id: str
    # 1 to 4.
    attempt: int
    endpoint: Endpoint

    async def progress(self, fraction: float, note: str = "") -> None:
        """Set the task's progress, from 0 to 1. The note is for the operator."""
        ...

    async def save(self, handle: Handle) -> None:
        """Store a handle durably.

        A `submit` that returns a handle need not call `save`. A `submit` that waits for the job
        itself must call it before its first poll: after a restart the gateway polls this handle
        and never submits again.
        """
        ...


class Provider(Protocol):
    """Generates results for every endpoint that it was registered with.

    `name` and `submit` suffice for an API that responds with the result. Optional methods are those
    of `Validating`, `Polling`, `Cancelling`, `Probing` and `Closing`. The optional attribute
    `traits` (`gateway.Traits`) has its limits; the optional attribute `notes` (sentences) describes
    its set-up to the operator.
    """

    name: str

    async def submit(self, request: GenerationRequest, job: Job) -> Result | Handle:
        """Generate once, or begin a job and return its handle.

        Raises `Transient` (costs a retry), `RateLimited` (waits, costs no retry), `InvalidInput`
        or `ContentPolicy` (the task fails at once), `AccountProblem` (the same, and the endpoint
        goes off sale), `SubmitUncertain` (never sent again). Any other exception counts as
        `SubmitUncertain`.
        """
        ...


@runtime_checkable
class Validating(Protocol):
    """A provider that checks requests before payment."""

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> Awaitable[None] | None:
        """Refuse a request that would fail, before payment. Cheap, and without side effects.

        Use a plain function if it awaits nothing: that makes each 402 cheaper.
        If a request with a file has passed, its repetition by the same client within five minutes,
        usually with the payment, is not checked again.
        Raises `InvalidInput` with a sentence for the buyer.
        """
        ...


@runtime_checkable
class Polling(Protocol):
    """A provider whose `submit` may return a handle."""

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:
        """Poll a job once. The gateway polls again after `Pending`.

        Raise these errors only if the API reports that the job has ended: `JobFailed` (costs a
        retry), and `ContentPolicy`, `InvalidInput` or `HandleLost` (the task fails at once). After
        any other error the gateway polls again, and never submits.
        """
        ...


@runtime_checkable
class Cancelling(Protocol):
    """A provider that can stop a job."""

    async def cancel(self, handle: Handle) -> None:
        """Stop a job that took too long; raises unless the API confirms it."""
        ...


@runtime_checkable
class Probing(Protocol):
    """A provider with a free health check."""

    async def health(self) -> None:
        """Return if the API would accept the next submit. Cheap, and never billed.

        Raises `AccountProblem` if the operator must act, and anything else if the API is down.
        """
        ...


@runtime_checkable
class Closing(Protocol):
    """A provider with resources to release."""

    async def close(self) -> None:
        """Release the resources. Called once, when the gateway stops."""
        ...
