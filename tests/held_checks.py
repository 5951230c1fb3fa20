"""Two requests with one payment: the first waits in its checks while the second is refused."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import attrs

from gateway.telemetry import signals
from tests.patience import until


@attrs.define
class HeldChecks:
    """A provider whose first check of a request waits until it is let go."""

    provider: Any
    is_waiting: asyncio.Event = attrs.field(factory=asyncio.Event)
    may_go_on: asyncio.Event = attrs.field(factory=asyncio.Event)
    refusals: list[str] = attrs.field(factory=list)

    async def validate(self, request, endpoint) -> None:
        if not self.is_waiting.is_set():
            self.is_waiting.set()
            await self.may_go_on.wait()

    async def refuse(self, second: Callable[[], Awaitable[Any]]) -> asyncio.Task:
        """Start the second request; return it once its payment is refused, answered or not."""
        asked = asyncio.ensure_future(second())
        await until(lambda: self.refusals)
        # Time to answer, if it does not wait for the first.
        await asyncio.wait({asked}, timeout=0.2)
        return asked


@contextlib.asynccontextmanager
async def first_held(provider, first: Callable[[], Awaitable[Any]]) -> AsyncIterator[Any]:
    """Start the first request, and yield (the request, `HeldChecks`) once it is in its checks."""
    held = HeldChecks(provider)

    def note(_, code: str, **more) -> None:
        held.refusals.append(code)

    provider.validate = held.validate
    signals.purchase_refused.connect(note)
    asked = asyncio.ensure_future(first())
    try:
        await held.is_waiting.wait()
        yield asked, held
    finally:
        signals.purchase_refused.disconnect(note)
        held.may_go_on.set()
        await asyncio.gather(asked, return_exceptions=True)
