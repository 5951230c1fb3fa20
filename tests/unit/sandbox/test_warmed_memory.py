"""Warmed processes give up their memory when others need it."""

import time

from gateway.sandbox.memory_budget import MemoryBudget
from tests.patience import until
from tests.unit.sandbox.memory_calls import MB, Warmed, started


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
