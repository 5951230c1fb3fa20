"""Tracks RPC endpoints that only fail, and for how long."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from gateway.telemetry import signals

# An older failure has no meaning for the present.
_STALE_S = 600.0


@attrs.frozen
class _Failing:
    """The first and the newest failure without a success between them, in the clock's seconds."""

    first: float
    newest: float


class RpcWatch:
    """Counts failures and recoveries from its creation on."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        # Monotonic: only differences count, and a wall clock may be set back.
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
        """Return by place in the settings the seconds for which an endpoint has only failed."""
        oldest = self._now() - _STALE_S
        return {
            place: one.newest - one.first
            for place, one in self._failing.items()
            if one.newest >= oldest
        }
