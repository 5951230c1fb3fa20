"""The checks of readiness that ask somebody else: made once for all callers, then kept a while."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs

from gateway.contracts import Clock

KEPT_S = 5.0  # a stranger's questions cost at most one round of checks in so long


@attrs.frozen(kw_only=True)
class Check:
    """One thing that selling depends on."""

    name: str
    ok: bool
    stops: str  # what is not sold while it is not ok
    summary: str  # what is wrong, for strangers: a fixed sentence
    problem: str = ""  # what is wrong, for the operator: may quote a vendor or an endpoint

    def for_strangers(self) -> dict[str, Any]:
        """Return the row that everybody may read."""
        return self._row(self.summary)

    def for_operator(self) -> dict[str, Any]:
        """Return the row with what was found."""
        return self._row(self.problem or self.summary)

    def _row(self, problem: str) -> dict[str, Any]:
        told = None if self.ok else problem
        return {"name": self.name, "ok": self.ok, "stops": self.stops, "problem": told}


class SharedChecks:
    """Makes checks at most once at a time and once in `KEPT_S`, however many callers ask."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._checks: Sequence[Check] = ()
        self._made_at = float("-inf")
        self._making: asyncio.Task[None] | None = None

    async def get(self, make: Callable[[], Awaitable[Sequence[Check]]]) -> Sequence[Check]:
        """Return the checks of the last seconds, or those that are being made now.

        A caller that hangs up ends no round: it would cost as many rounds as it hangs up.
        """
        if not 0 <= self._now() - self._made_at < KEPT_S:
            if self._making is None:
                self._making = asyncio.create_task(self._make(make), name="readiness")
                self._making.add_done_callback(self._made)
            await asyncio.shield(self._making)
        return self._checks

    async def _make(self, make: Callable[[], Awaitable[Sequence[Check]]]) -> None:
        self._checks = await make()
        self._made_at = self._now()

    def _made(self, task: asyncio.Task[None]) -> None:
        self._making = None
        if not task.cancelled():
            # Read, or asyncio complains where every caller has hung up.
            task.exception()

    async def close(self) -> None:
        """Stop the round that is under way."""
        if self._making is not None:
            self._making.cancel()
            await asyncio.wait({self._making})
