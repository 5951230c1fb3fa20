"""The memory that all sandboxed processes of a gateway share."""

import asyncio
import contextlib
import random

import pytest

from gateway.errors import ChecksFull
from gateway.sandbox import memory_budget
from gateway.sandbox.memory_budget import MemoryBudget
from gateway.sandbox.memory_reservation import notify_of_waits
from tests.unit.sandbox.memory_calls import MB, Warmed, is_free, settle, started


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


def test_processes_idle_less_if_the_memory_is_short():
    small, large = MemoryBudget(total_bytes=256 * MB), MemoryBudget(total_bytes=724 * MB)
    assert small.idle_s(300.0) == 30.0
    assert small.idle_s(5.0) == 5.0
    assert large.idle_s(300.0) == 300.0
