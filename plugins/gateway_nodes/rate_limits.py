"""Rate limits over all nodes: moving windows in a Redis; this node's own where Redis is silent.

Imported only where GATEWAY_LIMITS_URL is set. The library `limits` brings windows and scripts.
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
from gateway.errors import SettingsError
from gateway.running.rate_limits import RateLimits, too_many
from gateway.settings import Settings

# A request waits so long for Redis at most, connecting included. One in the same region answers
# within some milliseconds.
PATIENCE_S = 0.25
# After a silence, Redis is asked again by one request in so many seconds.
PAUSE_S = 5.0
_MAX_CONNECTIONS = 16
_PREFIX = "gateway-limits"
# Redis' scripts round times to a tenth of a millisecond, and refuse at the very end of a window.
_ROUNDED_S = 0.001
# Keys whose window is known to be full, of which Redis is not asked.
_MAX_FULL = 10_000
_PING = RateLimitItemPerSecond(1, 1)
_log = structlog.get_logger()


class SharedRateLimits(RateLimits):
    """The limits of spec §8 but the logins', counted over all nodes with one database.

    The windows of this process go on beside those in Redis. They bound what this node lets in
    while Redis is silent, and a client whom they refuse costs Redis nothing.
    """

    def __init__(self, settings: Settings, clock: Clock, secret: str) -> None:
        super().__init__(settings, clock)
        self._windows = RedisWindows(settings.limits_url)
        self._secret = secret.encode()
        self._full = FullWindows()

    async def hit(self, name: str, address: str) -> None:
        """Count a request, as `RateLimits.hit` does; an ailing Redis raises nothing."""
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
        """Return why Redis does not count the hits now; empty where it does."""
        return await self._windows.find_problem()

    async def close(self) -> None:
        """Close the connections to Redis."""
        await self._windows.close()

    def _conceal(self, address: str) -> str:
        """Return what stands for an address in Redis; other installations have other names."""
        text = b"rate-limits:" + address.encode()
        return hmac.digest(self._secret, text, hashlib.sha256)[:16].hex()


class RedisWindows:
    """Moving windows in a Redis. After a failure it is left alone for a while."""

    def __init__(
        self, url: str, *, patience_s: float = PATIENCE_S, pause_s: float = PAUSE_S
    ) -> None:
        """Open nothing yet; raises `SettingsError` for an address that Redis' client refuses."""
        self._patience_s, self._pause_s = patience_s, pause_s
        try:
            self._pool = BlockingConnectionPool.from_url(
                url,
                max_connections=_MAX_CONNECTIONS,
                timeout=patience_s,
                socket_timeout=patience_s,
                socket_connect_timeout=patience_s,
                # A connection that Redis has closed meanwhile is opened anew at once.
                retry=Retry(NoBackoff(), 1),
            )
        except ValueError as error:
            said = str(error).rstrip(".")
            raise SettingsError(f"GATEWAY_LIMITS_URL is not right: {said}.") from None
        # `limits` hands its options on to Redis' client; it declares plain values only.
        options: dict[str, Any] = {"connection_pool": self._pool}
        storage = RedisStorage(
            f"async+{url}", implementation="redispy", key_prefix=_PREFIX, **options
        )
        self._limiter = MovingWindowRateLimiter(storage)
        # Why Redis counts nothing now; empty while it does.
        self._problem = ""
        # By the monotonic clock.
        self._asked_again_at = 0.0
        # Questions without an answer; the client's time-outs end each.
        self._asking: set[asyncio.Future[float]] = set()

    async def hit(self, limit: RateLimitItemPerSecond, key: str) -> float:
        """Count a hit unless the window is full.

        Returns the seconds until the next hit passes: 0 where it was counted, or Redis is silent.
        """
        return await self._ask(lambda: self._hit(limit, key)) or 0.0

    async def find_problem(self) -> str:
        """Return why Redis counts nothing now; empty where it does."""
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
        # As a hit does, it writes: a copy for reading, or a full Redis, is found, too.
        await self._limiter.hit(_PING, "ping")
        return 0.0

    async def _ask(self, question: Callable[[], Awaitable[float]]) -> float | None:
        """Return Redis' answer; None where it is silent, or is left alone."""
        was_silent, now = bool(self._problem), time.monotonic()
        if was_silent and now < self._asked_again_at:
            return None
        # While this question finds out whether Redis answers again, the others do not wait.
        self._asked_again_at = now + self._pause_s
        try:
            async with asyncio.timeout(self._patience_s):
                answer = await outlive(self._begin(question))
        except Exception as error:  # noqa: BLE001 - whatever it is, no buyer is refused for it
            self._note_silence(error)
            return None
        # An answer to an older question says nothing about now.
        if was_silent:
            self._note_answer()
        return answer

    def _begin(self, question: Callable[[], Awaitable[float]]) -> asyncio.Future[float]:
        """Ask in the background: whoever waits may leave at once, and the connection stays whole.

        Redis' client sometimes holds a cancellation up until its own time-outs, and closes a
        connection whose answer nobody waited for.
        """
        asking = asyncio.ensure_future(question())
        self._asking.add(asking)
        asking.add_done_callback(self._forget)
        return asking

    def _forget(self, asking: asyncio.Future[float]) -> None:
        self._asking.discard(asking)
        # Where nobody waits any more, nobody fetches the error.
        if not asking.cancelled():
            asking.exception()

    def _note_silence(self, error: Exception) -> None:
        problem = str(error) or f"no answer within {self._patience_s:g} s"
        if not self._problem:
            _log.warning("limits.redis_silent", problem=problem)
        self._problem = problem
        self._asked_again_at = time.monotonic() + self._pause_s

    def _note_answer(self) -> None:
        if self._problem:
            _log.info("limits.redis_answers")
        self._problem = ""


class FullWindows:
    """Remembers until when windows in Redis are full, so that a flood does not ask it."""

    def __init__(self, most: int = _MAX_FULL) -> None:
        self._most = most
        # To a moment of the monotonic clock; the oldest comes first.
        self._until: OrderedDict[str, float] = OrderedDict()

    def remember(self, key: str, wait_s: float) -> None:
        """Remember that a window is full for so many seconds."""
        self._until[key] = time.monotonic() + wait_s
        self._until.move_to_end(key)
        if len(self._until) > self._most:
            self._until.popitem(last=False)

    def wait_s(self, key: str) -> float:
        """Return the seconds for which a window is still full; 0 where that is not known."""
        until = self._until.get(key)
        if until is None:
            return 0.0
        left_s = until - time.monotonic()
        if left_s <= 0:
            del self._until[key]
        return max(left_s, 0.0)
