"""The four rate limits: moving windows per client address, with exact waiting times.

limits brings the strategy; the storage is ours because its memory storages start a thread or
a task per key and cost most of a core at a thousand clients (docs/architecture.md).
"""

import ipaddress
import math
import struct
from collections import OrderedDict

from limits import RateLimitItemPerSecond
from limits.storage import MovingWindowSupport, Storage
from limits.strategies import MovingWindowRateLimiter

from gateway.contracts import Clock
from gateway.errors import TooManyRequests
from gateway.settings import Settings, parse_limit

# A key is an address and a limit. It takes at most 300 bytes at ten hits, all together 60 MB.
# Beyond that number the keys that were hit the longest ago go first.
_MAX_KEYS = 200_000
# A dictionary of 200,000 keys holds the loop for 20 ms each time it grows, one of 3,000 does not.
_SHARDS = 64
_FORGOTTEN_PER_HIT = 2
_TIME = struct.Struct("d")
# By the seconds of the window; in each, the key that was hit the longest ago comes first.
_Windows = dict[int, OrderedDict[int, bytes]]


class LoopStorage(Storage, MovingWindowSupport):
    """A `limits` storage for one event loop: times of hits per key, no thread, no lock.

    A key is kept as its hash and its times as packed floats: objects of their own would take
    a kilobyte. Two keys share a hash once in 2⁶⁴.
    """

    STORAGE_SCHEME = ["loop"]  # noqa: RUF012 - limits declares it so

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._shards: list[_Windows] = [{} for _ in range(_SHARDS)]

    @property
    def base_exceptions(self) -> type[Exception]:
        """What limits wraps; nothing here raises."""
        return ValueError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count a hit unless the window is full; a refused one does not count."""
        now = self._clock()
        windows = self._windows_of(key)
        window = windows.setdefault(expiry, OrderedDict())
        hits = _after(now - expiry, window.get(hash(key), b""))
        if len(hits) // _TIME.size + amount > limit:
            return False
        window[hash(key)] = hits + _TIME.pack(now) * amount
        window.move_to_end(hash(key))
        _forget(windows, now)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:  # noqa: ARG002 - limits' interface
        """Return (time of the oldest hit in the window, hits in it)."""
        now = self._clock()
        window = self._windows_of(key).get(expiry, OrderedDict())
        hits = _after(now - expiry, window.get(hash(key), b""))
        oldest = _TIME.unpack_from(hits)[0] if hits else now
        return oldest, len(hits) // _TIME.size

    def _windows_of(self, key: str) -> _Windows:
        return self._shards[hash(key) % _SHARDS]

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Refuse: fixed windows are not kept here."""
        raise NotImplementedError

    def get(self, key: str) -> int:
        """Return how many hits of a key are kept."""
        kept = (window.get(hash(key), b"") for window in self._windows_of(key).values())
        return sum(map(len, kept)) // _TIME.size

    def get_expiry(self, key: str) -> float:  # noqa: ARG002 - limits' interface
        """Return the clock: fixed windows are not kept here."""
        return self._clock()

    def check(self) -> bool:
        """Whether the storage works; a dict does."""
        return True

    def reset(self) -> int:
        """Forget everything; returns how many keys there were."""
        keys = sum(len(window) for windows in self._shards for window in windows.values())
        self._shards = [{} for _ in range(_SHARDS)]
        return keys

    def clear(self, key: str) -> None:
        """Forget one key."""
        for window in self._windows_of(key).values():
            window.pop(hash(key), None)


def _forget(windows: _Windows, now: float) -> None:
    """Drop a few keys that went quiet: more than come in, and too few to hold the loop."""
    for window_s, window in windows.items():
        for _ in range(_FORGOTTEN_PER_HIT):
            first = next(iter(window), None)
            if first is None or _after(now - window_s, window[first]):
                break
            del window[first]
    if sum(map(len, windows.values())) > _MAX_KEYS // _SHARDS:
        max(windows.values(), key=len).popitem(last=False)


def _after(moment: float, hits: bytes) -> bytes:
    """Return the hits later than a moment; they are in order."""
    start = 0
    while start < len(hits) and _TIME.unpack_from(hits, start)[0] <= moment:
        start += _TIME.size
    return hits[start:]


class RateLimits:
    """The limits of spec §8 that are counted in memory."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self._limiter = MovingWindowRateLimiter(LoopStorage(clock))
        self._limits = {
            name: RateLimitItemPerSecond(*parse_limit(limit))
            for name, limit in (
                ("x402", settings.limit_x402),
                ("price", settings.limit_price),
                ("direct", settings.limit_direct),
                ("task", settings.limit_task),
            )
            if limit
        }

    def hit(self, name: str, address: str) -> None:
        """Count a request; a question for the price counts as `x402` without its own limit.

        Raises `TooManyRequests` with the whole seconds after which the next one passes.
        """
        if name == "price" and name not in self._limits:
            name = "x402"
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
