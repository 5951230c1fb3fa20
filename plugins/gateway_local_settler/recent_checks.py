"""Readings of a purchase's check, which its settlement a moment later need not repeat."""

import asyncio
import itertools
from collections.abc import Callable, Mapping

import attrs

from gateway import Authorization
from gateway.contracts.chain import Chain

# Five blocks of Base. What changes later than a check can make a settlement revert, as what changes
# just after a simulation.
FRESH_S = 1.0
# A payment follows its check within this time, or another process may have submitted it.
KEPT_S = 5.0
_MOST = 2_000


@attrs.frozen(eq=False, repr=False)
class Reading:
    """Readings beside a simulation: the payer's code, and the mined transactions of keys."""

    is_code: bool
    # By address of a settlement key.
    counts: Mapping[str, int]
    is_younger: Callable[[float], bool]
    # Whether the simulation began no earlier than these readings, and counts from any key.
    is_simulated: bool = True
    # Whether no process has submitted the payment yet, as far as is known.
    is_first: Callable[[], bool] = lambda: False
    # Whether the payment has found no free nonce before.
    has_waited: bool = False

    def is_fresh(self) -> bool:
        """Whether the settlement can rely on the simulation, whichever key sends it."""
        return self.is_simulated and self.is_younger(FRESH_S)

    def count_of(self, address: str) -> int | None:
        """Return a key's mined transactions; None if they were not read, or once they are old."""
        return self.counts.get(address) if self.is_fresh() else None


def begin_age(now: Callable[[], float]) -> Callable[[float], bool]:
    """Return a function: is this call fewer seconds ago? Call this before anything is read.

    Two clocks must agree: the time of day may be set back, and the steady one stops while a machine
    is suspended.
    """
    steady = asyncio.get_running_loop().time
    began_at, began_steady = now(), steady()
    return lambda limit_s: 0 <= now() - began_at < limit_s and steady() - began_steady < limit_s


class Submit:
    """A submit relies on its payment's last reading, renewed by each shared simulation."""

    def __init__(self, reading: Reading, now: Callable[[], float]) -> None:
        self.reading = reading
        self._now = now

    async def passes_now(self, authorization: Authorization, chain: Chain) -> bool:
        """Simulate a transfer with other sales; True if it passes and the result is fresh."""
        is_younger = begin_age(self._now)
        if not await chain.simulate_plain(authorization):
            return False
        self.reading = attrs.evolve(self.reading, is_younger=is_younger, is_simulated=True)
        return is_younger(FRESH_S)

    def find_left(self) -> Reading:
        """Return the reading for the next submit, because this one found no free nonce."""
        left = attrs.evolve(self.reading, counts={}, has_waited=True)
        if left.is_fresh():
            return left
        return attrs.evolve(left, is_younger=begin_age(self._now), is_simulated=False)


class RecentChecks:
    """Readings by authorization, each taken once, within `KEPT_S`."""

    def __init__(self) -> None:
        # The newest one comes last.
        self._kept: dict[Authorization, Reading] = {}

    def keep(self, authorization: Authorization, reading: Reading) -> None:
        """Keep a reading until it is taken or old; beyond the most, the oldest one goes."""
        # Two go for each that comes, so those of checks that no payment followed do not pile up.
        self._kept.pop(authorization, None)
        self._kept[authorization] = reading
        for oldest, kept in list(itertools.islice(self._kept.items(), 2)):
            if len(self._kept) > _MOST or not kept.is_younger(KEPT_S):
                del self._kept[oldest]

    def take(self, authorization: Authorization) -> Reading | None:
        """Return and forget an authorization's reading; None if none is kept."""
        reading = self._kept.pop(authorization, None)
        return reading if reading is not None and reading.is_younger(KEPT_S) else None
