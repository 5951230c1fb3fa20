"""Draining: work that can end ends, the rest is returned and costs nothing."""

import asyncio

import attrs

from gateway import Handle, SubmitUncertain
from gateway.tasks.delivery import Delivery
from tests.patience import until
from tests.unit.tasks.engine_shop import (
    PAPER,
    TEXT,
    Gate,
    PlainApi,
    drained,
    opened,
    passed,
    stopped,
)


async def test_draining_lets_the_lanes_finish(shop):
    gate = Gate()
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    draining = asyncio.create_task(shop.pool.drain(grace_s=5))
    await asyncio.sleep(0.02)
    waiting = await shop.accept()
    gate.open.set()
    await draining
    assert (await shop.store.task(task_id)).status == "completed"
    assert (await shop.store.task(waiting)).status == "queued"


async def test_what_does_not_finish_in_time_is_given_back_and_costs_nothing(shop):
    gate = Gate()
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    await shop.pool.drain(grace_s=0.01)
    task = await shop.store.task(task_id)
    assert (task.status, task.attempt) == ("processing", 0)
    shop.pool = attrs.evolve(shop.pool)
    shop.pool.start()
    task = await shop.ended(task_id)
    assert (task.status, task.attempt) == ("completed", 1)


async def test_a_claim_under_way_is_given_back_as_well(shop):
    """The lease commits although its caller is cancelled; no worker has it then."""
    claim, claiming = shop.store.queue.lease, asyncio.Event()

    async def slowly(limit, **more):
        leases = await claim(limit, **more)
        if leases:
            claiming.set()
            await asyncio.sleep(0.1)
        return leases

    shop.store.queue.lease = slowly
    shop.pool.start()
    task_id = await shop.accept()
    await passed(claiming)
    await shop.pool.drain(grace_s=1)
    task = await shop.store.task(task_id)
    assert task.is_done or task.attempt == 0


async def test_who_only_waits_for_a_job_is_stopped_at_once(tmp_path, api, clock):
    async with opened(tmp_path, api, clock, timeout_s=3600) as shop:
        tasks = await shop.sold(5)
        await until(lambda: len(set(api.polls)) == 5)
        await drained(shop)
        rows = [await shop.row(one) for one in tasks]
        assert {(row["attempt"], row["lease_token"]) for row in rows} == {(1, None)}
        assert all(row["handle"] and row["sent_at"] for row in rows)
        assert [row["due_at"] for row in rows] == [row["created_at"] for row in rows]


async def test_who_comes_to_wait_while_draining_is_stopped_then(tmp_path, api, clock):
    gate = Gate(Handle(id="late"))
    api.to_submit = [gate]
    async with opened(tmp_path, api, clock, timeout_s=3600) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        draining = asyncio.create_task(shop.pool.drain(grace_s=3600))
        await asyncio.sleep(0.05)
        gate.open.set()
        await stopped(draining)
        assert '"late"' in (await shop.row(task_id))["handle"]


async def test_a_poll_under_way_is_cut_off_and_asked_again(tmp_path, api, clock):
    gate = Gate()
    api.to_poll, api.usual = [gate], TEXT
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        await drained(shop)
    async with opened(tmp_path, api, clock) as shop:
        assert (await shop.ended(task_id)).attempt == 1
    assert len(api.submits) == 1


async def test_a_poll_that_answers_a_stop_with_an_error_is_stopped_all_the_same(
    tmp_path, api, clock
):
    """As a cancelled POST does."""
    entered = asyncio.Event()

    async def uncertain(handle, job):
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise SubmitUncertain("cut off") from None

    api.usual = uncertain
    async with opened(tmp_path, api, clock, timeout_s=3600) as shop:
        await shop.accept(PAPER)
        await passed(entered)
        await drained(shop)


async def test_a_result_at_hand_is_brought_home_while_draining(tmp_path, api, clock, monkeypatch):
    fetched, gate = Delivery.fetch, Gate()

    async def slowly(self, result):
        await gate(None, None)
        return await fetched(self, result)

    monkeypatch.setattr(Delivery, "fetch", slowly)
    api.usual = TEXT
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        draining = asyncio.create_task(shop.pool.drain(grace_s=3600))
        await asyncio.sleep(0.05)
        gate.open.set()
        await stopped(draining)
        assert (await shop.store.task(task_id)).status == "completed"


async def test_a_claim_that_fails_while_stopping_does_not_keep_the_dispatcher(tmp_path, clock):
    claiming, go = asyncio.Event(), asyncio.Event()

    async def fails(limit, **more):
        claiming.set()
        await go.wait()
        raise OSError(28, "No space left on device")

    async with opened(tmp_path, PlainApi(), clock, start=False) as shop:
        shop.store.queue.lease = fails
        await shop.accept()
        shop.pool.start()
        await passed(claiming)
        draining = asyncio.create_task(shop.pool.drain(grace_s=0))
        await asyncio.sleep(0.02)
        go.set()
        await stopped(draining)


async def test_a_disk_that_refuses_to_take_leases_back_does_not_keep_the_gateway(
    tmp_path, api, clock
):
    async def fails(lease):
        raise OSError(28, "No space left on device")

    async with opened(tmp_path, api, clock) as shop:
        shop.store.queue.give_back = fails
        await shop.accept(PAPER)
        await until(lambda: api.polls)
        await drained(shop)
