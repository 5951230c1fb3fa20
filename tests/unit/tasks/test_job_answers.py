"""The errors and results of a poll: none of them submits, and few end the job."""

import asyncio

import pytest

from gateway import (
    AccountProblem,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    Link,
    Output,
    Pending,
    RateLimited,
    Result,
    ResultMissing,
    SubmitUncertain,
    Transient,
)
from tests.patience import PATIENCE_S, until
from tests.unit.tasks.engine_shop import PAPER, TEXT, opened

NONSENSE = [
    None,
    5,
    "done",
    Result(outputs=None),
    Result(outputs=(5,)),
    Result(text=b"bytes"),
    Result(text="\ud800"),
    Result(outputs=(Link(url="https://x.test", media_type=None),)),
    Result(outputs=(Output(data="text", media_type="text/plain"),)),
    Result(outputs=(Output(data=b"x", media_type="image/png", width=1.5),)),
    Result(outputs=tuple(Output(data=b"x", media_type="text/plain") for _ in range(17))),
]


@pytest.mark.parametrize(
    "error",
    [
        Transient("reset"),
        SubmitUncertain("a poll by POST, cut off"),
        RateLimited("slow down", retry_after_s=0.001),
        RateLimited("slow down", retry_after_s=None),
        RateLimited("slow down", retry_after_s=float("nan")),
        TimeoutError(),
        ConnectionResetError(),
        KeyError("status"),
        RecursionError(),
        MemoryError(),
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        ExceptionGroup("two", [ValueError(), KeyError()]),
        BaseExceptionGroup("leaked", [asyncio.CancelledError()]),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_poll_raises_is_asked_again_and_submits_nothing(jobs, api, error):
    api.to_poll = [error, error, Pending(), error, TEXT]
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.attempt) == ("completed", 1)
    assert (len(api.submits), len(api.polls)) == (1, 5)
    assert not jobs.circuit.is_open


async def test_transient_failures_are_asked_again_for_as_long_as_the_job_may_take(jobs, api):
    api.to_poll = [Transient("502")] * 60 + [TEXT]
    assert (await jobs.ended(await jobs.accept(PAPER))).status == "completed"
    assert len(api.submits) == 1


@pytest.mark.parametrize("answer", NONSENSE, ids=lambda answer: repr(answer)[:40])
async def test_nonsense_once_is_asked_again(jobs, api, answer):
    async def returns(handle, job):
        return answer

    api.to_poll = [returns, returns, TEXT]
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 1, 1)


@pytest.mark.parametrize("answer", [NONSENSE[0], NONSENSE[3], KeyError("status")], ids=repr)
async def test_nonsense_for_good_ends_the_job_and_submits_nothing(jobs, api, answer):
    async def says(handle, job):
        if isinstance(answer, Exception):
            raise answer
        return answer

    api.usual = says
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.details, task.attempt) == ("failed", "uncertain_submit", 1)
    assert len(api.submits) == 1
    assert len(api.polls) == 20
    api.usual = TEXT
    assert (await jobs.ended(await jobs.accept(PAPER))).status == "completed"


@pytest.mark.parametrize("wait", [float("nan"), float("-inf"), "5", None, -1, [], 10**400])
@pytest.mark.parametrize("progress", [float("nan"), "half", 10**400, -5, True])
async def test_odd_numbers_in_an_answer_do_no_harm(jobs, api, wait, progress):
    jobs.time(poll_after_s=(0.001, 0.002))
    api.to_poll = [Pending(progress=progress, note=5, poll_after_s=wait)] * 3 + [TEXT]
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, len(api.submits), len(api.polls)) == ("completed", 1, 4)


@pytest.mark.parametrize(
    ("error", "details"),
    [
        (InvalidInput("No boats."), "invalid_input"),
        (ContentPolicy("No boats."), "content_policy"),
        (HandleLost("404"), "uncertain_submit"),
        (ResultMissing(), "provider_error"),
    ],
)
async def test_what_the_api_says_about_the_job_ends_it_at_once(jobs, api, error, details):
    api.to_poll = [Pending(), error]
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.details, task.attempt) == ("failed", details, 1)
    assert (task.refund.amount_units, len(api.submits), len(api.polls)) == (20_000, 1, 2)


async def test_the_buyer_reads_that_a_job_has_no_result_and_the_provider_sells_on(jobs, api):
    api.to_poll = [ResultMissing("The document has no page."), TEXT]
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.error, task.payment.state) == ("The document has no page.", "refund_due")
    assert (await jobs.ended(await jobs.accept(PAPER))).status == "completed"


async def test_an_account_problem_in_a_poll_stops_sales_and_leaves_the_job_alone(jobs, api):
    api.to_poll = [AccountProblem("402: top up"), AccountProblem("402: top up"), TEXT]
    task = await jobs.ended(await jobs.accept(PAPER))
    assert (task.status, task.attempt, len(api.submits)) == ("completed", 1, 1)
    assert jobs.circuit.problem == "AccountProblem: 402: top up"
    assert list(jobs.catalog) == []


async def test_a_poll_that_hangs_is_cut_off_and_asked_again(tmp_path, api, clock):
    async def hangs(handle, job):
        await asyncio.Event().wait()

    api.to_poll = [hangs, hangs, TEXT]
    async with opened(tmp_path, api, clock, poll_timeout_s=0.05) as shop:
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
    assert len(api.submits) == 1


async def test_a_poll_that_does_not_stop_is_left_behind(tmp_path, api, clock):
    freed, reports = asyncio.Event(), []

    async def clings(handle, job):
        while not freed.is_set():
            try:
                await freed.wait()
            except asyncio.CancelledError:
                reports.append(1)

    api.to_poll = [clings, TEXT]
    async with opened(tmp_path, api, clock, poll_timeout_s=0.05) as shop:
        shop.upstream.stop_s = 0.05
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
    assert reports
    freed.set()
    await asyncio.sleep(0)


async def test_progress_and_notes_of_a_job_are_written_down(jobs, api):
    jobs.time(heartbeat_s=0.02)
    api.usual = Pending(progress=0.25, note="3rd in line \ud800" + "x" * 500)
    task_id = await jobs.accept(PAPER)
    rows = []

    async def is_shown():
        row = await jobs.row(task_id)
        rows.append(row)
        return row["progress"] == 0.25 and row["note"] is not None

    async with asyncio.timeout(PATIENCE_S):
        while not await is_shown():  # noqa: ASYNC110 - looks from outside
            await asyncio.sleep(0.01)
    assert rows[-1]["note"].startswith("3rd in line ?xxx")
    assert len(rows[-1]["note"]) == 200
    assert (await jobs.store.task(task_id)).progress == 0.25
    api.usual = TEXT
    assert (await jobs.ended(task_id)).progress == 1


async def test_the_api_says_when_to_ask_again(jobs, api):
    api.usual = Pending(poll_after_s=3600)  # kept to a minute; far longer than this test
    await jobs.accept(PAPER)
    await until(lambda: api.polls)
    await asyncio.sleep(0.2)
    assert len(api.polls) == 1
