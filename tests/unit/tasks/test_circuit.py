"""Tasks of a provider that is off sale: they wait, they fail in time, and started jobs continue."""

import asyncio

import pytest

from gateway import (
    AccountProblem,
    ContentPolicy,
    HandleLost,
    JobFailed,
    LinkDead,
    ResultUnusable,
    SubmitUncertain,
    Transient,
)
from gateway.errors import ExecutionError
from gateway.running.readiness import Readiness
from gateway_testing.facts import ENDPOINT
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, PICTURE, TEXT, Gate, PlainApi, opened, passed

MINUTE_S = 60
HOUR_S = 3600


async def test_repeated_failures_stop_sales_and_let_who_waits_rest(tmp_path, clock, settings):
    clock.frozen_at = clock()
    api = PlainApi(*[Transient("500")] * 8, idempotent_submit=True)
    async with opened(tmp_path, api, clock, workers=1, timeout_s=HOUR_S) as shop:
        tasks = await shop.sold(4)
        while not shop.circuit.is_open:
            clock.offset_s += 0.02  # what a retry waits
            shop.pool.wake()
            await asyncio.sleep(0.01)
        asked = len(api.submits)
        settings.data_dir.mkdir(parents=True)
        with pytest.raises(ExecutionError, match="does not work now"):
            Readiness(settings, shop.catalog, shop.store).check_serving("paper")
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


@pytest.mark.parametrize(
    "error", [JobFailed("it failed"), HandleLost("gone"), ResultUnusable("too large")], ids=repr
)
async def test_a_model_whose_jobs_fail_takes_only_itself_off_sale(tmp_path, clock, error):
    api = PlainApi(*[error] * 50)
    async with opened(tmp_path, api, clock) as shop:
        paper = shop.catalog["paper"]
        await shop.sold(5)
        await until(lambda: paper.circuit.is_open)
        assert not shop.circuit.is_open
        assert [one.slug for one in shop.catalog] == [ENDPOINT.slug]
        await shop.idle()
        api.script = [PICTURE]
        assert (await shop.ended(await shop.accept())).status == "completed"


@pytest.mark.parametrize(
    "error", [LinkDead("404"), SubmitUncertain("no answer"), TimeoutError("slow")], ids=repr
)
async def test_what_concerns_all_models_takes_the_provider_off_sale(tmp_path, clock, error):
    api = PlainApi(*[error] * 50)
    async with opened(tmp_path, api, clock) as shop:
        paper = shop.catalog["paper"]
        await shop.sold(5)
        await until(lambda: shop.circuit.is_open)
        assert not paper.circuit.is_open
        assert list(shop.catalog) == []


async def test_a_model_on_trial_is_asked_one_task_at_a_time(tmp_path, clock):
    clock.frozen_at = clock()
    gate = Gate(result=TEXT)
    api = PlainApi(gate, PICTURE, *[gate] * 3, max_concurrency=4)
    async with opened(tmp_path, api, clock, workers=4) as shop:
        paper = shop.catalog["paper"]
        paper.circuit.trip("JobFailed")
        paper.circuit.try_again()
        tasks = await shop.sold(4)
        await passed(gate.entered)
        # Another model is not delayed.
        assert (await shop.ended(await shop.accept())).status == "completed"
        assert (gate.most, len(api.submits)) == (1, 2)
        gate.open.set()
        assert {(await shop.ended(one)).status for one in tasks} == {"completed"}


async def test_a_job_that_its_vendor_loses_is_not_made_a_fourth_time(tmp_path, clock):
    """The job itself may crash the vendor's server each time."""
    api = PlainApi(*[HandleLost("The server has no such job.")] * 4, idempotent_submit=True)
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.details, len(api.submits)) == ("failed", "provider_error", 3)


async def test_who_paid_just_before_a_spent_account_was_known_is_told_at_once(tmp_path, clock):
    clock.frozen_at = clock()
    held = Gate(result=AccountProblem("402: top up"))

    async def refused(request, job):
        raise await held(request, job)

    api = PlainApi(refused)
    async with opened(tmp_path, api, clock, workers=1, timeout_s=HOUR_S) as shop:
        first = await shop.accept(PAPER)
        await passed(held.entered)
        tasks = await shop.sold(5)  # paid while the first was asked for
        held.open.set()
        ended = [await shop.ended(one) for one in [first, *tasks]]
        rows = [await shop.row(one) for one in tasks]
    assert {(task.details, task.refund.amount_units) for task in ended} == {
        ("provider_error", 20_000)
    }
    assert {task.error for task in ended} == {
        "The provider does not serve this gateway's account now. Nothing was made; a refund is due."
    }
    assert {row["reason"] for row in rows} == {"AccountProblem: 402: top up"}
    assert len(api.submits) == 1


async def test_an_outage_is_waited_for_no_longer_than_the_endpoints_time_out(tmp_path, clock):
    clock.frozen_at = clock()
    async with opened(tmp_path, PlainApi(), clock, idle_s=0.05, timeout_s=60) as shop:
        shop.circuit.trip("500: overloaded")
        tasks = await shop.sold(5)
        clock.offset_s += 60
        shop.pool.wake()
        await asyncio.sleep(0.1)
        assert not any([(await shop.store.task(one)).is_done for one in tasks])
        clock.offset_s += 1
        shop.pool.wake()
        ended = [await shop.ended(one) for one in tasks]
    assert {(task.error, task.refund.amount_units) for task in ended} == {
        ("The provider has not worked for too long. Nothing was made; a refund is due.", 20_000)
    }
    assert shop.provider.submits == []


async def test_no_outage_is_waited_for_longer_than_half_an_hour(tmp_path, clock):
    clock.frozen_at = clock()
    async with opened(tmp_path, PlainApi(), clock, idle_s=0.05, timeout_s=HOUR_S) as shop:
        shop.circuit.trip("500: overloaded")
        task_id = await shop.accept(PAPER)
        clock.offset_s += 30 * MINUTE_S + 1
        shop.pool.wake()
        assert (await shop.ended(task_id)).details == "provider_error"


async def test_a_spent_account_rests_for_a_quarter_of_an_hour(tmp_path, clock):
    clock.frozen_at = clock()
    async with opened(tmp_path, PlainApi(AccountProblem("402: top up")), clock) as shop:
        await shop.ended(await shop.accept(PAPER))
        clock.offset_s += 15 * MINUTE_S - 1
        assert not shop.circuit.is_due
        clock.offset_s += 1
        assert shop.circuit.is_due


async def test_a_model_that_is_gone_stops_no_other(tmp_path, clock, settings):
    clock.frozen_at = clock()
    api = PlainApi(AccountProblem("404: no such model", scope="model"))
    async with opened(tmp_path, api, clock, workers=1) as shop:
        gone = await shop.ended(await shop.accept(PAPER))
        assert gone.error == (
            "The provider does not serve this model now. Nothing was made; a refund is due."
        )
        assert [one.slug for one in shop.catalog] == [ENDPOINT.slug]
        settings.data_dir.mkdir(parents=True)
        ready = Readiness(settings, shop.catalog, shop.store)
        with pytest.raises(ExecutionError, match="does not work now"):
            ready.check_serving("paper")
        ready.check_serving(ENDPOINT.slug)
        late = await shop.ended(await shop.accept(PAPER))  # paid just before
        assert (late.details, late.refund.amount_units) == ("provider_error", 20_000)
        api.script.append(PICTURE)
        assert (await shop.ended(await shop.accept())).status == "completed"
        assert len(api.submits) == 2
        circuit = shop.catalog["paper"].circuit
        assert not shop.circuit.is_open
        clock.offset_s += 6 * 60 * MINUTE_S - 1
        assert not circuit.is_due
        clock.offset_s += 1
        assert circuit.is_due
        circuit.try_again()
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
        # The trial ends once the worker has notified the circuit, which is after the task's end.
        await until(lambda: not circuit.is_on_trial)


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
