"""A provider's rate limits: concurrency, submits per minute, and pauses that it asked for."""

import contextlib
import math
from collections import deque
from collections.abc import Iterator

from gateway.contracts import Clock
from gateway.domain import Traits

_MINUTE_S = 60.0


class Pace:
    """Limits one provider's generations and submits to its traits."""

    def __init__(self, traits: Traits, now: Clock, slots: int) -> None:
        self._now = now
        self._traits = traits
        self._default_slots = slots
        self._slots: float = 0
        self._per_minute: float = 0
        self.share(nodes=1, rank=0)
        self._running = 0
        self._submits: deque[float] = deque()
        self._paused_until = 0.0

    def share(self, *, nodes: int, rank: int) -> None:
        """Set this node's share of the vendor's limits; `rank` counts the nodes from 0.

        The shares add up to the limits, so if there are more nodes than slots, some nodes have
        none and leave the tasks to the others.
        """
        most = self._traits.max_concurrency
        working = min(nodes, most) if most else nodes
        self._slots = _part_of(most, working, rank) if most else self._default_slots
        per_minute = self._traits.submits_per_minute
        self._per_minute = _part_of(per_minute, working, rank) if per_minute else math.inf

    @property
    def paused_until(self) -> float:
        """When the pause that the provider asked for ends, in Unix seconds."""
        return self._paused_until

    @contextlib.contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot for one generation, from before its submit until its end."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    @property
    def is_busy(self) -> bool:
        """Whether any generation is running."""
        return self._running > 0

    def submitted(self) -> None:
        """Count one submit."""
        self._submits.append(self._now())

    def pause(self, seconds: float) -> None:
        """Hold back submits for some seconds, at the provider's request."""
        self._paused_until = max(self._paused_until, self._now() + seconds)

    def wait_s(self) -> float:
        """Return the seconds until the next submit; infinite while all slots are taken."""
        if self._running >= self._slots or self._per_minute == 0:
            return math.inf
        now = self._now()
        if self._count_recent() < self._per_minute:
            return max(self._paused_until - now, 0.0)
        return max(self._paused_until, self._submits[0] + _MINUTE_S) - now

    def free_submits(self) -> int:
        """Return how many submits may start now."""
        if self.wait_s() > 0:
            return 0
        return int(min(self._slots - self._running, self._per_minute - self._count_recent()))

    def _count_recent(self) -> int:
        since = self._now() - _MINUTE_S
        while self._submits and self._submits[0] <= since:
            self._submits.popleft()
        return len(self._submits)


def _part_of(whole: int, nodes: int, rank: int) -> int:
    """Return a node's share; shares differ by one at most."""
    return 0 if rank >= nodes else whole // nodes + (rank < whole % nodes)
