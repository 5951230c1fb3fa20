"""Shares a few slots among addresses, for work that clients cause before they pay.

Who has used least gets the next slot. Addresses that have used much leave the last slot to others,
and make way if somebody waits. Paid work takes no slot.
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
from gateway.sandbox.meter import Meter, metered

# From this part of its budget on, an address has used much.
_MUCH = 1 / 10
# What a client is told that has enough work waiting.
_SOON_S = 2
_ROUND_S = 0.01
# An address owes at most so many budgets, so that a day of use while nobody else came is not
# followed by a day of refusals.
_MOST_OWED = 2
# Each cut in a row doubles the time for which an address's work is safe, so that long work ends.
# After so many it stays: in production, at less than the time that others wait.
_DOUBLINGS = 2
# Addresses whose cuts are remembered.
_CUT_ADDRESSES = 1000
# Ledger entries that are looked at for each new one, so that old ones go.
_DROPPED_PER_CHARGE = 2


@attrs.frozen(kw_only=True)
class Shares:
    """How much there is, and how much of it one address may use."""

    slots: int
    slots_per_address: int
    waiting: int
    waiting_per_address: int
    wait_s: float
    # After so many seconds, work makes way for the work of an address that has used less; later
    # if work of its address was just cut.
    undisturbed_s: float
    # The seconds that one address may use at once, and how many it regains each second.
    budget_s: float
    regained: float


@attrs.define(eq=False)
class _Turn:
    """One piece of work, waiting or at work."""

    address: str
    number: int
    granted: asyncio.Future[None]
    meter: Meter = attrs.field(factory=Meter)
    # None while it waits.
    since: float | None = None
    limit: asyncio.Timeout | None = None
    was_cut: bool = False
    # Whether the work was cancelled, by a cut or because its client hung up.
    was_cancelled: bool = False

    def cut(self) -> None:
        """End the work by a time-out."""
        if self.limit is not None:
            self.was_cut = True
            self.limit.reschedule(asyncio.get_running_loop().time())


@attrs.define
class _Ledger:
    """The seconds that addresses have used; they regain them all the time."""

    shares: Shares
    now: Callable[[], float]
    # What was used, at a time.
    _entries: OrderedDict[str, tuple[float, float]] = attrs.field(factory=OrderedDict, init=False)

    def used(self, address: str) -> float:
        used, at = self._entries.get(address, (0.0, 0.0))
        return max(0.0, used - self.shares.regained * (self.now() - at))

    def charge(self, address: str, seconds: float) -> None:
        most_s = _MOST_OWED * self.shares.budget_s
        self._entries[address] = (min(self.used(address) + seconds, most_s), self.now())
        self._entries.move_to_end(address)
        for first in list(itertools.islice(self._entries, _DROPPED_PER_CHARGE)):
            if not self.used(first):
                del self._entries[first]


@attrs.define
class _Cuts:
    """How often the work of addresses was cut in a row."""

    _counts: OrderedDict[str, int] = attrs.field(factory=OrderedDict, init=False)

    def factor(self, address: str) -> int:
        return int(2 ** self._counts.get(address, 0))

    def note_end(self, turn: _Turn) -> None:
        if turn.limit is None:
            return
        if not turn.was_cancelled:
            self._counts.pop(turn.address, None)
        elif turn.was_cut:
            self._counts[turn.address] = min(self._counts.get(turn.address, 0) + 1, _DOUBLINGS)
            self._counts.move_to_end(turn.address)
            if len(self._counts) > _CUT_ADDRESSES:
                self._counts.popitem(last=False)


class FairShare:
    """Gives out slots; create it in the event loop that uses it."""

    def __init__(
        self,
        shares: Shares,
        *,
        counts_processor: bool = True,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Charge processor seconds of sandboxed calls, or else the seconds that a slot was held."""
        self._shares, self._now, self._counts_processor = shares, now, counts_processor
        self._ledger = _Ledger(shares, now)
        self._cut_before = _Cuts()
        self._running: list[_Turn] = []
        self._waiting: list[_Turn] = []
        self._numbers = 0
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[None]:
        """Hold a slot within the block, after waiting for it.

        Raises `TooMuchUnpaid` for an address that waits for too much, or has used too much while
        others come. Raises `ChecksFull` for work that has to make way; then the block is cancelled.
        """
        self._check(address)
        self._numbers += 1
        turn = _Turn(address, self._numbers, asyncio.get_running_loop().create_future())
        try:
            self._enter(turn)
            await self._wait(turn)
            async with asyncio.timeout(None) as turn.limit:
                try:
                    with metered(turn.meter):
                        yield
                except asyncio.CancelledError:
                    turn.was_cancelled = True
                    raise
        except TimeoutError:
            if turn.was_cut:
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
        """Refuse an address that waits for too much, or has used too much while others come."""
        shares = self._shares
        too_much_s = self._ledger.used(address) - shares.budget_s
        if too_much_s > 0 and self._others_come(address):
            raise TooMuchUnpaid(math.ceil(too_much_s / shares.regained))
        waits, held = self._count(self._live())[address], self._count(self._running)[address]
        may_wait = waits < shares.waiting_per_address
        if not may_wait and (waits or held >= shares.slots_per_address):
            raise TooMuchUnpaid(_SOON_S)

    def _enter(self, turn: _Turn) -> None:
        self._waiting.append(turn)
        self._give_out()
        self._turn_away()

    def _leave(self, turn: _Turn) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
            return
        if turn in self._running:
            self._running.remove(turn)
            self._cut_before.note_end(turn)
            seconds = turn.meter.cpu_s if self._counts_processor else self._age(turn)
            self._ledger.charge(turn.address, seconds)
        self._give_out()

    def _give_out(self) -> None:
        """Give free slots to those who wait, and make room for those who get none."""
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
        much = sum(1 for one in self._running if self._has_used_much(one.address))
        return not self._has_used_much(turn.address) or much < self._shares.slots - 1

    def _rank(self, turn: _Turn) -> tuple[float, int]:
        return self._used(turn.address), turn.number

    def _used(self, address: str) -> float:
        """Return what an address has used, with what it is using."""
        ages = (self._age(one) for one in self._running if one.address == address)
        return self._ledger.used(address) + sum(ages)

    def _has_used_much(self, address: str) -> bool:
        return self._used(address) >= _MUCH * self._shares.budget_s

    def _age(self, turn: _Turn) -> float:
        return 0.0 if turn.since is None else self._now() - turn.since

    def _live(self) -> list[_Turn]:
        """Return the waiting turns whose clients have neither hung up nor waited too long."""
        return [turn for turn in self._waiting if not turn.granted.done()]

    def _others_come(self, address: str) -> bool:
        return any(turn.address != address for turn in (*self._running, *self._live()))

    @staticmethod
    def _count(turns: list[_Turn]) -> Counter[str]:
        return Counter(turn.address for turn in turns)

    # -- making room

    def _make_room(self) -> None:
        """Cut work for turns that get no slot, or check again when some is old enough."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waits_s = [self._until_little(turn) for turn in self._without_slot()]
        for turn in self._without_slot():
            wait_s = self._cut_for(turn)
            if wait_s is not None:
                waits_s.append(wait_s)
                break
        wait_s = min(waits_s, default=math.inf)
        if wait_s < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(wait_s, _ROUND_S), self._give_out)

    def _without_slot(self) -> list[_Turn]:
        """Return the turns that get no slot when the work that was cut has left."""
        staying = [turn for turn in self._running if not turn.was_cut]
        held, without = self._count(staying), []
        much = sum(1 for turn in staying if self._has_used_much(turn.address))
        free = self._shares.slots - len(staying)
        for turn in sorted(self._live(), key=self._rank):
            if held[turn.address] >= self._shares.slots_per_address:
                continue
            held[turn.address] += 1
            has_used_much = self._has_used_much(turn.address)
            if not free or (has_used_much and much >= self._shares.slots - 1):
                without.append(turn)
                continue
            free -= 1
            much += has_used_much
        return without

    def _until_little(self, turn: _Turn) -> float:
        """Return after how many seconds an address has no longer used much."""
        over_s = self._used(turn.address) - _MUCH * self._shares.budget_s
        if over_s < 0 or turn.address in self._count(self._running):
            return math.inf
        return over_s / self._shares.regained + _ROUND_S

    def _cuts(self) -> int:
        return sum(1 for turn in self._running if turn.was_cut)

    def _cut_for(self, turn: _Turn) -> float | None:
        """Cut the work of who has used most; return after how many seconds one may be cut."""
        own = self._used(turn.address)
        heavier = [
            one for one in self._running if not one.was_cut and self._used(one.address) > own
        ]
        heavier.sort(key=lambda one: (self._used(one.address), self._age(one)), reverse=True)
        left_s = [self._left_s(one, turn) for one in heavier]
        for one, left in zip(heavier, left_s, strict=True):
            if left <= 0:
                one.cut()
                return None
        return min(left_s, default=None)

    def _left_s(self, work: _Turn, turn: _Turn) -> float:
        """Return the seconds for which work is safe from a turn that waits."""
        if work.limit is None:
            # It begins with the event loop's next round.
            return _ROUND_S
        held = self._count(self._running)
        if held[work.address] > held[turn.address] + 1:
            return 0.0
        safe_s = self._shares.undisturbed_s * self._cut_before.factor(work.address)
        return safe_s - self._age(work)

    def _turn_away(self) -> None:
        """Refuse the work of who waits for most, if more waits than may."""
        live = self._live()
        if len(live) <= self._shares.waiting + self._cuts():
            return
        # A customer of a provider often has all /64s of a /48.
        sites, waiting = Counter(map(_site, live)), self._count(live)
        last = max(
            live, key=lambda one: (sites[_site(one)], waiting[one.address], *self._rank(one))
        )
        self._waiting.remove(last)
        last.granted.set_exception(ChecksFull())
        # Its request may be gone; then nobody asks for the exception.
        last.granted.exception()


def _site(turn: _Turn) -> str:
    """Return the /48 of a turn that is counted by the /64 of its IPv6 address; else its address."""
    if not turn.address.endswith("/64"):
        return turn.address
    return str(ipaddress.ip_network(turn.address).supernet(new_prefix=48))
