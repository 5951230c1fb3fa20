"""Readings of a purchase's check, which its settlement a moment later need not repeat."""

import asyncio
from collections.abc import Callable, Mapping

import attrs

from gateway import Authorization

# Five blocks of Base. What changes later than a check can make a settlement revert, as what changes
# just after a simulation.
FRESH_S = 1.0
_MOST = 2_000


@attrs.frozen
class Reading:
    """Readings beside a simulation: the payer's code, and the mined transactions of keys.

    It is fresh by two clocks: the time of day may be set back, and the steady one stops while a
    machine is suspended.
    """

    is_code: bool
    # By address of a settlement key.
    counts: Mapping[str, int]
    is_fresh: Callable[[], bool]

    def count_of(self, address: str) -> int | None:
        """Return a key's mined transactions; None if they were not read, or once they are old."""
        return self.counts.get(address) if self.is_fresh() else None


def begin_freshness(now: Callable[[], float]) -> Callable[[], bool]:
    """Return a function that is True for the next second. Call this before anything is read."""
    steady = asyncio.get_running_loop().time
    began_at, began_steady = now(), steady()
    return lambda: 0 <= now() - began_at < FRESH_S and steady() - began_steady < FRESH_S


class RecentChecks:
    """Readings by authorization. Each is taken once."""

    def __init__(self) -> None:
        # The newest one comes last.
        self._kept: dict[Authorization, Reading] = {}

    def keep(self, authorization: Authorization, reading: Reading) -> None:
        """Keep a reading until it is taken; the oldest one makes room."""
        self._kept.pop(authorization, None)
        self._kept[authorization] = reading
        if len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]

    def take(self, authorization: Authorization) -> Reading | None:
        """Return and forget an authorization's reading, however old; None if there is none."""
        return self._kept.pop(authorization, None)
