"""Real children share a memory budget."""

import asyncio

import pytest
import sandbox_functions

from gateway.sandbox import Sandbox, SandboxEnded, SandboxLimits, SandboxLost, memory_budget
from gateway.sandbox.child import machine
from gateway.sandbox.memory_budget import MemoryBudget
from gateway.sandbox.memory_reservation import GaveWay, Reservation
from gateway.sandbox.sandbox import Meter, metered
from tests.patience import until

MB = 10**6


@pytest.fixture
def sandbox():
    """Makes sandboxes for functions of `sandbox_functions`, and closes them."""
    made = []

    def make(name, budget, **limits):
        function = f"{sandbox_functions.__name__}:{name}"
        made.append(Sandbox(function=function, limits=SandboxLimits(**limits), budget=budget))
        return made[-1]

    yield make
    for one in made:
        one.close()


def estimate(budget, sandbox):
    """Return the memory that the next child reserves."""
    limits = {"most_bytes": 450 * MB, "is_paid": True, "at_once": 1}
    return budget.reserve(sandbox, size=5, **limits).need_bytes


async def spans(sandbox, *sizes):
    """Return when each call began and ended, in order of their ends."""
    answers = await asyncio.gather(*(sandbox.call(f"{size:05}") for size in sizes))
    return sorted((tuple(map(float, answer.split())) for answer in answers), key=lambda one: one[1])


async def test_children_of_unknown_size_run_one_after_the_other_then_light_ones_together(sandbox):
    read = sandbox("hold_memory", MemoryBudget(400 * MB), memory_bytes=350 * MB)
    first, second = await spans(read, 10, 10)
    assert first[1] <= second[0]
    first, second = await spans(read, 10, 10)
    assert first[1] > second[0]


async def test_a_child_that_was_expected_to_be_light_is_called_again_alone(sandbox):
    budget = MemoryBudget(500 * MB)
    read = sandbox("hold_memory", budget, memory_bytes=450 * MB)
    await spans(read, 10)
    first, second = await spans(read, 300, 300)
    assert first[1] <= second[0]
    # Its memory is known now.
    assert estimate(budget, read) > 300 * MB


async def test_an_idle_warmed_process_ends_for_another_call_and_starts_again(sandbox):
    budget = MemoryBudget(300 * MB)
    echo, read = sandbox("echo", budget), sandbox("hold_memory", budget)
    assert await echo.call(b"a") == b"a"
    assert echo.is_running
    await spans(read, 10)
    assert (echo.is_running, read.is_running) == (False, True)
    assert await echo.call(b"b") == b"b"


async def test_a_cancelled_call_leaves_its_memory(sandbox):
    budget = MemoryBudget(400 * MB)
    slow = sandbox("sleep", budget)
    call = asyncio.create_task(slow.call())
    await until(lambda: slow.is_running)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    whole = Reservation(need_bytes=400 * MB, most_bytes=400 * MB, is_paid=True)
    async with asyncio.timeout(60), budget.held(whole):
        assert not slow.is_running


@pytest.mark.parametrize("used", [f"0 -{10**30}", f"0 1{'0' * 90}", "-1 1", "nan 1", "1"])
async def test_an_exploited_child_can_report_no_memory_that_lasts(sandbox, used):
    budget = MemoryBudget(400 * MB)
    read = sandbox("end_with", budget, memory_bytes=350 * MB)
    with pytest.raises(SandboxEnded):
        await read.call(f"done\n{used}\n1 1")
    assert 0 <= estimate(budget, read) <= 450 * MB
    known = budget._known[read.function]
    assert 0 < known.shared_bytes <= known.warmed_bytes < 100 * MB
    assert await read.call("") == b"done"


async def test_the_call_that_starts_the_warmed_process_pays_its_load(sandbox):
    read = sandbox("echo", MemoryBudget(400 * MB))
    with metered(first := Meter()):
        await read.call(b"a")
    with metered(second := Meter()):
        await read.call(b"a")
    assert first.cpu_s > second.cpu_s


async def test_a_load_without_memory_for_it_is_worth_another_try(sandbox, monkeypatch):
    monkeypatch.setattr(memory_budget, "_UNPAID_WAIT_S", 0.05)
    budget = MemoryBudget(400 * MB)
    whole = Reservation(need_bytes=400 * MB, most_bytes=400 * MB, is_paid=True)
    async with budget.held(whole):
        with pytest.raises(SandboxLost):
            await sandbox("echo", budget).load()


async def test_a_child_that_gave_way_twice_is_worth_another_try(sandbox, monkeypatch):
    read = sandbox("echo", MemoryBudget(400 * MB))

    async def give_way(*_):
        raise GaveWay

    monkeypatch.setattr(Sandbox, "_call_once", give_way)
    with pytest.raises(SandboxLost):
        await read.call(b"a")


async def test_a_child_cannot_take_more_address_space_than_the_machine_has(sandbox):
    """The gateway need not watch it."""
    read = sandbox("take_addresses", MemoryBudget(), memory_bytes=10**13)
    with pytest.raises(SandboxEnded, match="out of memory"):
        await read.call(str(machine.find_budget_bytes()))
    assert await read.call("1000000") == b"taken"
