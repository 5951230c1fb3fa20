"""Rate limits of routes: moving windows per client address, with exact waiting times.

The library `limits` brings the strategy. The storage is ours: the library's memory storages start
a thread or a task per key and cost most of a core at a thousand clients (docs/architecture.md).
"""

import math
import struct
from collections import OrderedDict
from typing import Any

from limits import RateLimitItemPerSecond
from limits.storage import MovingWindowSupport, Storage
from limits.strategies import MovingWindowRateLimiter

from gateway.contracts import Clock
from gateway.errors import TooManyRequests
from gateway.installed import load_opener
from gateway.settings import Settings, parse_limit

# A key is an address and a limit. It takes 250 bytes at ten hits, and 180 at one: all together
# 50 MB at most.
# Beyond this number, the keys whose last hit is the oldest are deleted.
_MAX_KEYS = 200_000
# A dictionary of 200,000 keys holds the loop for 20 ms each time it grows, one of 3,000 does not.
_SHARDS = 64
_DELETED_PER_HIT = 2
_TIME = struct.Struct("d")
# By the seconds of the window. In each window, the key whose last hit is the oldest comes first.
_Windows = dict[int, OrderedDict[int, bytes]]


class RateLimits:
    """The limits of spec §8 but the logins', counted in this process's memory."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self._limiter = MovingWindowRateLimiter(LoopStorage(clock))
        self._limits = {
            name: _Limit(*parse_limit(limit))
            for name, limit in (
                ("x402", settings.limit_x402),
                ("price", settings.limit_price),
                ("direct", settings.limit_direct),
                ("task", settings.limit_task),
            )
            if limit
        }

    def add(self, name: str, limit: str) -> None:
        """Count a mount's requests too; raises `SettingsError` for a limit that is none."""
        self._limits[name] = _Limit(*parse_limit(limit))

    async def hit(self, name: str, address: str) -> None:
        """Count a request; without a `price` limit, `price` counts as `x402`.

        Raises `TooManyRequests` with the whole seconds after which the next request passes.
        """
        limit, name = self._find(name)
        if not self._limiter.hit(limit, name, address):
            raise self._refusal(limit, name, address)

    async def find_problem(self) -> str:
        """Return the problem of counting limits; empty if there is none."""
        return ""

    async def close(self) -> None:
        """Close the connections."""

    def _find(self, name: str) -> tuple[RateLimitItemPerSecond, str]:
        """Return the limit of a name, and the limit's own name."""
        if name == "price" and name not in self._limits:
            name = "x402"
        return self._limits[name], name

    def _check(self, limit: RateLimitItemPerSecond, name: str, address: str) -> None:
        """Raise `TooManyRequests` where this process's window is full; count nothing."""
        if not self._limiter.test(limit, name, address):
            raise self._refusal(limit, name, address)

    def _refusal(self, limit: RateLimitItemPerSecond, name: str, address: str) -> TooManyRequests:
        oldest = self._limiter.get_window_stats(limit, name, address).reset_time
        return too_many(oldest - self._clock())


class _Limit(RateLimitItemPerSecond):
    """A limit that writes its keys at once; the library checks the type of each part."""

    def key_for(self, *identifiers: Any) -> str:
        """Return the library's key of these texts: a route's name and a client's address."""
        name = self.GRANULARITY.name
        return f"{self.namespace}/{'/'.join(identifiers)}/{self.amount}/{self.multiples}/{name}"


def make_limits(settings: Settings, clock: Clock, secret: str) -> RateLimits:
    """Return what counts requests, over all nodes where GATEWAY_LIMITS_URL is set.

    `secret` is the installation's. Raises `SettingsError` for an address that is none of a Redis,
    and if no plugin opens it.
    """
    if not settings.limits_url:
        return RateLimits(settings, clock)
    open_limits = load_opener(
        "gateway.limits", "GATEWAY_LIMITS_URL", settings.limits_url, settings.plugins_disabled
    )
    limits: RateLimits = open_limits(settings, clock, secret)
    return limits


def too_many(wait_s: float) -> TooManyRequests:
    """Return the refusal of a request before `wait_s` seconds are over."""
    return TooManyRequests(max(1, math.ceil(wait_s)))


class LoopStorage(Storage, MovingWindowSupport):
    """A storage of `limits` for one event loop: the times of hits per key, no thread, no lock.

    It stores a key as its hash and the times as packed floats; objects would take a kilobyte.
    Two keys share a hash once in 2⁶⁴.
    """

    STORAGE_SCHEME = ["loop"]  # noqa: RUF012 - limits declares it so

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._shards: list[_Windows] = [{} for _ in range(_SHARDS)]

    @property
    def base_exceptions(self) -> type[Exception]:
        """The errors that `limits` wraps; nothing here raises."""
        return ValueError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count a hit unless the window is full; a refused hit does not count."""
        now, number = self._clock(), hash(key)
        windows = self._windows_of(key)
        window = windows.get(expiry)
        if window is None:
            window = windows[expiry] = OrderedDict()
        hits = _hits_after(now - expiry, window.get(number, b""))
        if len(hits) // _TIME.size + amount > limit:
            return False
        window[number] = hits + _TIME.pack(now) * amount
        window.move_to_end(number)
        _delete_old_keys(windows, now)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002 - limits' interface
        """Return (time of the oldest hit in the window, hits in it)."""
        now = self._clock()
        window = self._windows_of(key).get(expiry, OrderedDict())
        hits = _hits_after(now - expiry, window.get(hash(key), b""))
        oldest = _TIME.unpack_from(hits)[0] if hits else now
        return oldest, len(hits) // _TIME.size

    def _windows_of(self, key: str) -> _Windows:
        return self._shards[hash(key) % _SHARDS]

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Raise `NotImplementedError`: this storage has no fixed windows."""
        raise NotImplementedError

    def get(self, key: str) -> int:
        """Return how many hits of a key are stored."""
        stored = (window.get(hash(key), b"") for window in self._windows_of(key).values())
        return sum(map(len, stored)) // _TIME.size

    def get_expiry(self, key: str) -> float:  # noqa: ARG002 - limits' interface
        """Return the time now: this storage has no fixed windows."""
        return self._clock()

    def check(self) -> bool:
        """Return True: a dictionary always works."""
        return True

    def reset(self) -> int:
        """Delete all keys and return how many there were."""
        keys = sum(len(window) for windows in self._shards for window in windows.values())
        self._shards = [{} for _ in range(_SHARDS)]
        return keys

    def clear(self, key: str) -> None:
        """Delete one key."""
        for window in self._windows_of(key).values():
            window.pop(hash(key), None)


def _delete_old_keys(windows: _Windows, now: float) -> None:
    """Delete a few keys without hits in their window.

    That is more keys than a hit can add, and too few to hold the loop.
    """
    keys = 0
    for window_s, window in windows.items():
        for _ in range(_DELETED_PER_HIT):
            first = next(iter(window), None)
            if first is None or _last_of(window[first]) > now - window_s:
                break
            del window[first]
        keys += len(window)
    if keys > _MAX_KEYS // _SHARDS:
        max(windows.values(), key=len).popitem(last=False)


def _last_of(hits: bytes) -> float:
    last: float = _TIME.unpack_from(hits, len(hits) - _TIME.size)[0]
    return last


def _hits_after(moment: float, hits: bytes) -> bytes:
    """Return the hits later than a moment; hits are in the order of time."""
    start = 0
    while start < len(hits) and _TIME.unpack_from(hits, start)[0] <= moment:
        start += _TIME.size
    return hits[start:]
