"""TaskNotifications: waiters learn of their task's end; LongPolls are tested by the route."""

import asyncio
import random

import pytest

from gateway.tasks.notifications import TaskNotifications, seconds_to_poll

_NEVER_S = 3600.0


@pytest.fixture
def notifications():
    return TaskNotifications()


async def _is_woken(waiting) -> bool:
    """Let everything runnable run; returns whether the wait ended."""
    for _ in range(5):
        await asyncio.sleep(0)
    return waiting.done()


async def test_everybody_who_waits_for_a_task_is_woken_and_nobody_else(notifications):
    with (
        notifications.subscribed("a") as first,
        notifications.subscribed("a") as second,
        notifications.subscribed("b") as other,
    ):
        waiting = [asyncio.create_task(one.wait(_NEVER_S)) for one in (first, second, other)]
        assert not await _is_woken(waiting[0])
        notifications.post("a")
        assert [await _is_woken(one) for one in waiting] == [True, True, False]
        notifications.post_all()
        assert await _is_woken(waiting[2])


async def test_what_is_posted_between_reading_and_waiting_is_not_lost(notifications):
    with notifications.subscribed("a") as subscription:
        notifications.post("a")
        async with asyncio.timeout(60):
            await subscription.wait(_NEVER_S)
        again = asyncio.create_task(subscription.wait(_NEVER_S))
        assert not await _is_woken(again)
        again.cancel()


async def test_a_wait_ends_by_itself(notifications):
    with notifications.subscribed("a") as subscription:
        await subscription.wait(0.0)


async def test_what_nobody_waits_for_is_forgotten(notifications):
    with notifications.subscribed("a"):
        pass
    notifications.post("a")
    notifications.post_all()
    assert not notifications._waiting


async def test_looks_fall_on_few_moments_and_are_never_late(monkeypatch):
    loop, dice = asyncio.get_running_loop(), random.Random(7)
    moments = set()
    for _ in range(1_000):
        now = dice.random() * 1e6
        with monkeypatch.context() as patched:
            patched.setattr(loop, "time", lambda now=now: now)
            left_s = seconds_to_poll(10.0)
        assert 9.6 < left_s <= 10.0
        moments.add(round((now + left_s) % 10.0, 3) % 10.0)
    assert len(moments) <= 32
