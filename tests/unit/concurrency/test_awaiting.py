"""`EagerStart` runs a coroutine to its first wait; `outlive` leaves work running."""

import asyncio
import gc

import pytest

from gateway.concurrency.awaiting import EagerStart, outlive


async def test_work_that_never_waits_has_ended():
    async def work() -> str:
        return "done"

    begun = EagerStart(work())
    assert (begun.is_done, begun.result) == (True, "done")
    assert await begun == "done"


async def test_work_that_waits_goes_on_when_it_is_awaited():
    gate, seen = asyncio.Event(), []

    async def work() -> str:
        seen.append("began")
        await gate.wait()
        await asyncio.sleep(0)
        return "done"

    begun = EagerStart(work())
    assert (begun.is_done, seen) == (False, ["began"])
    asyncio.get_running_loop().call_soon(gate.set)
    assert await begun == "done"
    assert begun.is_done


@pytest.mark.parametrize("waits", [False, True])
async def test_an_error_comes_out_of_the_step_that_raises_it(waits):
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        raise ValueError("broken")

    if not waits:
        with pytest.raises(ValueError, match="broken"):
            EagerStart(work())
        return
    begun = EagerStart(work())
    with pytest.raises(ValueError, match="broken"):
        await begun


async def test_a_cancellation_reaches_the_work():
    ended = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            # The end may wait, too.
            await asyncio.sleep(0)
            ended.append("ended")

    begun = EagerStart(work())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await begun
    assert ended == ["ended"]


async def test_a_timeout_that_began_in_the_first_step_ends_its_own_block_only():
    async def work() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.get_running_loop().create_future()
        except TimeoutError:
            return "in time"
        return "never"

    begun = EagerStart(work())
    async with asyncio.timeout(60):
        assert await begun == "in time"


async def test_work_may_go_on_after_an_error_that_it_catches():
    async def work() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "went on"

    async def caller() -> str:
        return await EagerStart(work())

    running = asyncio.create_task(caller())
    await asyncio.sleep(0)
    running.cancel()
    assert await running == "went on"


async def _work(may_end: asyncio.Event, error: Exception | None) -> str:
    await may_end.wait()
    if error is not None:
        raise error
    return "done"


@pytest.mark.parametrize("error", [None, ValueError("a fault")])
async def test_work_goes_on_without_its_caller(error):
    complaints, may_end = [], asyncio.Event()
    asyncio.get_running_loop().set_exception_handler(lambda _, said: complaints.append(said))
    work = asyncio.create_task(_work(may_end, error))
    caller = asyncio.create_task(outlive(work))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not work.done()
    may_end.set()
    await asyncio.wait((work,))
    del work
    await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
    assert complaints == []


async def test_the_caller_gets_the_result_or_the_error():
    may_end = asyncio.Event()
    may_end.set()
    assert await outlive(asyncio.create_task(_work(may_end, None))) == "done"
    with pytest.raises(ValueError, match="a fault"):
        await outlive(asyncio.create_task(_work(may_end, ValueError("a fault"))))
    ended = asyncio.create_task(_work(may_end, None))
    await ended
    assert await outlive(ended) == "done"
