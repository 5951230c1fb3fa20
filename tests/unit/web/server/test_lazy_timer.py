"""A timer that costs one clock read per start and stop."""

import asyncio

import pytest

from gateway.web.server.connection_limits import LazyTimer

SHORT_S = 0.05


@pytest.fixture
async def timed():
    """A timer's settings, whether it has expired, and the timer."""
    longest, expired = {"s": SHORT_S}, asyncio.Event()
    timer = LazyTimer(lambda: longest["s"], expired.set)
    yield longest, expired, timer
    timer.end()


async def test_it_calls_once_the_time_is_over(timed):
    _, expired, timer = timed
    began = asyncio.get_running_loop().time()
    timer.start()
    async with asyncio.timeout(60):
        await expired.wait()
    assert asyncio.get_running_loop().time() - began >= SHORT_S


async def test_it_is_silent_before_its_start_and_after_its_stop(timed):
    _, expired, timer = timed
    await asyncio.sleep(3 * SHORT_S)
    timer.start()
    timer.stop()
    await asyncio.sleep(3 * SHORT_S)
    assert not expired.is_set()


async def test_a_start_begins_anew_and_a_longer_time_counts_at_once(timed):
    longest, expired, timer = timed
    timer.start()
    longest["s"] = 60
    timer.start()
    await asyncio.sleep(3 * SHORT_S)
    assert not expired.is_set()


async def test_a_shorter_time_counts_at_once_where_it_is_said(timed):
    longest, expired, timer = timed
    longest["s"] = 600
    timer.start_shorter()
    longest["s"] = SHORT_S
    timer.start_shorter()
    async with asyncio.timeout(60):
        await expired.wait()


async def test_nothing_is_called_after_its_end():
    expired = asyncio.Event()
    timer = LazyTimer(lambda: SHORT_S, expired.set)
    timer.start()
    timer.end()
    await asyncio.sleep(3 * SHORT_S)
    assert not expired.is_set()
