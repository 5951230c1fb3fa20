"""Sent without a response: submitted again only if that bills nothing."""

import asyncio

import pytest

from gateway import Handle, HandleLost, NotAccepted, SubmitUncertain
from tests.patience import PATIENCE_S
from tests.unit.tasks.engine_shop import PAPER, TEXT, Gate, JobApi, PlainApi, opened, passed


@pytest.mark.parametrize("attempts_before", [0, 3], ids=["first attempt", "last attempt"])
async def test_a_submit_that_a_kill_interrupted_is_not_sent_again(tmp_path, clock, attempts_before):
    gate, api = Gate(), PlainApi()
    api.script = [NotAccepted("busy")] * attempts_before + [gate]
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        await shop.crash()
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(task_id)
        assert not shop.circuit.is_open
    assert (task.status, task.details) == ("failed", "uncertain_submit")
    assert (task.payment.state, task.refund.amount_units) == ("refund_due", 20_000)
    assert len(api.submits) == attempts_before + 1


async def test_a_kill_between_the_answer_and_the_handle_is_uncertain(tmp_path, clock):
    api, answered = JobApi(), asyncio.Event()

    async with opened(tmp_path, api, clock) as shop:

        async def dies(lease, handle):
            answered.set()
            await asyncio.Event().wait()

        shop.store.queue.save_handle = dies
        task_id = await shop.accept(PAPER)
        await passed(answered)
        await shop.crash()
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(task_id)
    assert (task.status, task.details) == ("failed", "uncertain_submit")
    assert (len(api.submits), api.polls) == (1, [])


async def test_many_submits_that_a_kill_interrupted_are_not_the_providers_fault(tmp_path, clock):
    gate = Gate()
    api = PlainApi(*[gate] * 8)
    async with opened(tmp_path, api, clock, workers=8) as shop:
        tasks = await shop.sold(8)
        async with asyncio.timeout(PATIENCE_S):
            while gate.running < 8:
                await gate.entered.wait()
                await asyncio.sleep(0.01)
        await shop.crash()
    async with opened(tmp_path, api, clock, workers=8) as shop:
        assert {(await shop.ended(one)).details for one in tasks} == {"uncertain_submit"}
        assert not shop.circuit.is_open


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "billed"])
@pytest.mark.parametrize("error", [SubmitUncertain("?"), TimeoutError()], ids=["said", "late"])
async def test_no_answer_is_asked_again_only_where_that_bills_nothing(
    tmp_path, clock, idempotent, error
):
    api = PlainApi(error, idempotent_submit=idempotent)
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    if idempotent:
        assert (task.status, task.attempt, len(api.submits)) == ("completed", 2, 2)
    else:
        assert (task.details, task.attempt, len(api.submits)) == ("uncertain_submit", 1, 1)


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit, KeyboardInterrupt])
async def test_whatever_a_submit_lets_out_may_have_come_after_it_was_sent(tmp_path, clock, error):
    async def lets_out(request, job):
        raise error

    api = PlainApi(*[lets_out] * 4)
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.details, task.attempt, len(api.submits)) == ("uncertain_submit", 1, 1)


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "billed"])
async def test_a_job_that_its_api_has_lost_is_begun_anew_only_where_that_bills_nothing(
    tmp_path, clock, idempotent
):
    api = JobApi(idempotent_submit=idempotent)
    api.to_poll, api.usual = [HandleLost("no such job")], TEXT
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    if idempotent:
        assert (task.status, task.attempt) == ("completed", 2)
        assert (len(api.submits), api.polls) == (2, ["job-1", "job-2"])
    else:
        assert (task.details, task.attempt) == ("uncertain_submit", 1)
        assert (len(api.submits), api.polls) == (1, ["job-1"])


@pytest.mark.parametrize(
    ("idempotent", "details", "submits"),
    [(True, "timed_out", 4), (False, "uncertain_submit", 1)],
    ids=["idempotent", "billed"],
)
async def test_a_submit_that_hangs_is_cut_off(tmp_path, clock, idempotent, details, submits):
    gate = Gate()
    api = PlainApi(*[gate] * 9, idempotent_submit=idempotent)
    async with opened(tmp_path, api, clock, timeout_s=0.05) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.details, len(api.submits)) == ("failed", details, submits)
    assert gate.running == 0


async def test_an_idempotent_submit_that_a_kill_interrupted_is_sent_again(tmp_path, clock):
    gate = Gate()
    api = PlainApi(gate, idempotent_submit=True)
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        await shop.crash()
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(task_id)
    assert (task.status, task.attempt, task.result.text) == ("completed", 1, TEXT.text)
    assert len(api.submits) == 2


async def test_a_drain_in_mid_submit_keeps_the_mark(tmp_path, clock):
    gate = Gate()
    api = PlainApi(gate)
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        await passed(gate.entered)
        await shop.pool.drain(grace_s=0.01)
        assert not (await shop.store.task(task_id)).is_done
    async with opened(tmp_path, api, clock) as shop:
        assert (await shop.ended(task_id)).details == "uncertain_submit"
    assert len(api.submits) == 1


@pytest.mark.parametrize(
    "handle",
    [
        Handle(id=None),
        Handle(id=b"7"),
        Handle(id="7", urls=None),
        Handle(id="7", urls=["https://api.test"]),
        Handle(id="7" * 10**6),
        Handle(id="7", urls={"get": "x" * 10**6}),
    ],
    ids=["none", "bytes", "no urls", "a list", "long", "long url"],
)
async def test_a_handle_that_is_none_is_a_job_out_of_reach(jobs, api, handle):
    api.to_submit, api.usual = [handle], TEXT
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.details, len(api.submits)) == ("failed", "uncertain_submit", 1)
    assert (await jobs.ended(await jobs.accept(PAPER))).status == "completed"


@pytest.mark.parametrize("handle", [Handle(id=7), Handle(id="\ud800"), Handle(id="ü", urls={1: 2})])
async def test_an_odd_handle_is_kept_as_text_and_polled(jobs, api, handle):
    api.to_submit, api.usual = [handle], TEXT
    assert (await jobs.ended(await jobs.accept(PAPER))).status == "completed"
    assert api.polls == [str(handle.id)]
