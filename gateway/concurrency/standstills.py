"""Notices that this process stood still, or that the machine's clock jumped.

A suspended machine or a stopped process (SIGSTOP) finds its connections dead, and its leases, its
clock and its view of the chain old. Then `recover` runs, and `wait` holds sales until it has ended.
Three signs, because no clock shows every kind:

- a gap in the heartbeat: the monotonic clock went on, as for a stopped process;
- the wall clock moved against the monotonic one, which halts in a suspended machine;
- the outside world is ahead of the wall clock, which may lag until NTP sets it (`doubt`).
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import attrs
import structlog

from gateway.concurrency.shared_answers import SharedAnswer
from gateway.errors import Resuming

Value = TypeVar("Value")
# Between two beats.
BEAT_S = 2.0
# A shorter standstill harms nothing: the shortest lease has 15 s, and an RPC call that finds its
# connection dead opens another.
_STILL_S = 10.0
# How far the outside world may be ahead of this machine's clock: as far as x402 sells.
_BEHIND_S = 60.0
# How long a sale waits. The request before it, and the settlement after it, take time too.
_WAIT_S = 10.0
# How often a check is made whose process stands still each time.
_CHECKS = 3
# Any client can send authorizations that begin in the future; together they cause this much.
_NEWEST_TTL_S = 1.0
# In Unix seconds; no block is ahead of it.
_FAR_FUTURE = 1e12
_log = structlog.get_logger()


class Timed(Protocol):
    """A block, as far as it is needed here."""

    @property
    def timestamp(self) -> int:
        """In Unix seconds."""


async def _renew_nothing() -> Sequence[str]:
    return ()


async def _nothing() -> None:
    pass


@attrs.define(kw_only=True, eq=False, repr=False)
class Standstills:
    """The standstills of this process. A call of `notice` costs two reads of a clock."""

    # The clock that judges payments, in Unix seconds; and this machine's.
    now: Callable[[], float] = time.time
    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    # Renews what is old after a standstill; returns the names of what could not be renewed.
    recover: Callable[[], Awaitable[Sequence[str]]] = _renew_nothing
    wait_s: float = _WAIT_S
    # Standstills so far.
    count: int = attrs.field(default=0, init=False)
    _wall_at: float = attrs.field(init=False)
    _monotonic_at: float = attrs.field(init=False)
    _recovering: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _newest: SharedAnswer[Timed] = attrs.field(init=False)

    @_newest.default
    def _share_newest(self) -> SharedAnswer[Timed]:
        return SharedAnswer(time.monotonic, ttl_s=_NEWEST_TTL_S)

    def __attrs_post_init__(self) -> None:
        self._read_clocks()

    def _read_clocks(self) -> None:
        self._wall_at, self._monotonic_at = self.wall(), self.monotonic()

    async def begin(self) -> None:
        """Count from now on: the start before was no standstill."""
        self._read_clocks()

    async def beat(self) -> None:
        """Notice a standstill. Call it every `BEAT_S`."""
        self.notice()

    def notice(self) -> None:
        """Begin to recover if the process stood still, or its clock jumped, since the last call."""
        wall_at, monotonic_at = self._wall_at, self._monotonic_at
        self._read_clocks()
        passed_s = self._monotonic_at - monotonic_at
        jumped_s = self._wall_at - wall_at - passed_s
        if passed_s > BEAT_S + _STILL_S or abs(jumped_s) > _STILL_S:
            self._begin_to_recover(gap=round(passed_s, 1), clock_moved=round(jumped_s, 1))

    def doubt(self, seen_at: float) -> None:
        """Take a time of the outside world, such as a block's; recover if it is far ahead."""
        behind_s = seen_at - self.now()
        if behind_s > _BEHIND_S and self._recovering is None:
            self._begin_to_recover(clock_behind=round(behind_s, 1))

    def _begin_to_recover(self, **seconds: float) -> None:
        self.count += 1
        _log.info("process.stood_still", **seconds)
        if self._recovering is None:
            self._recovering = asyncio.create_task(self._recover(), name="standstill")

    async def _recover(self) -> None:
        # They belong to the request that noticed it.
        structlog.contextvars.clear_contextvars()
        count, failed = 0, list[str]()
        try:
            # The next one may come during the recovery.
            while count != self.count:
                count = self.count
                failed = list(await self.recover())
        except Exception:  # noqa: BLE001 - sales go on, with checks of their own
            _log.exception("process.not_recovered")
            return
        finally:
            self._recovering = None
        if failed:
            _log.warning("process.not_recovered", failed=failed)
        else:
            _log.info("process.recovered")

    def has_recovered(self) -> bool:
        """Notice a standstill; return whether this process has recovered from every one."""
        self.notice()
        return self._recovering is None

    async def wait(self) -> int:
        """Return `count` once this process has recovered; raises `Resuming` if that takes long."""
        if self.has_recovered():
            return self.count
        try:
            async with asyncio.timeout(self.wait_s):
                # NTP may set the clock meanwhile, which counts as another one.
                while not self.has_recovered() and self._recovering is not None:
                    await asyncio.wait((self._recovering,))
        except TimeoutError:
            raise Resuming from None
        return self.count

    async def guard(
        self,
        check: Callable[[], Awaitable[Value]],
        *,
        before_again: Callable[[], Awaitable[None]] = _nothing,
    ) -> Value:
        """Return a check's result; check again if this process stood still meanwhile.

        Otherwise the answers would be from before. Raises `Resuming` after the third time.
        """
        for _ in range(_CHECKS):
            count = await self.wait()
            value = await check()
            if await self.wait() == count:
                return value
            await before_again()
        raise Resuming

    async def compare(self, find_newest: Callable[[], Awaitable[Timed]]) -> None:
        """Return once this machine's clock is not behind the newest block, as far as that is known.

        For an authorization that begins in the future: its payer's clock is ahead, or this clock
        lags after a resume.
        """
        newest = await self._newest.get(find_newest)
        self.doubt(newest.timestamp)
        await self.wait()

    async def close(self) -> None:
        """Stop to recover."""
        if self._recovering is not None:
            self._recovering.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._recovering


def never() -> Standstills:
    """Return one that notices nothing, for payments without a running gateway."""
    return Standstills(now=lambda: _FAR_FUTURE, wall=lambda: 0.0, monotonic=lambda: 0.0)
