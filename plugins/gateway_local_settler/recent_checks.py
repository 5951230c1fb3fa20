"""Readings of a purchase's check, which its settlement a moment later need not repeat."""

from collections.abc import Callable, Mapping

import attrs

from gateway import Authorization

# Five blocks of Base. What changes later than a check can make a settlement revert, as what changes
# just after a simulation.
FRESH_S = 1.0
_MOST = 2_000


@attrs.frozen
class Reading:
    """The mined transactions of settlement keys by address, read beside a simulation."""

    # Unix seconds, before both were asked.
    at: float
    counts: Mapping[str, int]


class RecentChecks:
    """Readings by authorization. Each is taken once, and only while it is fresh."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        # The newest one comes last.
        self._kept: dict[Authorization, Reading] = {}

    def keep(self, authorization: Authorization, reading: Reading) -> None:
        """Keep a reading until it is taken; the oldest one makes room."""
        self._kept.pop(authorization, None)
        self._kept[authorization] = reading
        if len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]

    def take(self, authorization: Authorization) -> Reading | None:
        """Return and forget an authorization's reading; None if it is too old or there is none."""
        reading = self._kept.pop(authorization, None)
        is_fresh = reading is not None and 0 <= self._now() - reading.at < FRESH_S
        return reading if is_fresh else None
