"""Rate limits across all nodes: moving windows in Redis, with local windows as the fallback.

Imported only if GATEWAY_LIMITS_URL is set. The library `limits` has the windows and scripts.
"""

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from limits import RateLimitItemPerSecond
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gateway.concurrency.awaiting import outlive
from gateway.contracts import Clock
from gateway.contracts.parts import Check, Part
from gateway.errors import SettingsError
from gateway.running.rate_limits import RateLimits, too_many
from gateway.settings import Settings

# Timeout of Redis, including the connection. In the same region it responds within milliseconds.
TIMEOUT_S = 0.25
# After a failure, one request per this many seconds tries Redis again.
PAUSE_S = 5.0
_MAX_CONNECTIONS = 16
_PREFIX = "gateway-limits"
# Margin: the scripts round times to 0.1 ms, and still refuse at the very end of a window.
_ROUNDED_S = 0.001
# Size of the cache of keys whose window is known to be full.
_MAX_FULL = 10_000
_PING = RateLimitItemPerSecond(1, 1)
_log = structlog.get_logger()


class SharedRateLimits(RateLimits):
    """All rate limits except that of logins, counted across the nodes of one database.

    This process also keeps its own windows. They limit clients while Redis is down, and a client
    that they refuse costs no request to Redis.
    """

    def __init__(self, settings: Settings, clock: Clock, secret: str) -> None:
        super().__init__(settings, clock)
        self._windows = RedisWindows(settings.limits_url)
        self._secret = secret.encode()
        self._full = FullWindows()

    async def hit(self, name: str, address: str) -> None:
        """Count a request, as `RateLimits.hit` does; errors of Redis are not raised."""
        limit, name = self._find(name)
        key = f"{name}/{self._conceal(address)}"
        wait_s = self._full.wait_s(key)
        if wait_s:
            raise too_many(wait_s)
        self._check(limit, name, address)
        wait_s = await self._windows.hit(limit, key)
        if wait_s:
            self._full.remember(key, wait_s)
            raise too_many(wait_s)
        await super().hit(name, address)

    async def find_problem(self) -> str:
        """Return why Redis does not count hits now; empty if it does."""
        return await self._windows.find_problem()

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._windows.close()

    def _conceal(self, address: str) -> str:
        """Return an address's pseudonym in Redis, an HMAC with the installation's secret."""
        text = b"rate-limits:" + address.encode()
        return hmac.digest(self._secret, text, hashlib.sha256)[:16].hex()


class RedisWindows:
    """Moving windows in Redis, which is not used for a while after a failure."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, pause_s: float = PAUSE_S) -> None:
        """Create the client without connecting; raises `SettingsError` for an invalid URL."""
        self._timeout_s, self._pause_s = timeout_s, pause_s
        try:
            self._pool = BlockingConnectionPool.from_url(
                url,
                max_connections=_MAX_CONNECTIONS,
                timeout=timeout_s,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                # Reconnect at once if Redis has closed an idle connection.
                retry=Retry(NoBackoff(), 1),
            )
        except ValueError as error:
            reason = str(error).rstrip(".")
            raise SettingsError(f"GATEWAY_LIMITS_URL is not right: {reason}.") from None
        # `limits` passes its options on to Redis' client, but declares plain values only.
        options: dict[str, Any] = {"connection_pool": self._pool}
        storage = RedisStorage(
            f"async+{url}", implementation="redispy", key_prefix=_PREFIX, **options
        )
        self._limiter = MovingWindowRateLimiter(storage)
        # Why Redis does not count now; empty while it does.
        self._problem = ""
        # By the monotonic clock.
        self._asked_again_at = 0.0
        # Requests in progress; the client's timeouts end each.
        self._asking: set[asyncio.Future[float]] = set()

    async def hit(self, limit: RateLimitItemPerSecond, key: str) -> float:
        """Count a hit unless the window is full.

        Returns the seconds until the next hit passes; 0 if it was counted, or Redis is down.
        """
        return await self._ask(lambda: self._hit(limit, key)) or 0.0

    async def find_problem(self) -> str:
        """Return why Redis does not count now; empty if it does."""
        await self._ask(self._ping)
        return self._problem

    async def close(self) -> None:
        """Close all connections."""
        for asking in self._asking:
            asking.cancel()
        if self._asking:
            await asyncio.wait(self._asking)
        await self._pool.disconnect()

    async def _hit(self, limit: RateLimitItemPerSecond, key: str) -> float:
        if await self._limiter.hit(limit, key):
            return 0.0
        stats = await self._limiter.get_window_stats(limit, key)
        return max(stats.reset_time - time.time(), 0.0) + _ROUNDED_S

    async def _ping(self) -> float:
        # A write, like a hit, so it also detects a read-only replica or a full Redis.
        await self._limiter.hit(_PING, "ping")
        return 0.0

    async def _ask(self, question: Callable[[], Awaitable[float]]) -> float | None:
        """Return Redis' response; None if it failed, or is in its pause after a failure."""
        was_silent, now = bool(self._problem), time.monotonic()
        if was_silent and now < self._asked_again_at:
            return None
        # While this request tries Redis again, others do not wait.
        self._asked_again_at = now + self._pause_s
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await outlive(self._begin(question))
        except Exception as error:  # noqa: BLE001 - no buyer is refused because of Redis
            self._note_silence(error)
            return None
        # A response to a request from before the failure proves nothing.
        if was_silent:
            self._note_answer()
        return answer

    def _begin(self, question: Callable[[], Awaitable[float]]) -> asyncio.Future[float]:
        """Run a request in the background, so that callers can leave without cancelling it.

        Redis' client may delay a cancellation until its own timeouts, and closes the connection of
        a cancelled request.
        """
        asking = asyncio.ensure_future(question())
        self._asking.add(asking)
        asking.add_done_callback(self._forget)
        return asking

    def _forget(self, asking: asyncio.Future[float]) -> None:
        self._asking.discard(asking)
        # Retrieve the error: the caller may be gone.
        if not asking.cancelled():
            asking.exception()

    def _note_silence(self, error: Exception) -> None:
        problem = str(error) or f"no answer within {self._timeout_s:g} s"
        if not self._problem:
            _log.warning("limits.redis_silent", problem=problem)
        self._problem = problem
        self._asked_again_at = time.monotonic() + self._pause_s

    def _note_answer(self) -> None:
        if self._problem:
            _log.info("limits.redis_answers")
        self._problem = ""


def make_check(limits: RateLimits) -> Part:
    """Return the part that checks for `/api/ready` whether Redis counts requests."""

    async def check() -> list[Check]:
        problem = await limits.find_problem()
        return [
            Check(
                name="limits",
                ok=not problem,
                stops="nothing",
                summary="Each node counts the requests of a client by itself.",
                problem=f"Redis is silent, so each node counts by itself: {problem}",
            )
        ]

    return Part(name="shared-limits", checks=check)


class FullWindows:
    """Caches which windows in Redis are full, so that a flood causes no requests to it."""

    def __init__(self, most: int = _MAX_FULL) -> None:
        self._most = most
        # Times of the monotonic clock; the oldest entry first.
        self._until: OrderedDict[str, float] = OrderedDict()

    def remember(self, key: str, wait_s: float) -> None:
        """Cache that a window is full for `wait_s` seconds."""
        self._until[key] = time.monotonic() + wait_s
        self._until.move_to_end(key)
        if len(self._until) > self._most:
            self._until.popitem(last=False)

    def wait_s(self, key: str) -> float:
        """Return the seconds for which a window is still full; 0 if unknown."""
        until = self._until.get(key)
        if until is None:
            return 0.0
        left_s = until - time.monotonic()
        if left_s <= 0:
            del self._until[key]
        return max(left_s, 0.0)
