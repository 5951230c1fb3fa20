"""What a provider promises, and what the gateway gives it."""

from collections.abc import Awaitable, Callable
from typing import Protocol, runtime_checkable

from gateway.domain import Endpoint, GenerationRequest, Handle, Pending, Result

Clock = Callable[[], float]
"""Returns Unix seconds. Production passes `time.time`; a test may pass another function."""


class Job(Protocol):
    """What a provider may read and report about the attempt that it works on."""

    task_id: str

    # 1 to 4.
    attempt: int
    endpoint: Endpoint

    async def progress(self, fraction: float, note: str = "") -> None:
        """Show in the task how far this attempt is, from 0 to 1. The note is for the operator."""
        ...

    async def save(self, handle: Handle) -> None:
        """Write a handle down. When this returns, the handle survives the loss of the machine.

        A `submit` that returns a handle need not call `save`. A `submit` that waits for the job
        itself must call it before its first poll: after a restart the gateway polls this handle
        and never submits again.
        """
        ...


class Provider(Protocol):
    """Generates. One object serves every endpoint that it was registered with.

    `name` and `submit` suffice for an API that answers with the result. A provider that can do
    more has the method of `Validating`, `Polling`, `Cancelling`, `Probing` or `Closing` too. The
    optional attribute `traits` (`gateway.Traits`) holds its limits; the optional attribute `notes`
    (sentences) tells the operator about its set-up.
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
        """Refuse a request that would fail, before payment. Cheap, and writes nothing.

        A plain function will do where the check waits for nothing; each 402 is cheaper by it.
        A request with a file that passed is not checked again when its sender repeats it within
        five minutes, as buyers do to pay.
        Raises `InvalidInput` with a sentence for the buyer.
        """
        ...


@runtime_checkable
class Polling(Protocol):
    """A provider whose `submit` may return a handle."""

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:
        """Ask once what became of a job. The gateway asks again after `Pending`.

        After any other error the gateway polls again, and never submits. Only what the API says
        about the job itself ends the job: `JobFailed` (costs a retry), and `ContentPolicy`,
        `InvalidInput` or `HandleLost` (the task fails at once).
        """
        ...


@runtime_checkable
class Cancelling(Protocol):
    """A provider that can stop a job."""

    async def cancel(self, handle: Handle) -> None:
        """Stop a job that took too long. Returns once the API has confirmed it, else raises."""
        ...


@runtime_checkable
class Probing(Protocol):
    """A provider that can be asked at no cost whether it works."""

    async def health(self) -> None:
        """Return if the API would accept the next submit. Cheap, and never billed.

        Raises `AccountProblem` if the operator must act, and anything else if the API is down.
        """
        ...


@runtime_checkable
class Closing(Protocol):
    """A provider that holds a resource open."""

    async def close(self) -> None:
        """Release the resource. Called once, when the gateway stops."""
        ...
