"""Fair scheduling by address, for work that clients cause before they pay.

The address that has used least gets the next slot. Heavy users leave the last slot to others, and
are preempted if somebody waits. Paid work takes no slot.
"""

import asyncio
import ipaddress
import itertools
import math
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import attrs

from gateway.errors import ChecksFull, TooMuchUnpaid
from gateway.sandbox.sandbox import Meter, metered

# An address is a heavy user from this share of its budget on.
_HEAVY_SHARE = 1 / 10
# Retry-After for a client with enough work waiting.
_RETRY_AFTER_S = 2
_TICK_S = 0.01
# The debt of an address is capped at this many budgets, so that a day of heavy use on an idle
# gateway is not followed by a day of refusals.
_MAX_BUDGETS_OWED = 2
# Each preemption in a row doubles the time that an address's work is safe, so that long work can
# finish. The limit keeps that time, in production, below the time that others wait.
_MAX_DOUBLINGS = 2
# Addresses whose preemptions are remembered.
_MAX_PREEMPTED_ADDRESSES = 1000
# Old ledger entries checked per new one, so that they are dropped.
_DROPPED_PER_CHARGE = 2


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Shares:
    """Total capacity, and the share of one address."""

    slots: int
    slots_per_address: int
    waiting: int
    waiting_per_address: int
    wait_s: float
    # After this many seconds, work can be preempted for an address that has used less; later if
    # work of its address was just preempted.
    protected_s: float
    # The seconds that one address may use at once, and how many it regains per second.
    budget_s: float
    refill_per_s: float


@attrs.define(eq=False, repr=False)
class _Turn:
    address: str
    number: int
    granted: asyncio.Future[None]
    meter: Meter = attrs.field(factory=Meter)
    # None while waiting.
    since: float | None = None
    limit: asyncio.Timeout | None = None
    was_preempted: bool = False
    # Whether the work was cancelled: preempted, or because its client disconnected.
    was_cancelled: bool = False

    def preempt(self) -> None:
        if self.limit is not None:
            self.was_preempted = True
            self.limit.reschedule(asyncio.get_running_loop().time())


@attrs.define(eq=False, repr=False)
class _Ledger:
    """Seconds used per address, decaying over time."""

    shares: Shares
    now: Callable[[], float]
    # (seconds used, time)
    _entries: OrderedDict[str, tuple[float, float]] = attrs.field(factory=OrderedDict, init=False)

    def used(self, address: str) -> float:
        used, at = self._entries.get(address, (0.0, 0.0))
        return max(0.0, used - self.shares.refill_per_s * (self.now() - at))

    def charge(self, address: str, seconds: float) -> None:
        max_s = _MAX_BUDGETS_OWED * self.shares.budget_s
        self._entries[address] = (min(self.used(address) + seconds, max_s), self.now())
        self._entries.move_to_end(address)
        for first in list(itertools.islice(self._entries, _DROPPED_PER_CHARGE)):
            if not self.used(first):
                del self._entries[first]


class FairShare:
    """Grants slots. Create it in the event loop that uses it."""

    def __init__(
        self,
        shares: Shares,
        *,
        counts_processor: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Charge CPU seconds of sandboxed calls, or seconds in a slot."""
        self._shares, self._now, self._counts_processor = shares, now, counts_processor
        self._ledger = _Ledger(shares, now)
        # Preemptions in a row, by address.
        self._preemptions: OrderedDict[str, int] = OrderedDict()
        self._running: list[_Turn] = []
        self._waiting: list[_Turn] = []
        self._numbers = 0
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it within the block.

        Raises `TooMuchUnpaid` if the address has too much waiting, or is over its budget while
        others need slots. Raises `ChecksFull` if the work is preempted; the block is then
        cancelled.
        """
        self._check(address)
        self._numbers += 1
        turn = _Turn(address, self._numbers, asyncio.get_running_loop().create_future())
        try:
            self._waiting.append(turn)
            self._grant_slots()
            self._reject_excess()
            await self._wait(turn)
            async with asyncio.timeout(None) as turn.limit:
                try:
                    with metered(turn.meter):
                        yield
                except asyncio.CancelledError:
                    turn.was_cancelled = True
                    raise
        except TimeoutError:
            if turn.was_preempted:
                raise ChecksFull from None
            raise
        finally:
            self._leave(turn)

    async def _wait(self, turn: _Turn) -> None:
        if turn.granted.done():
            turn.granted.result()
            return
        try:
            async with asyncio.timeout(self._shares.wait_s):
                await turn.granted
        except TimeoutError:
            raise ChecksFull from None

    def _check(self, address: str) -> None:
        shares = self._shares
        excess_s = self._ledger.used(address) - shares.budget_s
        live = self._live()
        if excess_s > 0 and any(turn.address != address for turn in (*self._running, *live)):
            raise TooMuchUnpaid(math.ceil(excess_s / shares.refill_per_s))
        waits, held = self._count(live)[address], self._count(self._running)[address]
        may_wait = waits < shares.waiting_per_address
        if not may_wait and (waits or held >= shares.slots_per_address):
            raise TooMuchUnpaid(_RETRY_AFTER_S)

    def _leave(self, turn: _Turn) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
            return
        if turn in self._running:
            self._running.remove(turn)
            self._count_preemption(turn)
            seconds = turn.meter.cpu_s if self._counts_processor else self._age(turn)
            self._ledger.charge(turn.address, seconds)
        self._grant_slots()

    def _count_preemption(self, turn: _Turn) -> None:
        counts, address = self._preemptions, turn.address
        if turn.limit is not None and not turn.was_cancelled:
            counts.pop(address, None)
        elif turn.limit is not None and turn.was_preempted:
            counts[address] = min(counts.get(address, 0) + 1, _MAX_DOUBLINGS)
            counts.move_to_end(address)
            if len(counts) > _MAX_PREEMPTED_ADDRESSES:
                counts.popitem(last=False)

    def _grant_slots(self) -> None:
        while len(self._running) < self._shares.slots:
            turn = min(filter(self._may_run, self._waiting), key=self._rank, default=None)
            if turn is None:
                break
            self._waiting.remove(turn)
            self._running.append(turn)
            turn.since = self._now()
            turn.granted.set_result(None)
        self._make_room()

    def _may_run(self, turn: _Turn) -> bool:
        held = self._count(self._running)[turn.address]
        if turn.granted.done() or held >= self._shares.slots_per_address:
            return False
        heavy = sum(1 for one in self._running if self._is_heavy(one.address))
        return not self._is_heavy(turn.address) or heavy < self._shares.slots - 1

    def _rank(self, turn: _Turn) -> tuple[float, int]:
        return self._used(turn.address), turn.number

    def _used(self, address: str) -> float:
        """Return the seconds used, including running work."""
        ages = (self._age(one) for one in self._running if one.address == address)
        return self._ledger.used(address) + sum(ages)

    def _is_heavy(self, address: str) -> bool:
        return self._used(address) >= _HEAVY_SHARE * self._shares.budget_s

    def _age(self, turn: _Turn) -> float:
        return 0.0 if turn.since is None else self._now() - turn.since

    def _live(self) -> list[_Turn]:
        return [turn for turn in self._waiting if not turn.granted.done()]

    @staticmethod
    def _count(turns: list[_Turn]) -> Counter[str]:
        return Counter(turn.address for turn in turns)

    # -- making room

    def _make_room(self) -> None:
        """Preempt work for turns without a slot, or schedule the next check."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        without = self._without_slot()
        delays_s = [self._until_light_s(turn) for turn in without]
        for turn in without:
            wait_s = self._preempt_for(turn)
            if wait_s is not None:
                delays_s.append(wait_s)
                break
        wait_s = min(delays_s, default=math.inf)
        if wait_s < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(wait_s, _TICK_S), self._grant_slots)

    def _without_slot(self) -> list[_Turn]:
        """Return turns without a slot even after the preempted work has left."""
        staying = [turn for turn in self._running if not turn.was_preempted]
        held, without = self._count(staying), []
        heavy = sum(1 for turn in staying if self._is_heavy(turn.address))
        free = self._shares.slots - len(staying)
        for turn in sorted(self._live(), key=self._rank):
            if held[turn.address] >= self._shares.slots_per_address:
                continue
            held[turn.address] += 1
            is_heavy = self._is_heavy(turn.address)
            if not free or (is_heavy and heavy >= self._shares.slots - 1):
                without.append(turn)
                continue
            free -= 1
            heavy += is_heavy
        return without

    def _until_light_s(self, turn: _Turn) -> float:
        over_s = self._used(turn.address) - _HEAVY_SHARE * self._shares.budget_s
        if over_s < 0 or turn.address in self._count(self._running):
            return math.inf
        return over_s / self._shares.refill_per_s + _TICK_S

    def _preempt_for(self, turn: _Turn) -> float | None:
        """Preempt the heaviest user, or return the seconds until that is allowed."""
        own = self._used(turn.address)
        heavier = [
            one for one in self._running if not one.was_preempted and self._used(one.address) > own
        ]
        heavier.sort(key=lambda one: (self._used(one.address), self._age(one)), reverse=True)
        left_s = [self._safe_for_s(one, turn) for one in heavier]
        for one, left in zip(heavier, left_s, strict=True):
            if left <= 0:
                one.preempt()
                return None
        return min(left_s, default=None)

    def _safe_for_s(self, work: _Turn, turn: _Turn) -> float:
        if work.limit is None:
            # It begins in the event loop's next iteration.
            return _TICK_S
        held = self._count(self._running)
        if held[work.address] > held[turn.address] + 1:
            return 0.0
        safe_s = self._shares.protected_s * 2.0 ** self._preemptions.get(work.address, 0)
        return safe_s - self._age(work)

    def _reject_excess(self) -> None:
        """Reject a turn of the site with the most waiting turns, if too many wait."""
        live = self._live()
        leaving = sum(1 for turn in self._running if turn.was_preempted)
        if len(live) <= self._shares.waiting + leaving:
            return
        # A customer of an Internet provider often has every /64 of a /48.
        sites, waiting = Counter(map(_site, live)), self._count(live)
        last = max(
            live, key=lambda one: (sites[_site(one)], waiting[one.address], *self._rank(one))
        )
        self._waiting.remove(last)
        last.granted.set_exception(ChecksFull())
        # Mark the exception as retrieved, in case the request is gone.
        last.granted.exception()


def _site(turn: _Turn) -> str:
    """Return the /48 of an IPv6 /64, else the address."""
    if not turn.address.endswith("/64"):
        return turn.address
    return str(ipaddress.ip_network(turn.address).supernet(new_prefix=48))
