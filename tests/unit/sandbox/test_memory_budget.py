"""The memory that all sandboxed processes of a gateway share."""

import asyncio
import contextlib
import math
import os
import random
import time

import pytest

from gateway.errors import ChecksFull
from gateway.sandbox import SandboxEnded, memory_budget
from gateway.sandbox.child import machine
from gateway.sandbox.memory_budget import MemoryBudget
from gateway.sandbox.memory_reservation import GaveWay, Reservation, notify_of_waits
from gateway.sandbox.process import Loaded, Usage
from tests.patience import until

MB = 10**6


class Warmed:
    """A sandbox with a warmed process of 50 MB, without processes."""

    def __init__(self, budget, function, *, warmed=50, used_at=0.0, is_running=True):
        self.function, self.used_at, self.is_running = function, used_at, is_running
        self.budget, self.warmed, self.paid_start_at = budget, warmed, -math.inf
        budget.note_start(self, is_paid=False)
        budget.note_loaded(self, Loaded(warmed * MB, warmed * MB, 1.0))

    def learn(self, *, peak, size=1000, most=600):
        self.report((self.warmed + peak) * MB, size=size, most=most)

    def report(self, peak_bytes, *, size=1000, most=600):
        """End a child, which reports this peak."""
        self.budget.note_end(self.reserve(size=size, most=most), Usage(0.1, peak_bytes))

    def reserve(self, *, size=1000, most=600, is_paid=True):
        return self.budget.reserve(
            self, size=size, most_bytes=most * MB, is_paid=is_paid, at_once=100
        )

    def close(self):
        self.is_running = False


class Child:
    """A call that holds memory until the test ends it."""

    def __init__(self, budget, need, *, most=None, is_paid=True, owner=None, **group):
        most = need if most is None else most
        self.budget, self.ends, self.runs = budget, asyncio.Event(), False
        self.reservation = Reservation(
            need_bytes=need * MB, most_bytes=most * MB, is_paid=is_paid, owner=owner, **group
        )
        self.task = asyncio.create_task(self.run())

    async def run(self):
        async with self.budget.held(self.reservation):
            self.runs = True
            try:
                await self.ends.wait()
            finally:
                self.runs = False

    async def end(self):
        self.reservation.has_ended = True
        self.ends.set()
        await self.task
        await settle()

    async def cancel(self):
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        await settle()


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


async def started(budget, *needs, **about):
    children = []
    for need in needs:
        children.append(Child(budget, need, **about))
        await settle()
    return children


async def is_free(budget):
    """Whether a child that needs the whole budget starts at once."""
    (child,) = await started(budget, budget.total_bytes // MB)
    try:
        return child.runs
    finally:
        await child.cancel()


async def test_light_children_run_together_and_a_heavy_one_waits():
    budget = MemoryBudget(600 * MB)
    light, other, heavy = await started(budget, 100, 100, 500)
    assert (light.runs, other.runs, heavy.runs) == (True, True, False)
    await light.end()
    assert heavy.runs
    await heavy.end()
    await other.end()
    assert await is_free(budget)


async def test_a_child_that_needs_more_than_the_budget_runs_alone():
    budget = MemoryBudget(600 * MB)
    light, huge = await started(budget, 100, 5000)
    huge.reservation.came_at -= 6
    (later,) = await started(budget, 100)
    assert (light.runs, huge.runs, later.runs) == (True, False, False)
    await light.end()
    assert (huge.runs, later.runs) == (True, False)
    await huge.end()
    assert later.runs
    await later.end()


async def test_paid_work_goes_first_and_each_kind_in_order():
    budget = MemoryBudget(600 * MB)
    (holder,) = await started(budget, 600)
    unpaid = await started(budget, 600, 600, is_paid=False)
    paid = await started(budget, 600, 600)
    order = []
    for child in (*paid, *unpaid):
        await holder.end()
        order.append(child.runs)
        holder = child
    await holder.end()
    assert order == [True] * 4


@pytest.mark.parametrize("is_paid", [True, False])
async def test_light_calls_pass_a_heavy_one_of_their_priority_until_it_has_waited(is_paid):
    budget = MemoryBudget(600 * MB)
    first, heavy, light = await started(budget, 200, 500, 100, is_paid=is_paid)
    assert (heavy.runs, light.runs) == (False, True)
    await light.end()
    heavy.reservation.came_at -= 6
    (light,) = await started(budget, 100, is_paid=is_paid)
    assert (heavy.runs, light.runs) == (False, False)
    await first.end()
    assert (heavy.runs, light.runs) == (True, True)
    await heavy.end()
    await light.end()


async def test_paid_work_goes_before_unpaid_work_that_has_waited():
    budget = MemoryBudget(600 * MB)
    (holder,) = await started(budget, 300)
    (unpaid,) = await started(budget, 600, is_paid=False)
    unpaid.reservation.came_at -= 60
    light, heavy = await started(budget, 50, 600)
    assert (light.runs, heavy.runs) == (True, False)
    await light.end()
    await holder.end()
    assert (unpaid.runs, heavy.runs) == (False, True)
    await heavy.end()
    assert unpaid.runs
    await unpaid.end()


async def test_unpaid_children_give_way_to_a_paid_call_that_then_fits():
    budget = MemoryBudget(600 * MB)
    (paid,) = await started(budget, 100)
    old, new = await started(budget, 200, 200, is_paid=False)
    # Without them, it does not fit either.
    (huge,) = await started(budget, 550)
    assert (old.runs, new.runs, huge.runs) == (True, True, False)
    await huge.cancel()
    (heavy,) = await started(budget, 250)
    with pytest.raises(ChecksFull):
        await new.task
    await settle()
    assert (old.runs, heavy.runs) == (True, True)
    (huge,) = await started(budget, 5000)
    await heavy.end()
    await paid.end()
    with pytest.raises(ChecksFull):
        await old.task
    await settle()
    assert huge.runs
    await huge.end()


async def test_a_process_that_loads_its_modules_does_not_give_way():
    budget = MemoryBudget(600 * MB)
    (load,) = await started(budget, 0, is_paid=False, owner=Warmed(budget, "read"))
    (paid,) = await started(budget, 600)
    assert (load.runs, paid.runs) == (True, False)
    await load.end()
    assert paid.runs
    await paid.end()


async def test_a_call_that_waits_for_a_slot_of_its_sandbox_does_not_wait_for_memory():
    budget, told = MemoryBudget(600 * MB), []
    (holder,) = await started(budget, 200)
    with notify_of_waits(told.append):
        first, second, third = await started(budget, 200, 200, 200, group="read", at_once=2)
        assert (first.runs, second.runs, third.runs, told) == (True, True, False, [])
        (heavy,) = await started(budget, 300)
        assert told == [1]
        # It has a slot now, but no memory: others are before it.
        heavy.reservation.came_at -= 6
        await first.end()
        assert (third.runs, heavy.runs, told) == (False, False, [1, 1])
    await holder.end()
    assert heavy.runs
    await second.end()
    assert (third.runs, told) == (True, [1, 1, -1, -1])
    await heavy.end()
    await third.end()


async def test_unpaid_work_waits_for_a_bounded_time_and_then_its_client_may_try_again(monkeypatch):
    monkeypatch.setattr(memory_budget, "_UNPAID_WAIT_S", 0.01)
    budget = MemoryBudget(600 * MB)
    (holder,) = await started(budget, 600)
    (unpaid,) = await started(budget, 600, is_paid=False)
    with pytest.raises(ChecksFull):
        await unpaid.task
    await holder.end()
    assert await is_free(budget)


async def test_cancelled_work_leaves_nothing_behind():
    budget = MemoryBudget(600 * MB)
    holder, waiting, last = await started(budget, 600, 600, 600)
    await waiting.cancel()
    await holder.cancel()
    assert last.runs
    await last.cancel()
    assert await is_free(budget)


async def test_work_that_is_cancelled_as_it_gets_memory_gives_it_back():
    budget = MemoryBudget(600 * MB)
    holder, waiting = await started(budget, 600, 600)
    holder.ends.set()
    await asyncio.sleep(0)
    await waiting.cancel()
    await holder.task
    assert await is_free(budget)


async def test_any_mixture_of_work_stays_within_the_budget_and_ends():
    random.seed(48)
    budget = MemoryBudget(600 * MB)
    children = []
    for _ in range(300):
        children += await started(
            budget, random.choice((10, 50, 200, 400, 900)), is_paid=random.random() < 0.5
        )
        running = [one for one in children if one.runs]
        taken = sum(one.reservation.need_bytes for one in running)
        assert taken <= 600 * MB or len(running) == 1
        for one in random.sample(running, random.randint(0, len(running))):
            # Unpaid work may have given way meanwhile.
            with contextlib.suppress(ChecksFull):
                await (one.cancel() if random.random() < 0.3 else one.end())
        if random.random() < 0.1:
            with contextlib.suppress(ChecksFull):
                await random.choice(children).cancel()
    while running := [one for one in children if one.runs]:
        with contextlib.suppress(ChecksFull):
            await running[0].end()
    assert all(one.task.done() for one in children)
    # Some gave way, and their errors would be reported in a later test.
    await asyncio.gather(*(one.task for one in children), return_exceptions=True)
    assert await is_free(budget)


# -- warmed processes


async def test_idle_warmed_processes_end_when_others_need_their_memory():
    budget = MemoryBudget(600 * MB)
    old, new = Warmed(budget, "old", used_at=1.0), Warmed(budget, "new", used_at=2.0)
    (child,) = await started(budget, 520)
    assert (child.runs, old.is_running, new.is_running) == (True, False, True)
    await child.end()
    (child,) = await started(budget, 600)
    assert (child.runs, new.is_running) == (True, False)
    await child.end()


async def test_a_warmed_process_with_a_child_stays_and_none_ends_in_vain():
    budget = MemoryBudget(600 * MB)
    busy, idle = Warmed(budget, "busy"), Warmed(budget, "idle")
    (child,) = await started(budget, 300, owner=busy)
    (waiting,) = await started(budget, 550)
    assert (waiting.runs, busy.is_running, idle.is_running) == (False, True, True)
    await child.end()
    # The one that was used last stays.
    assert (waiting.runs, busy.is_running, idle.is_running) == (True, True, False)
    await waiting.end()


async def test_unpaid_work_ends_no_warmed_process_that_paid_work_just_started():
    budget = MemoryBudget(600 * MB)
    kept, other = Warmed(budget, "kept"), Warmed(budget, "other")
    budget.note_start(kept, is_paid=True)
    (unpaid,) = await started(budget, 600, is_paid=False)
    assert (unpaid.runs, kept.is_running) == (False, True)
    (light,) = await started(budget, 520, is_paid=False)
    assert (light.runs, kept.is_running, other.is_running) == (True, True, False)
    await light.end()
    # Later it may.
    kept.paid_start_at -= 60
    await until(lambda: unpaid.runs)
    assert not kept.is_running
    await unpaid.end()
    kept.paid_start_at, kept.is_running = time.monotonic(), True
    (paid,) = await started(budget, 600)
    assert (paid.runs, kept.is_running) == (True, False)
    await paid.end()


async def test_the_own_warmed_process_counts_before_it_runs():
    budget = MemoryBudget(600 * MB)
    sandbox = Warmed(budget, "read", warmed=200, is_running=False)
    (other,) = await started(budget, 300)
    (child,) = await started(budget, 200, owner=sandbox)
    assert not child.runs
    await other.end()
    assert child.runs
    await child.end()


# -- estimates


def test_a_child_reserves_its_limit_until_one_of_its_kind_has_ended():
    sandbox = Warmed(MemoryBudget(600 * MB), "read")
    assert sandbox.reserve().need_bytes == 600 * MB
    sandbox.learn(peak=80, size=1000)
    assert sandbox.reserve(size=1000).need_bytes == 108 * MB
    assert sandbox.reserve(size=10).need_bytes == 108 * MB
    # A larger input may take as much more.
    assert sandbox.reserve(size=2000).need_bytes == 208 * MB
    assert sandbox.reserve(size=100_000).need_bytes == 600 * MB
    sandbox.learn(peak=40, size=100_000)
    assert 100 * MB < sandbox.reserve(size=100_000).need_bytes < 108 * MB
    assert sandbox.reserve(size=100_000, most=100).need_bytes == 100 * MB


def test_small_inputs_that_took_much_are_forgotten_by_usual_ones():
    sandbox = Warmed(MemoryBudget(600 * MB), "read")
    sandbox.learn(peak=30, size=300_000)
    usual = sandbox.reserve(size=300_000).need_bytes
    sandbox.learn(peak=550, size=900)
    assert sandbox.reserve(size=300_000).need_bytes == 600 * MB
    for _ in range(80):
        sandbox.learn(peak=30, size=300_000)
    assert sandbox.reserve(size=300_000).need_bytes < usual + MB


@pytest.mark.parametrize("peak_bytes", [-(10**30), 1, 10**306])
def test_a_reported_peak_counts_within_the_limits_of_the_child(peak_bytes):
    sandbox = Warmed(MemoryBudget(600 * MB), "read")
    sandbox.report(peak_bytes, most=200)
    assert 0 < sandbox.reserve(size=1000).need_bytes <= 200 * 1.25 * MB + 8 * MB
    assert sandbox.reserve(size=10**15).need_bytes <= 600 * MB


@pytest.mark.parametrize("used", ["-1 0", "nan 0", "1e999 0", "0.1 many", "0.1"])
def test_a_report_without_plain_numbers_does_not_count(used):
    with pytest.raises(ValueError):
        Usage.parse(f"done\n{used}".encode())


def test_an_unusual_peak_is_forgotten_slowly():
    sandbox = Warmed(MemoryBudget(600 * MB), "read")
    sandbox.learn(peak=400)
    sandbox.learn(peak=40)
    assert 400 * MB < sandbox.reserve().need_bytes < 600 * MB
    for _ in range(60):
        sandbox.learn(peak=40)
    assert sandbox.reserve().need_bytes < 70 * MB


def test_a_machine_has_its_memory_less_the_gateways(monkeypatch):
    budget = MemoryBudget(1)
    for whole, own in ((16_000, 15_650), (1_000, 650), (512, 256)):
        monkeypatch.setattr(machine, "find_memory_bytes", lambda whole=whole: whole * MB)
        budget.resize(0)
        assert budget.total_bytes == own * MB
    budget.resize(400 * MB)
    assert budget.total_bytes == 400 * MB


# -- children that outgrow their reservation


class Memory:
    """The resident memory of children, in megabytes, as the kernel would report it."""

    def __init__(self):
        self.sizes = {}

    def __call__(self, statm):
        return self.sizes[statm] * MB

    def show(self, budget, child, megabytes):
        statm = os.open(os.devnull, os.O_RDONLY)
        self.sizes[statm] = megabytes
        budget.note_child(child.reservation, statm)
        return statm


async def test_the_newest_child_is_repeated_with_its_limit_if_they_outgrow_the_budget():
    budget = MemoryBudget(600 * MB, 1000 * MB, memory := Memory())
    sandbox = Warmed(budget, "read", warmed=20)
    first, second = await started(budget, 50, 50, most=560, owner=sandbox)
    memory.show(budget, first, 60)
    statm = memory.show(budget, second, 575)
    with pytest.raises(GaveWay):
        await second.task
    assert (second.reservation.need_bytes, first.runs) == (560 * MB, True)
    # Its memory is known.
    assert sandbox.reserve(size=0).need_bytes > 555 * MB
    again = asyncio.create_task(second.run())
    await first.end()
    # It still has its memory: the kernel takes a moment to free it.
    assert not second.runs
    memory.sizes[statm] = 0
    await until(lambda: second.runs)
    second.ends.set()
    await again


async def test_unpaid_children_give_way_to_a_paid_one_that_grows():
    budget = MemoryBudget(600 * MB, 1000 * MB, memory := Memory())
    sandbox = Warmed(budget, "read", warmed=20)
    (unpaid,) = await started(budget, 100, owner=sandbox, is_paid=False)
    (paid,) = await started(budget, 50, most=560, owner=sandbox)
    memory.show(budget, unpaid, 60)
    memory.show(budget, paid, 575)
    with pytest.raises(GaveWay):
        await unpaid.task
    assert paid.runs
    await paid.end()


async def test_a_child_is_measured_before_another_one_starts():
    budget = MemoryBudget(600 * MB, 1000 * MB, memory := Memory())
    sandbox = Warmed(budget, "read", warmed=20)
    (paid,) = await started(budget, 50, most=500, owner=sandbox)
    statm = memory.show(budget, paid, 60)
    memory.sizes[statm] = 510
    (unpaid,) = await started(budget, 150, is_paid=False)
    assert (paid.runs, unpaid.runs) == (True, False)
    await paid.end()
    assert unpaid.runs
    await unpaid.end()


async def test_a_child_that_grows_into_free_memory_goes_on_and_others_wait():
    budget = MemoryBudget(600 * MB, 1000 * MB, memory := Memory())
    sandbox = Warmed(budget, "read", warmed=20)
    first, second = await started(budget, 50, 50, most=500, owner=sandbox)
    memory.show(budget, first, 320)
    memory.show(budget, second, 60)
    await until(lambda: first.reservation.need_bytes == 300 * MB)
    (third,) = await started(budget, 400, owner=sandbox)
    assert (first.runs, second.runs, third.runs) == (True, True, False)
    await first.end()
    await until(lambda: third.runs)
    await second.end()
    await third.end()


async def test_a_child_that_the_machine_cannot_have_is_out_of_memory():
    budget = MemoryBudget(300 * MB, 600 * MB, memory := Memory())
    sandbox = Warmed(budget, "read", warmed=100)
    (child,) = await started(budget, 900, owner=sandbox)
    statm = memory.show(budget, child, 590)
    # More than the budget, but it is alone.
    await asyncio.sleep(0.1)
    assert child.runs
    memory.sizes[statm] = 610
    async with asyncio.timeout(60):
        with pytest.raises(SandboxEnded, match="out of memory"):
            await child.task


def test_without_proc_each_child_reserves_its_limit():
    budget = MemoryBudget(600 * MB)
    sandbox = Warmed(budget, "read")
    sandbox.learn(peak=80)
    budget.note_child(sandbox.reserve(), None)
    assert sandbox.reserve().need_bytes == 600 * MB


# -- waits


async def test_work_is_notified_while_it_waits_and_only_then():
    budget, told = MemoryBudget(600 * MB), []
    (holder,) = await started(budget, 500)
    with notify_of_waits(told.append):
        (light,) = await started(budget, 100)
        assert told == []
        (waiting,) = await started(budget, 600)
    assert told == [1]
    await light.end()
    await holder.end()
    assert (waiting.runs, told) == (True, [1, -1])
    await waiting.end()
