"""Attempts: which tasks run, what is durable when, and the cost of an attempt."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio

import pytest
import structlog

from gateway import (
    AccountProblem,
    ContentPolicy,
    InvalidInput,
    RateLimited,
    SubmitUncertain,
    Transient,
)
from gateway.telemetry import signals
from tests.patience import PATIENCE_S, until
from tests.unit.tasks.engine_shop import PICTURE, Gate, PlainApi, opened, passed

# -- which tasks run


async def test_an_accepted_task_starts_by_an_event_and_not_by_a_look_at_the_queue(shop):
    shop.time(idle_s=3600.0)
    gate = Gate()
    shop.provider.script = [gate]
    shop.pool.start()
    await asyncio.sleep(0.05)
    await shop.accept()
    await passed(gate.entered)
    gate.open.set()


async def test_a_wake_that_finds_no_work_commits_nothing(shop):
    shop.time(idle_s=3600.0)
    shop.pool.start()
    await shop.ended(await shop.accept())
    await shop.idle()
    await asyncio.sleep(0.05)
    commits = []

    def count(_, seconds):
        commits.append(seconds)

    with signals.batch_committed.connected_to(count):
        for _ in range(3):
            shop.pool.wake()
            await asyncio.sleep(0.02)
        assert commits == []
        await shop.ended(await shop.accept())
    assert commits


async def test_no_more_than_the_lanes_work_at_once(shop):
    gate = Gate()
    shop.provider.script = [gate] * 7
    ids = [await shop.accept() for _ in range(7)]
    shop.pool.start()
    await until(lambda: gate.running == 2)
    await asyncio.sleep(0.05)
    assert (await shop.store.queue.depth()) == {"processing": 2, "queued": 5}
    gate.open.set()
    for task_id in ids:
        assert (await shop.ended(task_id)).status == "completed"
    assert gate.most == 2
    await until(lambda: sorted(set(shop.done)) == sorted(ids))


async def test_an_attempt_is_durable_before_the_provider_is_called(shop):
    seen = []

    async def submit(request, job):
        seen.append((await shop.store.task(job.task_id)).attempt)
        return PICTURE

    shop.provider.script = [submit]
    shop.pool.start()
    await shop.ended(await shop.accept())
    assert seen == [1]


async def test_progress_shows_in_the_task(shop):
    shop.time(heartbeat_s=0.02)
    gate = Gate()

    async def half(request, job):
        await job.progress(0.5)
        await job.progress(7)
        return await gate(request, job)

    shop.provider.script = [half]
    shop.pool.start()
    task_id = await shop.accept()

    async with asyncio.timeout(PATIENCE_S):
        while (await shop.store.task(task_id)).progress != 1.0:
            await asyncio.sleep(0.01)
    gate.open.set()
    await shop.ended(task_id)


# -- attempts


async def test_three_retries_after_the_first_attempt_and_each_waits_longer(shop):
    waits = []
    retry = shop.store.queue.retry

    async def recorded(lease, *, delay_s, **facts):
        waits.append(delay_s)
        return await retry(lease, delay_s=delay_s, **facts)

    shop.store.queue.retry = recorded
    shop.provider.script = [Transient("busy")] * 3
    shop.pool.start()
    task = await shop.ended(await shop.accept())
    assert (task.status, task.attempt) == ("completed", 4)
    assert len(waits) == 3
    for wait_s, most_s in zip(waits, (0.01, 0.02, 0.04), strict=True):
        assert wait_s <= most_s


async def test_a_fourth_failure_ends_the_task_and_owes_the_money(shop):
    shop.provider.script = [Transient("busy")] * 9
    shop.pool.start()
    task = await shop.ended(await shop.accept())
    assert (task.status, task.details, task.attempt) == ("failed", "provider_error", 4)
    assert (task.payment.state, task.refund.amount_units) == ("refund_due", 20_000)
    assert len(shop.provider.requests) == 4


@pytest.mark.parametrize(
    ("error", "details"),
    [(InvalidInput("No boats."), "invalid_input"), (ContentPolicy("No boats."), "content_policy")],
)
async def test_what_does_not_get_better_is_not_asked_again(shop, error, details):
    shop.provider.script = [error]
    shop.pool.start()
    task = await shop.ended(await shop.accept())
    assert (task.status, task.details, task.error) == ("failed", details, "No boats.")
    assert len(shop.provider.requests) == 1


@pytest.mark.parametrize(
    ("error", "details"),
    [
        (SubmitUncertain("Sent, no answer."), "uncertain_submit"),
        (AccountProblem("402: no credit left"), "provider_error"),
    ],
)
async def test_what_may_have_been_billed_or_cannot_work_is_asked_once_and_owed_back(
    tmp_path, clock, error, details
):
    provider = PlainApi(error)
    with structlog.testing.capture_logs() as lines:
        async with opened(tmp_path, provider, clock) as shop:
            task = await shop.ended(await shop.accept())
    assert (task.status, task.details, task.refund.amount_units) == ("failed", details, 20_000)
    assert str(error) not in task.error
    assert len(provider.submits) == 1
    logged = [line for line in lines if line["log_level"] == "error"]
    assert [line.get("reason") for line in logged] == (
        ["AccountProblem: 402: no credit left"] if isinstance(error, AccountProblem) else []
    )


async def test_being_asked_to_wait_costs_no_attempt(shop):
    shop.time(rate_limit_s=(0.01, 1.0))
    shop.provider.script = [RateLimited("later", retry_after_s=0.01)] * 6
    shop.pool.start()
    task = await shop.ended(await shop.accept())
    assert (task.status, task.attempt) == ("completed", 1)
    assert len(shop.provider.requests) == 7
