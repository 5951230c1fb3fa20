"""Jobs that take too long: polled once more, stopped if possible, never simply made again."""

import pytest

from gateway import Pending, Transient
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, TEXT, JobApi, StoppableApi, opened

TIMEOUT_S = 300


async def slow(shop, api):
    """Accept a task and let its time run out."""
    task_id = await shop.accept(PAPER)
    await until(lambda: len(api.polls) > 1)
    shop.clock.offset_s += TIMEOUT_S + 1
    return task_id


async def test_a_job_that_cannot_be_stopped_fails(tmp_path, clock):
    api = JobApi()
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        task = await shop.ended(await slow(shop, api))
    assert (task.status, task.details, task.attempt) == ("failed", "timed_out", 1)
    assert (task.refund.amount_units, len(api.submits)) == (20_000, 1)


async def test_a_job_that_was_stopped_for_certain_is_submitted_anew(tmp_path, clock):
    api = StoppableApi(resubmit_after_cancel=True)
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        task_id = await slow(shop, api)
        await until(lambda: len(api.submits) == 2)
        api.usual = TEXT
        task = await shop.ended(task_id)
    assert (task.status, task.attempt, api.cancels) == ("completed", 2, ["job-1"])


async def test_four_jobs_that_were_stopped_have_timed_out(tmp_path, clock):
    api = StoppableApi(resubmit_after_cancel=True)
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        task_id = await slow(shop, api)
        for attempt in (2, 3, 4):
            await until(lambda: len(api.submits) == attempt and api.polls[-1] == f"job-{attempt}")  # noqa: B023
            clock.offset_s += TIMEOUT_S + 1
        task = await shop.ended(task_id)
    assert (task.details, task.attempt, len(api.cancels)) == ("timed_out", 4, 4)


async def test_a_job_that_may_be_billed_although_it_was_stopped_fails(tmp_path, clock):
    api = StoppableApi(resubmit_after_cancel=False)
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        task = await shop.ended(await slow(shop, api))
    assert (task.details, task.attempt, api.cancels) == ("timed_out", 1, ["job-1"])


@pytest.mark.parametrize("refusal", [Transient("409"), KeyError("x"), SystemExit(1)], ids=repr)
async def test_a_job_that_refuses_to_stop_fails(tmp_path, clock, refusal):
    api = StoppableApi(resubmit_after_cancel=True)
    api.refusal = refusal
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        task = await shop.ended(await slow(shop, api))
    assert (task.details, task.attempt, len(api.submits)) == ("timed_out", 1, 1)


async def test_a_restart_past_the_deadline_asks_before_it_gives_up(tmp_path, clock):
    api = StoppableApi(resubmit_after_cancel=True)
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: api.polls)
        await shop.crash()
    clock.offset_s += 7 * 86400
    api.usual = TEXT
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        assert (await shop.ended(task_id)).status == "completed"
    assert (api.cancels, len(api.submits)) == ([], 1)


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "billed"])
async def test_the_time_runs_from_the_submit_whatever_restarts_come(tmp_path, clock, idempotent):
    api = JobApi(idempotent_submit=idempotent)
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: api.polls)
        await shop.crash()
    clock.offset_s += TIMEOUT_S - 30
    api.polls.clear()
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        await until(lambda: len(api.polls) > 3)
        assert not (await shop.store.task(task_id)).is_done
        clock.offset_s += 31
        assert (await shop.ended(task_id)).details == "timed_out"


async def test_an_answer_due_after_the_deadline_is_asked_for_at_the_deadline(tmp_path, clock):
    """A job with seconds left is not given up because the API named a longer pause."""
    clock.frozen_at = clock()

    async def late(handle, job):
        clock.offset_s += TIMEOUT_S - 0.05
        return Pending(poll_after_s=60)

    api = JobApi()
    api.to_poll = [late, TEXT]
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S) as shop:
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"


async def test_a_job_that_ended_while_the_machine_was_suspended_is_delivered(tmp_path, clock):
    """The first polls after a resume fail: their connections are dead."""
    api = StoppableApi(resubmit_after_cancel=True)
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S, late_polls_s=60) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: api.polls)
        api.to_poll, api.usual = [Transient("reset"), TimeoutError(), OSError()], TEXT
        clock.offset_s += 7 * 86400
        task = await shop.ended(task_id)
    assert (task.status, task.attempt) == ("completed", 1)
    assert (api.cancels, len(api.submits)) == ([], 1)


async def test_a_vendor_that_stays_silent_past_the_deadline_is_given_up(tmp_path, clock):
    api = JobApi()
    async with opened(tmp_path, api, clock, timeout_s=TIMEOUT_S, late_polls_s=0.05) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: api.polls)
        api.usual = Transient("silent")
        clock.offset_s += TIMEOUT_S + 1
        task = await shop.ended(task_id)
    assert (task.status, task.details) == ("failed", "timed_out")
