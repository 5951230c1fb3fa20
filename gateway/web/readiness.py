"""Whether the gateway may sell now, and the checks that say what it cannot sell and why."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import attrs

from gateway.contracts import Clock
from gateway.errors import ExecutionError
from gateway.plugins.catalog import Catalog
from gateway.settings import Settings

# Anybody may ask for the checks. Questions cost at most one round of checks in this time.
KEPT_S = 5.0


@attrs.define
class Readiness:
    """Whether anything may be sold now; routes and payments share it."""

    settings: Settings
    catalog: Catalog
    is_draining: bool = False

    def free_disk_mb(self) -> float:
        """Return the megabytes (10⁶ bytes) free in the data folder."""
        return shutil.disk_usage(self.settings.data_dir).free / 10**6

    def check_serving(self, slug: str) -> None:
        """Raise `ExecutionError` where the gateway or the endpoint's provider cannot serve."""
        if self.is_draining:
            raise ExecutionError(
                "The gateway is restarting; nothing was charged. Try again in a minute."
            )
        if self.free_disk_mb() < self.settings.min_free_disk_mb:
            raise ExecutionError(
                "The gateway's disk is nearly full; nothing was charged. Try again later."
            )
        if self.catalog[slug].upstream.circuit.is_open:
            raise ExecutionError(
                "This endpoint's provider does not work now; nothing was charged. Try again later."
            )


@attrs.frozen(kw_only=True)
class Check:
    """The result of one check.

    `stops` names what is not sold while the check fails. `summary` says what is wrong in a fixed
    sentence, which strangers may read. `problem` says what was found; it may quote a vendor or an
    RPC endpoint, so only the operator reads it.
    """

    name: str
    ok: bool
    stops: str
    summary: str
    problem: str = ""

    def for_strangers(self) -> dict[str, Any]:
        """Return the row that everybody may read."""
        return self._make_row(self.summary)

    def for_operator(self) -> dict[str, Any]:
        """Return the row with what was found."""
        return self._make_row(self.problem or self.summary)

    def _make_row(self, problem: str) -> dict[str, Any]:
        shown = None if self.ok else problem
        return {"name": self.name, "ok": self.ok, "stops": self.stops, "problem": shown}


class SharedChecks:
    """Runs the checks that ask others; all callers within `kept_s` seconds share one round."""

    def __init__(self, now: Clock, *, kept_s: float = KEPT_S) -> None:
        self.kept_s = kept_s
        self._now = now
        self._checks: Sequence[Check] = ()
        self._made_at = float("-inf")
        self._round: asyncio.Task[None] | None = None

    async def get(self, make: Callable[[], Awaitable[Sequence[Check]]]) -> Sequence[Check]:
        """Return the last round's checks if it is recent, else those of a round that runs now.

        The round goes on when a caller hangs up. Otherwise callers that hang up again and again
        would start a round each time.
        """
        if not 0 <= self._now() - self._made_at < self.kept_s:
            if self._round is None:
                self._round = asyncio.create_task(self._run_round(make), name="readiness")
                self._round.add_done_callback(self._end_round)
            await asyncio.shield(self._round)
        return self._checks

    async def _run_round(self, make: Callable[[], Awaitable[Sequence[Check]]]) -> None:
        self._checks = await make()
        self._made_at = self._now()

    def _end_round(self, task: asyncio.Task[None]) -> None:
        self._round = None
        if not task.cancelled():
            # Where every caller hung up, asyncio complains about an exception that was never read.
            task.exception()

    async def close(self) -> None:
        """Stop the round that runs now."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.wait({self._round})
