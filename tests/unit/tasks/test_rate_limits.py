"""Too many requests: the whole provider waits, and no attempt is lost."""

import asyncio

import pytest

from gateway import NotAccepted, RateLimited, Transient
from gateway.errors import ExecutionError
from gateway.running.readiness import Readiness
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, TEXT, PlainApi, opened


async def test_nobody_else_asks_a_provider_that_asked_to_wait(tmp_path, clock):
    clock.frozen_at = clock()
    api = PlainApi(RateLimited("later", retry_after_s=120))
    async with opened(tmp_path, api, clock) as shop:
        first = await shop.accept(PAPER)
        await until(lambda: api.submits)
        await shop.idle()
        more = await shop.sold(5)
        await asyncio.sleep(0.1)
        assert len(api.submits) == 1
        assert len(list(shop.catalog)) == 2  # on sale: two minutes are no reason to turn away
        clock.offset_s += 119
        shop.pool.wake()
        await asyncio.sleep(0.1)
        assert len(api.submits) == 1
        clock.offset_s += 1.1
        shop.pool.wake()
        assert {(await shop.ended(one)).attempt for one in [first, *more]} == {1}


@pytest.mark.parametrize("asked", [None, "10", float("nan"), -5, 0], ids=repr)
async def test_an_odd_wait_is_a_short_one(tmp_path, clock, asked):
    api = PlainApi(RateLimited("later", retry_after_s=asked))
    async with opened(tmp_path, api, clock, rate_limit_s=(0.01, 3600.0)) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 1, 2)


async def test_a_billed_submit_that_was_refused_may_be_sent_again_after_a_restart(tmp_path, clock):
    clock.frozen_at = clock()
    api = PlainApi(RateLimited("later", retry_after_s=60))
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: api.submits)
        await shop.idle()
        assert (await shop.row(task_id))["sent_at"] is None
        await shop.crash()
    clock.offset_s += 61
    async with opened(tmp_path, api, clock) as shop:
        assert (await shop.ended(task_id)).attempt == 1


@pytest.mark.parametrize("asked", [601, 10**9, float("inf")])
async def test_a_long_wait_takes_the_provider_off_sale(tmp_path, clock, settings, asked):
    clock.frozen_at = clock()
    api = PlainApi(RateLimited("tomorrow", retry_after_s=asked))
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: shop.circuit.is_open)
        assert list(shop.catalog) == []
        settings.data_dir.mkdir(parents=True)
        with pytest.raises(ExecutionError):
            Readiness(settings, shop.catalog, shop.store).check_serving("paper")
        clock.offset_s += 599
        assert not shop.circuit.is_due
        clock.offset_s += 3001
        assert shop.circuit.is_due
        shop.circuit.try_again()
        shop.pool.wake()
        assert (await shop.ended(task_id)).status == "completed"


async def test_a_task_that_waited_for_two_hours_fails(tmp_path, clock):
    clock.frozen_at = clock()
    api = PlainApi(*[RateLimited("later", retry_after_s=600)] * 99)
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        for submits in range(1, 13):
            await until(lambda: len(api.submits) == submits)  # noqa: B023
            await shop.idle()
            assert not (await shop.store.task(task_id)).is_done
            clock.offset_s += 600
            shop.pool.wake()
        task = await shop.ended(task_id)
    assert (task.status, task.details, task.attempt) == ("failed", "provider_error", 1)
    assert (task.refund.amount_units, len(api.submits)) == (20_000, 13)


async def test_a_refusal_between_failures_gives_no_attempt_back(tmp_path, clock):
    limited = RateLimited("later", retry_after_s=0.01)
    busy = Transient("no connection")
    api = PlainApi(busy, limited, busy, limited, limited, busy, TEXT)
    async with opened(tmp_path, api, clock, rate_limit_s=(0.01, 1.0)) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 4, 7)


async def test_a_vendor_that_is_too_busy_costs_an_attempt_and_is_left_alone(tmp_path, clock):
    clock.frozen_at = clock()
    api = PlainApi(*[NotAccepted("overloaded", retry_after_s=120)] * 9)
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        for submits in range(1, 4):
            await until(lambda: len(api.submits) == submits)  # noqa: B023
            await shop.idle()
            clock.offset_s += 119
            shop.pool.wake()
            await asyncio.sleep(0.1)
            assert len(api.submits) == submits
            clock.offset_s += 1.1
            shop.pool.wake()
        task = await shop.ended(task_id)
    assert (task.status, task.details, task.attempt) == ("failed", "provider_error", 4)


@pytest.mark.parametrize("asked", [None, 0.01, float("nan"), -1])
async def test_one_overload_is_tried_again(tmp_path, clock, asked):
    api = PlainApi(NotAccepted("overloaded", retry_after_s=asked))
    async with opened(tmp_path, api, clock, rate_limit_s=(0.01, 1.0), backoff_s=0.01) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 2, 2)
