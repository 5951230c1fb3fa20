"""Slots shared by addresses:

the one with the least use is next; one that fills the queue is refused.
"""

import asyncio
from contextlib import asynccontextmanager

import attrs
import pytest

from gateway.errors import ChecksFull, TooMuchUnpaid
from gateway.sandbox.fair_share import FairShare, Shares
from gateway.sandbox.sandbox import current_meter

SHARES = Shares(
    slots=2,
    slots_per_address=1,
    waiting=4,
    waiting_per_address=2,
    wait_s=60.0,
    protected_s=3.0,
    budget_s=20.0,
    refill_per_s=0.25,
)


class Clock:
    """Seconds that a test advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Desk:
    """Starts pieces of work and ends them on demand."""

    def __init__(self, **changes) -> None:
        self.clock = Clock()
        self.share = FairShare(attrs.evolve(SHARES, **changes), now=self.clock)
        self.at_work: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task] = {}

    async def begin(self, name: str, address: str | None = None) -> None:
        """Request a slot under a name; the address is the name's first letter."""
        self.start(name, address)
        await settled()

    def start(self, name: str, address: str | None = None) -> None:
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._work(name, address or name[0]))

    async def _work(self, name: str, address: str) -> float:
        async with self.share.turn(address):
            self.at_work.append(name)
            await self._ends[name].wait()
            cpu_s = self._cost
            current_meter().cpu_s += cpu_s
        return cpu_s

    _cost = 0.0

    async def end(self, name: str, *, cpu_s: float = 0.0) -> None:
        self._cost = cpu_s
        self._ends[name].set()
        await self._tasks[name]
        await settled()

    async def spend(self, address: str, cpu_s: float) -> None:
        """Let an address use this much."""
        await self.begin(f"{address} spends")
        await self.end(f"{address} spends", cpu_s=cpu_s)
        self.at_work.remove(f"{address} spends")

    def error_of(self, name: str) -> BaseException | None:
        task = self._tasks[name]
        return task.exception() if task.done() else None

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@asynccontextmanager
async def desk(**changes):
    made = Desk(**changes)
    yield made
    await made.close()


async def test_an_address_has_one_slot_however_much_it_asks_for():
    async with desk() as work:
        for name in ("a1", "a2", "a3", "b1"):
            await work.begin(name)
        assert work.at_work == ["a1", "b1"]
        await work.end("a1")
        assert work.at_work == ["a1", "b1", "a2"]


async def test_who_has_used_least_is_next():
    async with desk() as work:
        for address, cpu_s in (("a", 1.5), ("b", 0.5), ("c", 1.0)):
            await work.spend(address, cpu_s)
        for name in ("x1", "y1", "a1", "c1", "b1"):
            await work.begin(name)
        for name in ("x1", "y1", "b1"):
            await work.end(name)
        assert work.at_work == ["x1", "y1", "b1", "c1", "a1"]


async def test_addresses_that_have_used_much_leave_a_slot_to_others():
    async with desk() as work:
        for address in "abc":
            await work.spend(address, 2.5)
        for name in ("a1", "b1", "c1", "x1"):
            await work.begin(name)
        assert work.at_work == ["a1", "x1"]
        await work.end("x1")
        assert work.at_work == ["a1", "x1"]
        await work.end("a1")
        assert work.at_work == ["a1", "x1", "b1"]


async def test_the_slowest_is_cut_for_who_has_used_less():
    async with desk() as work:
        await work.begin("a1")
        work.clock.now = 1.0
        await work.begin("b1")
        await work.begin("x1")
        assert work.at_work == ["a1", "b1"]
        work.clock.now = 3.0
        await work.begin("y1")
        assert isinstance(work.error_of("a1"), ChecksFull)
        assert work.at_work == ["a1", "b1", "x1"]
        assert work.error_of("b1") is None


async def test_a_waiting_turn_cuts_by_itself_when_the_work_is_old_enough():
    async with desk(protected_s=0.0) as work:
        for name in ("a1", "b1"):
            await work.begin(name)
        work.clock.now = 0.5
        await work.begin("x1")
        assert work.at_work == ["a1", "b1", "x1"]
        assert [isinstance(work.error_of(name), ChecksFull) for name in ("a1", "b1")].count(
            True
        ) == 1


async def test_among_those_who_have_used_much_the_heaviest_makes_way():
    async with desk() as work:
        await work.spend("a", 10.0)
        await work.spend("b", 5.0)
        await work.begin("a1")
        work.clock.now = 1.0
        await work.begin("b1")
        assert work.at_work == ["a1"]
        work.clock.now = 3.0
        await work.begin("c1")
        assert isinstance(work.error_of("a1"), ChecksFull)
        assert sorted(work.at_work) == ["a1", "b1", "c1"]


async def test_the_heaviest_is_cut_without_a_new_request():
    async with desk(protected_s=0.05) as work:
        await work.spend("a", 10.0)
        await work.spend("b", 5.0)
        for name in ("a1", "b1"):
            await work.begin(name)
        assert work.at_work == ["a1"]
        work.clock.now = 0.1
        await asyncio.sleep(0.2)
        assert isinstance(work.error_of("a1"), ChecksFull)
        assert work.at_work == ["a1", "b1"]


async def test_a_waiting_turn_runs_once_its_address_has_regained_enough():
    async with desk() as work:
        await work.spend("a", 2.0)
        await work.begin("a1")
        work.share._ledger.charge("b", 2.001)
        await work.begin("b1")
        assert work.at_work == ["a1"]
        work.clock.now = 0.1
        await asyncio.sleep(0.2)
        assert work.at_work == ["a1", "b1"]
        assert work.error_of("a1") is None


async def test_one_address_cuts_no_more_work_than_it_may_have_slots():
    async with desk(waiting_per_address=3) as work:
        for name in ("a1", "b1", "x1", "x2"):
            await work.begin(name)
        work.clock.now = 3.0
        await work.begin("x3")
        cut = [name for name in ("a1", "b1") if work.error_of(name) is not None]
        assert len(cut) == 1


async def test_each_cut_in_a_row_doubles_the_time_until_the_next():
    async with desk() as work:
        for at, safe_s in enumerate((3.0, 6.0, 12.0, 12.0)):
            # The address regains its budget.
            start = work.clock.now = 1000.0 * (at + 1)
            names = [f"{letter}{at}" for letter in "abc"]
            for name in names[:2]:
                await work.begin(name)
            work.clock.now = start + safe_s - 0.5
            # The second address is charged less, so the first is cancelled.
            await work.end(names[1])
            await work.begin(names[1])
            await work.begin(names[2])
            assert work.error_of(names[0]) is None
            work.clock.now = start + safe_s
            await work.begin(f"d{at}")
            assert isinstance(work.error_of(names[0]), ChecksFull)
            for name in (names[1], names[2], f"d{at}"):
                await work.end(name)


async def test_work_that_ends_by_itself_resets_the_time_until_a_cut():
    async with desk() as work:
        for at, ends in enumerate((False, True, False)):
            start = work.clock.now = 1000.0 * (at + 1)
            for name in (f"a{at}", f"b{at}"):
                await work.begin(name)
            work.clock.now = start + 3.0
            if ends:
                await work.end(f"a{at}")
            await work.end(f"b{at}")
            for name in (f"c{at}", f"d{at}"):
                await work.begin(name)
            assert isinstance(work.error_of(f"a{at}"), ChecksFull) is not ends
            for name in (f"c{at}", f"d{at}"):
                await work.end(name)


async def test_nobody_is_cut_for_who_has_used_more():
    async with desk() as work:
        await work.spend("x", 10.0)
        for name in ("a1", "b1"):
            await work.begin(name)
        work.clock.now = 5.0
        await work.begin("x1")
        assert work.at_work == ["a1", "b1"]
        assert work.error_of("a1") is work.error_of("b1") is None


async def test_a_budget_that_is_spent_is_told_with_the_time_to_wait():
    async with desk() as work:
        await work.spend("a", 25.0)
        await work.begin("b1")
        await work.begin("a1")
        error = work.error_of("a1")
        assert isinstance(error, TooMuchUnpaid)
        assert (error.status, error.retry_after_s) == (429, 20)
        await work.end("b1")
        work.clock.now = 20.0
        await work.begin("a2")
        assert work.at_work == ["b1", "a2"]


async def test_a_budget_that_is_spent_refuses_nothing_while_nobody_else_comes():
    async with desk() as work:
        await work.spend("a", 25.0)
        await work.begin("a1")
        await work.begin("b1")
        assert work.at_work == ["a1", "b1"]
        # It was charged: it makes way first.
        work.clock.now = 3.0
        await work.begin("c1")
        assert isinstance(work.error_of("a1"), ChecksFull)
        assert work.at_work == ["a1", "b1", "c1"]


async def test_a_debt_is_bounded():
    async with desk() as work:
        for _ in range(10):
            await work.spend("a", 25.0)
        await work.begin("b1")
        await work.begin("a1")
        error = work.error_of("a1")
        assert isinstance(error, TooMuchUnpaid)
        assert error.retry_after_s == 80


async def test_who_fills_the_queue_is_refused_and_others_are_not():
    async with desk() as work:
        for name in ("a1", "b1", "a2", "a3", "b2"):
            await work.begin(name)
        await work.begin("a4")
        assert isinstance(work.error_of("a4"), TooMuchUnpaid)
        for name in ("c1", "d1"):
            await work.begin(name)
        # Five would wait: the last one of the address with the most waiting makes way.
        assert isinstance(work.error_of("a3"), ChecksFull)
        assert [work.error_of(name) for name in ("a2", "b2", "c1", "d1")] == [None] * 4


async def test_a_client_that_hangs_up_leaves_its_place():
    async with desk() as work:
        for name in ("a1", "b1", "c1", "d1"):
            await work.begin(name)
        for name in ("c1", "a1"):
            work._tasks[name].cancel()
        await settled()
        assert work.at_work == ["a1", "b1", "d1"]


async def test_a_client_that_hangs_up_while_another_enters_a_full_queue_costs_no_slot():
    async with desk(waiting=2) as work:
        for name in ("a1", "b1", "c1", "c2"):
            await work.begin(name)
        # The new turn enters before the cancelled one has left.
        work.start("d1")
        work._tasks["c2"].cancel()
        await settled()
        assert work.error_of("d1") is work.error_of("c1") is None
        for name in ("a1", "b1"):
            await work.end(name)
        assert work.at_work == ["a1", "b1", "c1", "d1"]


async def test_networks_of_one_site_are_one_client_to_a_full_queue():
    async with desk(waiting=3) as work:
        for number in range(6):
            await work.begin(f"site {number}", f"2001:db8:1:{number:x}::/64")
        await work.begin("a1", "192.0.2.1")
        await work.begin("b1", "2001:db8:2::/64")
        assert work.error_of("a1") is work.error_of("b1") is None
        refused = [number for number in range(6) if work.error_of(f"site {number}") is not None]
        assert refused == [3, 4, 5]


async def test_a_turn_that_fails_to_enter_leaves_nothing_behind(monkeypatch):
    async with desk() as work:
        with monkeypatch.context() as patch:
            patch.setattr(work.share, "_reject_excess", lambda: 1 / 0)
            await work.begin("a1")
        assert isinstance(work.error_of("a1"), ZeroDivisionError)
        for name in ("a2", "b1"):
            await work.begin(name)
        assert work.at_work == ["a2", "b1"]


async def test_who_waits_too_long_is_told_so():
    async with desk(wait_s=0.0, waiting=4) as work:
        for name in ("a1", "b1", "c1"):
            await work.begin(name)
        with pytest.raises(ChecksFull):
            await work._tasks["c1"]


async def test_without_a_queue_the_greedy_make_way_at_once():
    changes = {"slots": 4, "slots_per_address": 2, "waiting": 0, "waiting_per_address": 0}
    async with desk(**changes) as work:
        for name in ("a1", "a2", "b1", "b2"):
            await work.begin(name)
        work.clock.now = 1.0
        await work.begin("a3")
        assert isinstance(work.error_of("a3"), TooMuchUnpaid)
        await work.begin("c1")
        assert "c1" in work.at_work
        cut = [name for name in ("a1", "a2", "b1", "b2") if work.error_of(name) is not None]
        assert len(cut) == 1
        # Now three addresses have one or two slots each, and no work is old.
        await work.begin("d1")
        await work.begin("e1")
        assert "d1" in work.at_work
        assert isinstance(work.error_of("e1"), ChecksFull)
