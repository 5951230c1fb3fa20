"""Children that outgrow their reservation."""

import asyncio
import os

import pytest

from gateway.sandbox import SandboxEnded
from gateway.sandbox.memory_budget import MemoryBudget
from gateway.sandbox.memory_reservation import GaveWay
from tests.patience import until
from tests.unit.sandbox.memory_calls import MB, Warmed, started


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
