"""A provider's limits at once and per minute: never exceeded, in order, without busy loops."""

import asyncio

import attrs
import pytest

from gateway import Pending, Traits
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, TEXT, JobApi, PlainApi, opened


def counted(shop):
    """Count the dispatcher's calls of the queue, and the returned leases."""
    counts = {"lease": 0, "give_back": 0}

    def count(name):
        real = getattr(shop.store.queue, name)

        async def counting(*args, **more):
            counts[name] += 1
            return await real(*args, **more)

        setattr(shop.store.queue, name, counting)

    for name in counts:
        count(name)
    return counts


@pytest.mark.parametrize("most", [1, 3])
async def test_a_provider_generates_no_more_at_once_than_it_says(tmp_path, clock, most):
    running, peak, order = set(), [], []

    async def submit(request, job):
        running.add(job.task_id)
        order.append(job.task_id)
        peak.append(len(running))
        await asyncio.sleep(0.01)
        running.discard(job.task_id)
        return TEXT

    api = PlainApi(*[submit] * 12, max_concurrency=most)
    async with opened(tmp_path, api, clock, workers=8, start=False) as shop:
        counts = counted(shop)
        tasks = await shop.sold(12)
        shop.pool.start()
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}
        assert {(await shop.ended(one)).attempt for one in tasks} == {1}
    assert max(peak) == most
    assert order == tasks  # first come, first served
    # On a busy machine an attempt may take its slot only after the next count.
    assert counts["give_back"] <= len(tasks) // 4  # hardly anybody is claimed in vain
    assert counts["lease"] <= 4 * len(tasks)


async def test_jobs_count_as_long_as_they_are_under_way(tmp_path, clock):
    api = JobApi(max_concurrency=3)
    async with opened(tmp_path, api, clock, workers=8) as shop:
        counts = counted(shop)
        tasks = await shop.sold(6)
        await until(lambda: len(set(api.polls)) == 3)
        await asyncio.sleep(0.3)
        assert len(api.submits) == 3
        assert counts["lease"] < 30  # nothing can start: nobody asks in circles
        api.to_poll = [TEXT]
        await until(lambda: len(api.submits) == 4)
        api.usual = TEXT
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}
    assert api.submits == tasks


async def test_a_provider_is_asked_no_more_often_a_minute_than_it_says(tmp_path, clock):
    clock.frozen_at = clock()
    api = PlainApi(submits_per_minute=3)
    async with opened(tmp_path, api, clock, workers=8) as shop:
        counts = counted(shop)
        tasks = []
        for _ in range(8):
            tasks.append(await shop.accept(PAPER))
            clock.offset_s += 0.001
        for expected in (3, 6, 8):
            await until(lambda: len(api.submits) == expected)  # noqa: B023
            await asyncio.sleep(0.1)
            assert len(api.submits) == expected
            clock.offset_s += 59
            shop.pool.wake()
            await asyncio.sleep(0.1)
            assert len(api.submits) == expected
            clock.offset_s += 1.1
            shop.pool.wake()
        assert {(await shop.ended(one)).attempt for one in tasks} == {1}
    assert api.submits == tasks
    assert counts["give_back"] == 0
    assert counts["lease"] < 60


async def test_a_provider_that_rests_keeps_nobody_elses_task_waiting(tmp_path, clock):
    """And a resting provider causes no busy loop: turns of the dispatcher are counted."""
    api, other = JobApi(max_concurrency=1), PlainApi()
    async with opened(tmp_path, api, clock, workers=4) as shop:
        plain = attrs.evolve(PAPER, slug="plain")
        shop.catalog.register(plain, other, "test")
        counts = counted(shop)
        await shop.sold(20)
        await until(lambda: api.polls)
        for _ in range(10):
            assert (await shop.ended(await shop.accept(plain))).status == "completed"
        await asyncio.sleep(0.2)
        assert len(api.submits) == 1
        assert counts["lease"] < 100


async def test_resumed_jobs_need_no_room_at_their_provider(tmp_path, clock):
    api = JobApi(max_concurrency=2)
    async with opened(tmp_path, api, clock) as shop:
        tasks = await shop.sold(2)
        await until(lambda: len(set(api.polls)) == 2)
        await shop.crash()
    api.traits, api.usual = Traits(max_concurrency=1), Pending()
    api.polls.clear()
    async with opened(tmp_path, api, clock, workers=1) as shop:
        await until(lambda: len(set(api.polls)) == 2)
        api.usual = TEXT
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}
    assert len(api.submits) == 2
