"""Work continues when its caller is cancelled, and its error then has no effect."""

import asyncio
import gc

import pytest

from gateway.concurrency.outliving import outlive


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
