"""What a provider promises, and what it is given."""

from collections.abc import Callable
from typing import Protocol

import attrs

from gateway.domain import (
    Endpoint,
    GenerationRequest,
    Result,
)

Clock = Callable[[], float]
"""Returns Unix seconds; production passes `time.time`, tests what they like."""


class Job(Protocol):
    """What a provider may know and tell about the attempt it works on."""

    task_id: str
    attempt: int  # 1 to 4
    endpoint: Endpoint

    async def progress(self, fraction: float) -> None:
        """Show in the task how far this attempt is, 0 to 1."""
        ...


class Provider(Protocol):
    """Generates. One object serves every endpoint it was registered with.

    A method `close`, plain or async, is called where there is one when the gateway stops.
    """

    name: str

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse, before anybody pays, a request that is doomed; cheap, and writes nothing.

        Raises `InvalidInput` with a sentence for the caller.
        """
        ...

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Generate once.

        Raises `Transient` (one of the retries), `RateLimited` (waits, costs none),
        `InvalidInput` or `ContentPolicy` (fails at once), `AccountProblem` (the same; the operator
        must act), `SubmitUncertain` (never sent again). Anything else counts as transient.
        """
        ...


@attrs.define
class Registered:
    """An endpoint on sale, with its provider and the plugin it came from."""

    endpoint: Endpoint
    provider: Provider
    plugin: str
