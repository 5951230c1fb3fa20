"""A provider on trial: one generation at a time until one has worked."""

import asyncio

import pytest

from gateway import AccountProblem
from gateway.catalog.upstream import Upstream
from tests.patience import until
from tests.unit.tasks.engine_shop import TEXT, Gate, PlainApi, opened


def put_on_trial(shop):
    shop.circuit.trip("402: top up")
    shop.circuit.try_again()
    assert shop.circuit.is_on_trial


def test_on_trial_there_is_room_for_one_and_for_none_beside_it(clock):
    upstream = Upstream.of(PlainApi(), "test", now=clock, slots=4)
    assert upstream.free_submits == 4
    upstream.circuit.trip("402: top up")
    assert (upstream.free_submits, upstream.wait_s) == (0, float("inf"))
    upstream.circuit.try_again()
    assert (upstream.free_submits, upstream.wait_s) == (1, 0)
    with upstream.pace.slot():
        assert (upstream.free_submits, upstream.wait_s) == (0, float("inf"))
        upstream.circuit.succeeded()
        assert (upstream.free_submits, upstream.wait_s) == (3, 0)


async def test_on_trial_one_is_asked_for_and_after_its_success_all_at_once(tmp_path, clock):
    first, others = Gate(result=TEXT), Gate(result=TEXT)
    api = PlainApi(first, *[others] * 3)
    async with opened(tmp_path, api, clock, workers=4) as shop:
        put_on_trial(shop)
        tasks = await shop.sold(4)
        await until(lambda: first.running)
        shop.pool.wake()
        await asyncio.sleep(0.1)
        assert (len(api.submits), others.running) == (1, 0)
        first.open.set()
        await until(lambda: others.running == 3)
        others.open.set()
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}
        assert not shop.circuit.is_on_trial


async def test_on_trial_a_job_that_is_only_waited_for_keeps_the_others_back(tmp_path, clock, api):
    async with opened(tmp_path, api, clock, workers=4) as shop:
        put_on_trial(shop)
        tasks = await shop.sold(4)
        await until(lambda: len(api.polls) > 3)
        assert len(api.submits) == 1
        api.usual = TEXT
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}


@pytest.mark.parametrize("error", [AccountProblem("402"), KeyError("odd")], ids=repr)
async def test_a_trial_that_fails_costs_nobody_else_anything(tmp_path, clock, error):
    api = PlainApi(*[error] * 4)
    async with opened(tmp_path, api, clock, workers=4, start=False) as shop:
        tasks = await shop.sold(4)
        put_on_trial(shop)
        shop.pool.start()
        await until(lambda: shop.circuit.is_open)
        await shop.idle()
        rows = [await shop.row(one) for one in tasks]
    assert len(api.submits) == 1
    assert sorted(row["attempt"] for row in rows) == [0, 0, 0, 1]
