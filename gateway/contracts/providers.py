"""What a provider promises, and what it is given."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from gateway.domain import Endpoint, GenerationRequest, Handle, Pending, Result

Clock = Callable[[], float]
"""Returns Unix seconds; production passes `time.time`, tests what they like."""


class Job(Protocol):
    """What a provider may know and tell about the attempt it works on."""

    task_id: str
    attempt: int  # 1 to 4
    endpoint: Endpoint

    async def progress(self, fraction: float, note: str = "") -> None:
        """Show in the task how far this attempt is, 0 to 1; the note is for the operator."""
        ...

    async def save(self, handle: Handle) -> None:
        """Write a handle down; when this returns, it survives the loss of the machine.

        A `submit` that returns a handle needs not call it. One that stays and waits itself must,
        before its first poll: after a restart the gateway polls this handle and never submits.
        """
        ...


class Provider(Protocol):
    """Generates. One object serves every endpoint it was registered with.

    This much is enough for an API that answers with the result. Whatever more it can do is a
    method of `Validating`, `Polling`, `Cancelling`, `Probing` or `Closing`; an attribute
    `traits` (`gateway.Traits`) tells its limits, one `notes` (sentences) what the operator should
    know of how it is set up.
    """

    name: str

    async def submit(self, request: GenerationRequest, job: Job) -> Result | Handle:
        """Generate once, or begin a job and return its handle.

        Raises `Transient` (one of the retries), `RateLimited` (waits, costs none),
        `InvalidInput` or `ContentPolicy` (fails at once), `AccountProblem` (the same, and off
        sale), `SubmitUncertain` (never sent again). Anything else counts as transient.
        """
        ...


@runtime_checkable
class Validating(Protocol):
    """A provider that looks at requests before anybody pays."""

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse, before anybody pays, a request that is doomed; cheap, and writes nothing.

        Raises `InvalidInput` with a sentence for the caller.
        """
        ...


@runtime_checkable
class Polling(Protocol):
    """A provider whose `submit` may return a handle."""

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:
        """Ask once what became of a job; the gateway asks again after `Pending`.

        Whatever fails here is asked again, and never submits. Only what the API says about the
        job itself ends it: `JobFailed` (one of the retries), `ContentPolicy`, `InvalidInput`,
        `HandleLost` (fails at once).
        """
        ...


@runtime_checkable
class Cancelling(Protocol):
    """A provider that can stop a job."""

    async def cancel(self, handle: Handle) -> None:
        """Stop a job that took too long; returns once the API has said so, else raises."""
        ...


@runtime_checkable
class Probing(Protocol):
    """A provider that can be asked whether it works, at no cost."""

    async def health(self) -> None:
        """Return where the next submit would be taken; cheap, and never billed.

        Raises `AccountProblem` where the operator must act, anything else where it is down.
        """
        ...


@runtime_checkable
class Closing(Protocol):
    """A provider that keeps something open."""

    async def close(self) -> None:
        """Let go of it; called once, when the gateway stops."""
        ...
