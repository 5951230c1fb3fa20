"""Tasks of a provider that is off sale: they wait, they fail in time, and begun jobs go on."""

import asyncio

import pytest

from gateway import AccountProblem, ContentPolicy, Transient
from gateway.errors import ExecutionError
from gateway.web.readiness import Readiness
from tests.unit.tasks.engine_shop import PAPER, TEXT, PlainApi, opened, until

MINUTE_S = 60


async def test_repeated_failures_stop_sales_and_let_who_waits_rest(tmp_path, clock, settings):
    clock.frozen_at = clock()
    api = PlainApi(*[Transient("500")] * 8, idempotent_submit=True)
    async with opened(tmp_path, api, clock, workers=1) as shop:
        tasks = await shop.sold(4)
        while not shop.circuit.is_open:
            clock.offset_s += 0.02  # what a retry waits
            shop.pool.wake()
            await asyncio.sleep(0.01)
        asked = len(api.submits)
        settings.data_dir.mkdir(parents=True)
        with pytest.raises(ExecutionError, match="nothing was charged"):
            Readiness(settings, shop.catalog).check_serving("paper")
        assert list(shop.catalog) == []
        before = [(await shop.row(one))["attempt"] for one in tasks]
        for _ in range(5):
            clock.offset_s += 5 * MINUTE_S
            shop.pool.wake()
            await asyncio.sleep(0.05)
        assert len(api.submits) == asked
        assert [(await shop.row(one))["attempt"] for one in tasks] == before
        assert not any([(await shop.store.task(one)).is_done for one in tasks])
        api.script.clear()
        shop.circuit.try_again()
        shop.pool.wake()
        while not all([(await shop.store.task(one)).is_done for one in tasks]):
            clock.offset_s += 0.02
            await asyncio.sleep(0.01)
        assert {(await shop.store.task(one)).status for one in tasks} == {"completed"}
        assert len(list(shop.catalog)) == 2


async def test_who_waits_for_half_an_hour_is_told_so_and_owed_back(tmp_path, clock):
    clock.frozen_at = clock()
    api = PlainApi(AccountProblem("402: top up"))
    async with opened(tmp_path, api, clock, idle_s=0.05) as shop:
        first = await shop.ended(await shop.accept(PAPER))
        assert first.details == "provider_error"
        tasks = await shop.sold(20)  # paid just before it was known
        clock.offset_s += 30 * MINUTE_S
        shop.pool.wake()
        await asyncio.sleep(0.1)
        assert not any([(await shop.store.task(one)).is_done for one in tasks])
        clock.offset_s += 1
        shop.pool.wake()
        ended = [await shop.ended(one) for one in tasks]
    assert {(task.details, task.refund.amount_units) for task in ended} == {
        ("provider_error", 20_000)
    }
    assert len(api.submits) == 1


async def test_refusals_of_content_are_no_failures_of_the_provider(tmp_path, clock):
    api = PlainApi(*[ContentPolicy("no")] * 20)
    async with opened(tmp_path, api, clock) as shop:
        for _ in range(20):
            assert (await shop.ended(await shop.accept(PAPER))).details == "content_policy"
        assert not shop.circuit.is_open


async def test_jobs_under_way_end_although_the_circuit_is_open(jobs, api):
    tasks = await jobs.sold(3)
    await until(lambda: len(set(api.polls)) == 3)
    jobs.circuit.trip("402")
    api.usual = TEXT
    assert {(await jobs.ended(one)).status for one in tasks} == {"completed"}
    assert jobs.circuit.is_open


async def test_jobs_found_at_a_start_are_polled_although_the_circuit_is_open(tmp_path, api, clock):
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: api.polls)
        await shop.crash()
    api.usual = TEXT
    async with opened(tmp_path, api, clock, start=False) as shop:
        shop.circuit.trip("402")
        clock.offset_s += 3600
        shop.pool.start()
        assert (await shop.ended(task_id)).status == "completed"
