"""The circuit breaker: when a provider stops selling, what becomes of who waits, who is back."""

import asyncio

import pytest

from gateway import AccountProblem, ContentPolicy, Transient
from gateway.errors import ExecutionError
from gateway.plugins.circuit_breaker import CircuitBreaker
from gateway.web.readiness import Readiness
from tests.unit.tasks.engine_shop import PAPER, TEXT, PlainApi, opened, until

MINUTE_S = 60


@pytest.fixture
def circuit(clock):
    clock.frozen_at = 1_000_000.0
    return CircuitBreaker("acme", clock)


# -- by itself


def test_five_failures_in_a_row_of_two_tasks_open_it(circuit):
    for number in range(4):
        circuit.failed("Transient", f"task-{number % 2}")
        assert not circuit.is_open
    circuit.failed("Transient", "task-0")
    assert (circuit.is_open, circuit.problem) == (True, "Transient")


def test_one_buyers_odd_request_does_not_open_it(circuit):
    for _ in range(50):
        circuit.failed("KeyError", "task-1")
    assert not circuit.is_open
    circuit.failed("KeyError", "task-2")
    assert circuit.is_open


def test_a_success_in_between_starts_the_count_anew(circuit):
    for _ in range(20):
        for number in range(4):
            circuit.failed("Transient", f"task-{number}")
        circuit.succeeded()
    assert not circuit.is_open


def test_an_account_problem_opens_it_at_once(circuit, clock):
    circuit.trip("402: top up")
    assert (circuit.is_open, circuit.problem, circuit.open_s) == (True, "402: top up", 0)
    clock.offset_s += 29.9
    assert not circuit.is_due
    clock.offset_s += 0.1
    assert (circuit.is_due, circuit.open_s) == (True, 30)


def test_pauses_between_probes_grow_to_half_an_hour_and_stay_there(circuit, clock):
    circuit.trip("402")
    pauses = []
    for _ in range(2000):  # more than any power of two holds as a float
        began = clock()
        clock.offset_s += circuit._probe_at - clock()
        pauses.append(clock() - began)
        circuit.stay_open("still 402")
    assert pauses[:8] == [30, 60, 120, 240, 480, 960, 1800, 1800]
    assert set(pauses[8:]) == {1800}
    assert circuit.problem == "still 402"


def test_on_trial_one_failure_opens_it_again_for_longer(circuit, clock):
    circuit.trip("402")
    clock.offset_s += 30
    circuit.try_again()
    assert not circuit.is_open
    circuit.failed("Transient", "task-9")
    assert circuit.is_open
    clock.offset_s += 59
    assert not circuit.is_due
    assert circuit.open_s == 89  # the trial in between included
    clock.offset_s += 1
    assert circuit.is_due


def test_on_trial_a_task_that_failed_before_proves_nothing_new(circuit):
    for number in range(5):
        circuit.failed("JobFailed", f"odd-{number}")
    for _ in range(3):
        circuit.try_again()
        for number in range(4):
            circuit.failed("JobFailed", f"odd-{number}")
            assert not circuit.is_open
        circuit.failed("JobFailed", "odd-4")  # five in a row are as many as ever
        assert circuit.is_open
    circuit.try_again()
    circuit.failed("JobFailed", "another")
    assert circuit.is_open


def test_after_a_success_a_task_that_failed_before_is_new_again(circuit):
    circuit.failed("JobFailed", "odd")
    circuit.succeeded()
    circuit.trip("402")
    circuit.try_again()
    circuit.failed("JobFailed", "odd")
    assert circuit.is_open


def test_a_success_on_trial_closes_it_for_good(circuit):
    circuit.trip("402")
    circuit.try_again()
    circuit.succeeded()
    circuit.failed("Transient", "task-9")
    assert (circuit.is_open, circuit.open_s) == (False, 0)
    circuit.trip("402")
    assert circuit.open_s == 0  # a story of its own


def test_what_was_under_way_when_it_opened_does_not_close_it(circuit):
    circuit.trip("402")
    circuit.succeeded()
    assert circuit.is_open
    circuit.try_again()
    circuit.failed("Transient", "task-9")
    assert circuit.is_open


def test_a_second_problem_does_not_prolong_it(circuit, clock):
    circuit.trip("402")
    clock.offset_s += 20
    circuit.trip("403", pause_s=5000)
    clock.offset_s += 10
    assert (circuit.is_due, circuit.problem) == (True, "402")


# -- in the shop


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
