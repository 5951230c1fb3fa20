"""Remembers of each RPC endpoint since when all its answers were refusals or silence."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from gateway.telemetry import signals

# A failure that is older than this says nothing about now.
_STALE_S = 600.0


@attrs.frozen
class _Failing:
    """The first and the newest failure without an answer between them, in the clock's seconds."""

    first: float
    newest: float


class RpcWatch:
    """Notes failures and recoveries of RPC endpoints from its creation on."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        # Only differences count: a wall clock that is put back would make them wrong.
        self._now = now
        self._failing: dict[int, _Failing] = {}
        signals.rpc_failing.connect(self._note)

    def _note(self, _: Any, *, endpoint: int, is_failing: bool) -> None:
        if not is_failing:
            self._failing.pop(endpoint, None)
            return
        now = self._now()
        earlier = self._failing.get(endpoint)
        self._failing[endpoint] = _Failing(earlier.first if earlier else now, now)

    def failing(self) -> Mapping[int, float]:
        """Return by place in the settings for how many seconds an endpoint has only failed."""
        oldest = self._now() - _STALE_S
        return {
            place: one.newest - one.first
            for place, one in self._failing.items()
            if one.newest >= oldest
        }
