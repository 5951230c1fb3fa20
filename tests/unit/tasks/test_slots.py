"""Slots: a working attempt has one, one that waits for a job has none, and none gets lost."""

import asyncio

from gateway.tasks.delivery import Delivery
from gateway.tasks.resources import Slots
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, TEXT, Gate, opened


async def test_waiting_for_a_job_takes_no_lane(tmp_path, api, clock):
    async with opened(tmp_path, api, clock, workers=2) as shop:
        tasks = await shop.sold(10)
        await until(lambda: len(set(api.polls)) == 10)
        assert shop.pool.resources.slots.free == 2
        api.usual = TEXT
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}
        await shop.idle()
        assert shop.pool.resources.slots.free == 2


async def test_who_only_waits_keeps_nobody_from_a_lane(tmp_path, api, clock):
    async with opened(tmp_path, api, clock, workers=1) as shop:
        waiting = await shop.accept(PAPER)
        await until(lambda: api.polls)

        async def at_once(request, job):
            return TEXT

        api.to_submit = [at_once]
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
        assert not (await shop.store.task(waiting)).is_done


async def test_no_more_than_the_lanes_bring_results_home_at_once(tmp_path, api, clock, monkeypatch):
    gate = Gate()

    async def fetched(self, result):
        return await gate(None, None) and result

    monkeypatch.setattr(Delivery, "fetch", fetched)
    async with opened(tmp_path, api, clock, workers=2) as shop:
        tasks = await shop.sold(8)
        await until(lambda: len(set(api.polls)) == 8)
        api.usual = TEXT
        await until(lambda: gate.running == 2)
        await asyncio.sleep(0.1)
        assert gate.running == 2
        gate.open.set()
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}
    assert gate.most == 2


async def test_a_place_is_handed_to_who_waits_longest():
    slots, order = Slots(0, on_free=lambda: order.append("free")), []

    async def work(name):
        await slots.wait()
        order.append(name)

    working = [asyncio.create_task(work(name)) for name in "abc"]
    await asyncio.sleep(0)
    working[1].cancel()
    await asyncio.sleep(0)
    slots.release()
    slots.release()
    await asyncio.gather(*working, return_exceptions=True)
    assert order == ["a", "c"]
    slots.release()
    assert (order[-1], slots.free) == ("free", 1)


async def test_a_place_given_to_who_stops_just_then_goes_to_the_next():
    slots, got = Slots(0, on_free=lambda: None), []

    async def work(name):
        await slots.wait()
        got.append(name)

    first, second = (asyncio.create_task(work(name)) for name in "ab")
    await asyncio.sleep(0)
    slots.release()
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert (got, slots.free) == (["b"], 0)


async def test_a_lane_that_is_stopped_while_it_waits_lends_nobody_a_place():
    """It comes back without one; its return must not free another one's."""
    slots, got = Slots(1, on_free=lambda: None), []

    async def leaves():
        slots.take()
        try:
            async with slots.released():
                await asyncio.Event().wait()
        finally:
            slots.release()

    leaving = asyncio.create_task(leaves())
    await asyncio.sleep(0)
    slots.take()  # somebody works

    async def work():
        await slots.wait()
        got.append(1)

    waiting = asyncio.create_task(work())
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert (got, slots.free) == ([], 0)
    slots.release()
    await waiting
    assert (got, slots.free) == ([1], 0)
