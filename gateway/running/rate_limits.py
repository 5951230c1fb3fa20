"""Rate limits of routes: moving windows per client address, with exact waiting times.

The library `limits` counts them (`limit_windows.py`).
"""

import functools
import math
from typing import TYPE_CHECKING

from gateway.contracts import Clock
from gateway.errors import TooManyRequests
from gateway.installed import load_opener
from gateway.settings import Settings, parse_limit

if TYPE_CHECKING:
    from limits import RateLimitItemPerSecond
    from limits.strategies import MovingWindowRateLimiter


class RateLimits:
    """The limits of spec §8, except logins, counted in this process's memory."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        # (hits, window in seconds) by name
        self._limits = {
            name: parse_limit(limit)
            for name, limit in (
                ("x402", settings.limit_x402),
                ("price", settings.limit_price),
                ("direct", settings.limit_direct),
                ("task", settings.limit_task),
            )
            if limit
        }

    def add(self, name: str, limit: str) -> None:
        """Add a limit, such as a mount's; raises `SettingsError` if it is invalid."""
        self._limits[name] = parse_limit(limit)

    def load(self) -> None:
        """Import the library, which takes 25 ms, so that no request waits for it."""
        import gateway.running.limit_windows  # noqa: F401, PLC0415

    @functools.cached_property
    def _limiter(self) -> "MovingWindowRateLimiter":
        from gateway.running.limit_windows import open_windows  # noqa: PLC0415 - see `load`

        return open_windows(self._clock)

    async def hit(self, name: str, address: str) -> None:
        """Count a request. Without a `price` limit, `price` counts as `x402`.

        Raises `TooManyRequests` with the whole seconds to wait.
        """
        limit, name = self._find(name)
        if not self._limiter.hit(limit, name, address):
            raise self._refusal(limit, name, address)

    async def find_problem(self) -> str:
        """Return why requests cannot be counted as configured, or an empty string."""
        return ""

    async def close(self) -> None:
        """Close the connections."""

    def _find(self, name: str) -> tuple["RateLimitItemPerSecond", str]:
        """Return the limit that applies to a name, and that limit's name."""
        if name == "price" and name not in self._limits:
            name = "x402"
        from gateway.running.limit_windows import limit_of  # noqa: PLC0415 - see `load`

        return limit_of(*self._limits[name]), name

    def _check(self, limit: "RateLimitItemPerSecond", name: str, address: str) -> None:
        """Raise `TooManyRequests` if this process's window is full. Counts nothing."""
        if not self._limiter.test(limit, name, address):
            raise self._refusal(limit, name, address)

    def _refusal(self, limit: "RateLimitItemPerSecond", name: str, address: str) -> TooManyRequests:
        oldest = self._limiter.get_window_stats(limit, name, address).reset_time
        return too_many(oldest - self._clock())


def make_limits(settings: Settings, clock: Clock, secret: str) -> RateLimits:
    """Return the rate limits; with GATEWAY_LIMITS_URL, all nodes share them.

    `secret` is the installation's. Raises `SettingsError` for an invalid URL, or if no plugin opens
    it.
    """
    if not settings.limits_url:
        return RateLimits(settings, clock)
    open_limits = load_opener(
        "gateway.limits", "GATEWAY_LIMITS_URL", settings.limits_url, settings.plugins_disabled
    )
    limits: RateLimits = open_limits(settings, clock, secret)
    return limits


def too_many(wait_s: float) -> TooManyRequests:
    """Return the error for a client that must wait `wait_s` seconds."""
    return TooManyRequests(max(1, math.ceil(wait_s)))
