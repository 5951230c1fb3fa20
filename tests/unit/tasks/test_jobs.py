"""Jobs: a handle is durable before the first poll, and a restart continues polling."""

import asyncio

import attrs
import pytest

from gateway import Handle, JobFailed, Pending, Result, Transient
from gateway.catalog.catalog import Catalog
from gateway.settings import EndpointOverride
from gateway_testing.facts import ENDPOINT
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, PICTURE, TEXT, JobApi, PlainApi, opened, passed


async def test_a_job_is_submitted_once_and_polled_until_it_is_done(jobs, api):
    api.to_poll = [Pending(), Pending(progress=0.5), TEXT]
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.attempt, task.result.text) == ("completed", 1, TEXT.text)
    assert (len(api.submits), api.polls) == (1, ["job-1"] * 3)


async def test_a_picture_that_a_job_made_is_looked_at(jobs, api):
    api.usual = PICTURE
    task = await jobs.ended(await jobs.accept(ENDPOINT))
    (output,) = task.result.outputs
    assert (task.status, output.width, output.height) == ("completed", 1, 1)


async def test_the_mark_is_durable_before_the_submit_and_the_handle_before_the_poll(jobs, api):
    seen = []

    async def submit(request, job):
        seen.append(await jobs.row(job.task_id))
        return Handle(id="mine", urls={"get": "https://api.test/7"})

    async def poll(handle, job):
        seen.append(await jobs.row(job.task_id))
        assert handle == Handle(id="mine", urls={"get": "https://api.test/7"})
        return TEXT

    api.to_submit, api.to_poll = [submit], [poll]
    await jobs.ended(await jobs.accept(PAPER))
    before, between = seen
    assert before["sent_at"] is not None
    assert before["handle"] is None
    assert '"mine"' in between["handle"]


async def test_who_may_be_asked_again_pays_for_no_mark(tmp_path, clock):
    seen = []

    async def submit(request, job):
        seen.append((await shop.row(job.task_id))["sent_at"])
        return TEXT

    async with opened(tmp_path, PlainApi(submit, idempotent_submit=True), clock) as shop:
        await shop.ended(await shop.accept(PAPER))
    assert seen == [None]


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "drained"])
@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "billed"])
async def test_a_restart_goes_on_polling_costs_nothing_and_never_submits(
    tmp_path, clock, is_killed, idempotent
):
    api = JobApi(idempotent_submit=idempotent)
    async with opened(tmp_path, api, clock) as shop:
        tasks = await shop.sold(3)
        await until(lambda: len(set(api.polls)) == 3)
        await (shop.crash() if is_killed else shop.pool.drain(grace_s=5))
    for _ in range(5):  # restarts
        api.polls.clear()
        async with opened(tmp_path, api, clock) as shop:
            await until(lambda: len(set(api.polls)) == 3)
            assert [(await shop.row(one))["attempt"] for one in tasks] == [1, 1, 1]
            await shop.crash()
    api.usual = TEXT
    async with opened(tmp_path, api, clock) as shop:
        ended = [await shop.ended(one) for one in tasks]
    assert [(task.status, task.attempt) for task in ended] == [("completed", 1)] * 3
    assert sorted(api.submits) == sorted(tasks)


async def test_a_handle_that_submit_saves_itself_is_polled_after_a_kill(tmp_path, clock):
    """A `submit` that stays and waits, like many vendors' clients."""
    api, saved = JobApi(), asyncio.Event()

    async def waits_itself(request, job):
        await job.save(Handle(id="first"))
        await job.save(Handle(id="saved"))
        saved.set()
        await asyncio.Event().wait()

    api.to_submit = [waits_itself]
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(saved)
        await shop.crash()
    api.usual = TEXT
    async with opened(tmp_path, api, clock) as shop:
        assert (await shop.ended(task_id)).status == "completed"
    assert (len(api.submits), api.polls) == (1, ["saved"])


@pytest.mark.parametrize("error", [Transient("reset"), KeyError("id"), TimeoutError()])
async def test_what_breaks_after_a_handle_was_saved_is_asked_for_and_not_sent_again(
    jobs, api, error
):
    async def breaks(request, job):
        await job.save(Handle(id="saved"))
        raise error

    api.to_submit, api.usual = [breaks], TEXT
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.attempt) == ("completed", 1)
    assert (len(api.submits), api.polls) == (1, ["saved"])


async def test_a_submit_that_saved_a_handle_may_return_the_result(jobs, api):
    async def made(request, job):
        await job.save(Handle(id="saved"))
        return TEXT

    api.to_submit = [made]
    assert (await jobs.ended(await jobs.accept(PAPER))).status == "completed"
    assert api.polls == []


async def test_a_disk_that_refuses_the_handle_for_a_while_costs_no_second_job(jobs, api):
    save, calls = jobs.store.queue.save_handle, []

    async def refuses_twice(lease, handle):
        calls.append(handle)
        if len(calls) < 3:
            raise OSError(28, "No space left on device")
        return await save(lease, handle)

    jobs.store.queue.save_handle = refuses_twice
    api.usual = TEXT
    assert (await jobs.ended(await jobs.accept(PAPER))).status == "completed"
    assert (len(api.submits), len(calls)) == (1, 3)


async def test_a_disk_that_never_takes_the_handle_leaves_the_job_polled(jobs, api):
    async def refuses(lease, handle):
        raise OSError(28, "No space left on device")

    jobs.store.queue.save_handle = refuses
    api.to_poll = [Pending(), TEXT]
    assert (await jobs.ended(await jobs.accept(PAPER))).status == "completed"
    assert len(api.submits) == 1


async def test_a_job_that_ended_without_a_result_is_submitted_anew_three_times(jobs, api):
    api.usual = JobFailed("internal error at the vendor")
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.details, task.attempt) == ("failed", "provider_error", 4)
    assert api.polls == ["job-1", "job-2", "job-3", "job-4"]


async def test_a_retry_forgets_the_job_before_it(jobs, api):
    api.to_poll = [JobFailed("no"), Pending(), TEXT]
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.attempt) == ("completed", 2)
    assert api.polls == ["job-1", "job-2", "job-2"]


async def test_a_job_goes_on_although_its_endpoint_was_switched_off(tmp_path, api, clock):
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await until(lambda: api.polls)
        await shop.crash()
    api.usual = TEXT
    async with opened(tmp_path, api, clock, start=False) as shop:
        off = Catalog({"paper": EndpointOverride(enabled=False)})
        off.register(PAPER, api, "test")
        waiting = await shop.accept(PAPER)
        shop.pool.resources = attrs.evolve(shop.pool.resources, catalog=off)
        shop.pool.start()
        assert (await shop.ended(task_id)).status == "completed"
        assert (await shop.ended(waiting)).details == "provider_error"
    assert len(api.submits) == 1


async def test_who_returns_a_handle_and_has_no_poll_is_found_out(tmp_path, clock):
    provider = PlainApi(Handle(id="what now"))
    async with opened(tmp_path, provider, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.details) == ("failed", "uncertain_submit")
    assert len(provider.submits) == 1


async def test_what_a_job_cost_is_written_down(tmp_path, api, clock):
    api.to_poll = [attrs.evolve(TEXT, cost_micros=12_345), TEXT, Result(text="x", cost_micros=0)]
    async with opened(tmp_path, api, clock, cost_micros=777) as shop:
        costs = []
        for _ in range(3):
            task_id = await shop.accept(PAPER)
            await shop.ended(task_id)
            costs.append((await shop.row(task_id))["cost_micros"])
    assert costs == [12_345, 777, 0]
