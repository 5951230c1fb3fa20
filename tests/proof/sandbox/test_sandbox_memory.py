"""Real children share a memory budget."""

import asyncio

import pytest
import sandbox_functions

from gateway.sandbox import Sandbox, SandboxLimits
from gateway.sandbox.memory_budget import MemoryBudget, Reservation
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
    # What it took is known now.
    assert budget.reserve(read, size=5, most_bytes=450 * MB, is_paid=True).need_bytes > 300 * MB


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
