"""Moving windows of the library `limits`, in this process's memory.

The library's own memory storages start a thread or a task per key, which takes most of a core at a
thousand clients, so this module has its own (docs/architecture.md).
"""

import functools
import struct
from collections import OrderedDict
from typing import Any

from limits import RateLimitItemPerSecond
from limits.storage import MovingWindowSupport, Storage
from limits.strategies import MovingWindowRateLimiter

from gateway.contracts import Clock

# A key is an address and a limit. It takes 180 bytes with one hit and 250 with ten: 50 MB in all.
# Beyond this number, the keys with the oldest last hit are deleted.
_MAX_KEYS = 200_000
# A dictionary of 200,000 keys blocks the loop for 20 ms whenever it grows; one of 3,000 does not.
_SHARDS = 64
_DELETED_PER_HIT = 2
_TIME = struct.Struct("d")
# By window length in seconds. The key with the oldest last hit comes first.
_Windows = dict[int, OrderedDict[int, bytes]]


def open_windows(clock: Clock) -> MovingWindowRateLimiter:
    """Return empty windows."""
    return MovingWindowRateLimiter(LoopStorage(clock))


@functools.cache
def limit_of(hits: int, window_s: int) -> RateLimitItemPerSecond:
    """Return the library's form of a limit. The operator sets only a few."""
    return _Limit(hits, window_s)


class _Limit(RateLimitItemPerSecond):
    """A limit with a faster `key_for`: the library's checks the type of each part."""

    def key_for(self, *identifiers: Any) -> str:
        """Return the same key as the library, for a route's name and a client's address."""
        name = self.GRANULARITY.name
        return f"{self.namespace}/{'/'.join(identifiers)}/{self.amount}/{self.multiples}/{name}"


class LoopStorage(Storage, MovingWindowSupport):
    """A storage for `limits` in one event loop, without threads or locks.

    Stores keys as hashes, and times as packed floats; objects would take a kilobyte per key. Two
    keys share a hash with a probability of 2⁻⁶⁴.
    """

    STORAGE_SCHEME = ["loop"]  # noqa: RUF012 - limits declares it so

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._shards: list[_Windows] = [{} for _ in range(_SHARDS)]

    @property
    def base_exceptions(self) -> type[Exception]:
        """Required by `limits`; nothing here raises."""
        return ValueError

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count a hit unless the window is full."""
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
        """Return (time of the oldest hit in the window, number of hits)."""
        now = self._clock()
        window = self._windows_of(key).get(expiry, OrderedDict())
        hits = _hits_after(now - expiry, window.get(hash(key), b""))
        oldest = _TIME.unpack_from(hits)[0] if hits else now
        return oldest, len(hits) // _TIME.size

    def _windows_of(self, key: str) -> _Windows:
        return self._shards[hash(key) % _SHARDS]

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Not supported: this storage has no fixed windows."""
        raise NotImplementedError

    def get(self, key: str) -> int:
        """Return the number of stored hits of a key."""
        stored = (window.get(hash(key), b"") for window in self._windows_of(key).values())
        return sum(map(len, stored)) // _TIME.size

    def get_expiry(self, key: str) -> float:  # noqa: ARG002 - limits' interface
        """Return the present time: this storage has no fixed windows."""
        return self._clock()

    def check(self) -> bool:
        """Return True: memory is always available."""
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
    """Delete a few expired keys: more than a hit adds, and too few to block the loop."""
    keys = 0
    for window_s, window in windows.items():
        for _ in range(_DELETED_PER_HIT):
            first = next(iter(window), None)
            if first is None:
                break
            hits = window[first]
            if _TIME.unpack_from(hits, len(hits) - _TIME.size)[0] > now - window_s:
                break
            del window[first]
        keys += len(window)
    if keys > _MAX_KEYS // _SHARDS:
        max(windows.values(), key=len).popitem(last=False)


def _hits_after(moment: float, hits: bytes) -> bytes:
    """Return the hits later than `moment`. Hits are sorted by time."""
    start = 0
    while start < len(hits) and _TIME.unpack_from(hits, start)[0] <= moment:
        start += _TIME.size
    return hits[start:]
