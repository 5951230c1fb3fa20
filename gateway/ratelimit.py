"""The four rate limits: moving windows per client address, with exact waiting times.

limits brings the strategy; the storage is ours because its memory storages start a thread or
a task per key and cost most of a core at a thousand clients (docs/architecture.md).
"""

import ipaddress
import math
from collections import deque

from limits import RateLimitItemPerSecond
from limits.storage import MovingWindowSupport, Storage
from limits.strategies import MovingWindowRateLimiter

from gateway.contracts import Clock
from gateway.errors import TooManyRequests
from gateway.settings import Settings, parse_limit

_SWEEP_S = 30.0  # between two removals of addresses that went quiet
_MAX_KEYS = 200_000  # addresses kept, about 60 MB; beyond, the longest known go first


class LoopStorage(Storage, MovingWindowSupport):
    """A `limits` storage for one event loop: times of hits per key, no thread, no lock."""

    STORAGE_SCHEME = ["loop"]  # noqa: RUF012 - limits declares it so

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._hits: dict[str, tuple[int, deque[float]]] = {}  # key: (window in seconds, times)
        self._next_sweep = 0.0

    @property
    def base_exceptions(self) -> type[Exception]:
        """What limits wraps; nothing here raises."""
        return ValueError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count a hit unless the window is full; a refused one does not count."""
        hits = self._recent(key, expiry)
        if len(hits) + amount > limit:
            return False
        hits.extend([self._clock()] * amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002 - limits' interface
        """Return (time of the oldest hit in the window, hits in it)."""
        known = self._hits.get(key)
        recent = [at for at in known[1] if at > self._clock() - expiry] if known else []
        return (recent[0] if recent else self._clock()), len(recent)

    def _recent(self, key: str, window_s: int) -> deque[float]:
        now = self._clock()
        if key not in self._hits:
            self._make_room(now)
            self._hits[key] = (window_s, deque())
        hits = self._hits[key][1]
        while hits and hits[0] <= now - window_s:
            hits.popleft()
        return hits

    def _make_room(self, now: float) -> None:
        if now >= self._next_sweep:
            self._next_sweep = now + _SWEEP_S
            quiet = [
                key
                for key, (window_s, hits) in self._hits.items()
                if not hits or hits[-1] <= now - window_s
            ]
            for key in quiet:
                del self._hits[key]
        if len(self._hits) >= _MAX_KEYS:
            del self._hits[next(iter(self._hits))]

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Refuse: fixed windows are not kept here."""
        raise NotImplementedError

    def get(self, key: str) -> int:
        """Return how many hits of a key are kept."""
        return len(self._hits.get(key, (0, ()))[1])

    def get_expiry(self, key: str) -> float:  # noqa: ARG002 - limits' interface
        """Return the clock: fixed windows are not kept here."""
        return self._clock()

    def check(self) -> bool:
        """Whether the storage works; a dict does."""
        return True

    def reset(self) -> int:
        """Forget everything; returns how many keys there were."""
        keys = len(self._hits)
        self._hits.clear()
        return keys

    def clear(self, key: str) -> None:
        """Forget one key."""
        self._hits.pop(key, None)


class RateLimits:
    """The limits of spec §8 that are counted in memory."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self._limiter = MovingWindowRateLimiter(LoopStorage(clock))
        self._limits = {
            name: RateLimitItemPerSecond(*parse_limit(limit))
            for name, limit in (
                ("x402", settings.limit_x402),
                ("direct", settings.limit_direct),
                ("task", settings.limit_task),
            )
        }

    def hit(self, name: str, address: str) -> None:
        """Count a request.

        Raises `TooManyRequests` with the whole seconds after which the next one passes.
        """
        limit = self._limits[name]
        if self._limiter.hit(limit, name, address):
            return
        oldest = self._limiter.get_window_stats(limit, name, address).reset_time
        raise TooManyRequests(max(1, math.ceil(oldest - self._clock())))


def client_address(peer: str, forwarded: str | None) -> str:
    """Return what a client is counted by: its IPv4 address, or the /64 of its IPv6 address.

    `forwarded` is the value of the trusted header; of a list the last entry counts, since
    the trusted proxy appended it and a client can forge the others.
    """
    text = (forwarded or "").rpartition(",")[2].strip() or peer
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address.packed, 64), strict=False))
    return str(address)
