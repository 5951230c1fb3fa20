"""Whatever a plugin does, only its own task suffers, and the next one is served."""

import asyncio
import contextlib

import pytest
import structlog

from gateway import ContentPolicy, InvalidInput, Link, Output, Result
from gateway.domain import GenerationRequest
from gateway.sandbox.pictures import Pictures
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, PICTURE, TEXT, Gate, PlainApi, opened, stopped


@pytest.mark.parametrize(
    "error",
    [
        ValueError("odd"),
        RecursionError(),
        MemoryError(),
        OSError(28, "No space left on device"),
        ExceptionGroup("two", [ValueError(), KeyError()]),
        asyncio.CancelledError(),
        BaseExceptionGroup("leaked", [asyncio.CancelledError()]),
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration(),
        StopAsyncIteration(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_a_provider_raises_is_a_failed_attempt(shop, error):
    shop.provider.script = [error] * 50
    shop.pool.start()
    task = await shop.ended(await shop.accept())
    assert (task.status, task.attempt) == ("failed", 4)
    assert len(shop.provider.requests) == 4
    shop.provider.script = []
    assert (await shop.ended(await shop.accept())).status == "completed"


async def test_a_list_that_the_plugin_changes_later_changes_no_result(shop, monkeypatch):
    kept = [*PICTURE.outputs]

    async def returns(request, job):
        return Result(outputs=kept)

    check = Pictures.check

    async def check_later(pictures, result, wanted):
        kept.clear()
        return await check(pictures, result, wanted)

    monkeypatch.setattr(Pictures, "check", check_later)
    shop.provider.script = [returns]
    shop.pool.start()
    task = await shop.ended(await shop.accept())
    assert (task.status, len(task.result.outputs)) == ("completed", 1)


@pytest.mark.parametrize(
    "answer",
    [
        5,
        "a picture",
        Result(),
        Result(outputs=(None,)),
        Result(outputs=(Output(data="text", media_type="image/png"),)),
        Result(outputs=(Output(data=b"x", media_type=None),)),
        Result(text=5),
        Result(outputs=(Output(data=b"x", media_type="image/png", width=float("nan")),)),
    ],
    ids=["number", "text", "empty", "no output", "text data", "no type", "odd text", "NaN width"],
)
async def test_whatever_a_provider_returns_the_task_ends(shop, answer):
    async def returns(request, job):
        return answer

    shop.provider.script = [returns] * 4
    shop.pool.start()
    task = await shop.ended(await shop.accept())
    assert task.status in ("failed", "completed")
    shop.provider.script = []
    assert (await shop.ended(await shop.accept())).status == "completed"


async def test_a_provider_that_returns_nothing_has_failed(shop):
    async def nothing(request, job):
        return None

    shop.provider.submit = nothing
    shop.pool.start()
    assert (await shop.ended(await shop.accept())).details == "provider_error"


async def test_a_provider_that_hangs_is_cut_off(tmp_path, provider, clock):
    async with opened(tmp_path, provider, clock, timeout_s=0.05, start=False) as shop:
        gate = Gate()
        provider.script = [gate] * 4
        shop.pool.start()
        task = await shop.ended(await shop.accept())
    assert (task.status, task.details, task.attempt) == ("failed", "timed_out", 4)
    assert gate.running == 0


async def test_what_a_provider_says_about_the_prompt_is_not_logged(shop):
    prompt = "MARKER-IN-THE-PROMPT"
    shop.provider.script = [ValueError(f"refused: {prompt}")] * 2
    with structlog.testing.capture_logs() as lines:
        shop.pool.start()
        await shop.ended(await shop.accept(request=GenerationRequest(prompt=prompt)))
    assert lines
    assert prompt not in str(lines)


@pytest.mark.parametrize(
    "answer",
    [
        Result(),
        Result(outputs=None),
        Result(outputs={"a": 1}),
        Result(outputs=(None,)),
        Result(outputs=(Output(data="text", media_type="text/plain"),)),
        Result(outputs=(Output(data=bytearray(b"x"), media_type="text/plain"),)),
        Result(outputs=(Output(data=b"x", media_type=None),)),
        Result(outputs=(Output(data=b"x", media_type="text/plain", width=float("nan")),)),
        Result(outputs=(Link(url=None),)),
        Result(outputs=(Link(url=5),)),
        Result(text=5),
        Result(text="half a character: \ud800"),
        Result(text="x" * 20_000_001),
        Result(outputs=(Output(data=b"x", media_type="text/plain"),) * 17),
        Result(outputs=(Output(data=bytes(64_000_001), media_type="text/plain"),) * 2),
    ],
    ids=lambda answer: repr(answer)[:60],
)
async def test_a_paper_that_is_none_is_a_failed_attempt_and_keeps_no_lane(tmp_path, clock, answer):
    """None of it reaches disk or database, where it would be retried for minutes."""
    api = PlainApi(*[answer] * 4)
    async with opened(tmp_path, api, clock, write_pauses_s=(3600.0,)) as shop:
        task = await shop.ended(await shop.accept(PAPER))
        assert (task.status, task.details) == ("failed", "provider_error")
        assert not list(shop.folder.rglob("*.*"))
        api.script.clear()
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"


@pytest.mark.parametrize("cost", [0.5, float("nan"), -1, "1", 10**30], ids=repr)
async def test_an_odd_cost_is_not_worth_a_buyers_result(tmp_path, clock, cost):
    api = PlainApi(Result(text="x", cost_micros=cost))
    async with opened(tmp_path, api, clock) as shop:
        task_id = await shop.accept(PAPER)
        assert (await shop.ended(task_id)).status == "completed"
        assert (await shop.row(task_id))["cost_micros"] is None


@pytest.mark.parametrize("kind", [InvalidInput, ContentPolicy])
@pytest.mark.parametrize("message", ["\ud800", "x" * 10**6, 5], ids=["half", "long", "number"])
async def test_an_odd_sentence_is_stored_as_far_as_it_can_be(tmp_path, clock, kind, message):
    async with opened(tmp_path, PlainApi(kind(message)), clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert task.details in ("invalid_input", "content_policy")
    assert len(task.error) <= 500


@pytest.mark.parametrize("worse", [RuntimeError("no words"), SystemExit(1)], ids=repr)
async def test_an_error_that_cannot_even_be_told_ends_its_task_only(tmp_path, clock, worse):
    class Mute(ContentPolicy):
        def __str__(self):
            raise worse

    async with opened(tmp_path, PlainApi(Mute("x")), clock) as shop:
        assert (await shop.ended(await shop.accept(PAPER))).details == "content_policy"


async def test_a_provider_that_is_no_coroutine_fails(tmp_path, clock):
    api = PlainApi(idempotent_submit=True)
    api.submit = lambda request, job: TEXT
    async with opened(tmp_path, api, clock) as shop:
        assert (await shop.ended(await shop.accept(PAPER))).details == "provider_error"


async def test_a_provider_that_does_not_stop_is_left_behind(tmp_path, clock):
    freed = asyncio.Event()

    async def clings(request, job):
        while not freed.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await freed.wait()

    api = PlainApi(clings, clings, clings)
    async with opened(tmp_path, api, clock, workers=1, timeout_s=0.05) as shop:
        shop.upstream.stop_s = 0.05
        assert (await shop.ended(await shop.accept(PAPER))).details == "uncertain_submit"
        waiting = await shop.accept(PAPER)  # and the only lane serves the next
        assert (await shop.ended(waiting)).details == "uncertain_submit"
    async with opened(tmp_path, api, clock, workers=1, timeout_s=60) as shop:
        shop.upstream.stop_s = 0.05
        await shop.accept(PAPER)
        await until(lambda: len(api.submits) == 3)
        await stopped(asyncio.create_task(shop.pool.drain(grace_s=0)))  # nor does it hold up a stop
    freed.set()
    await asyncio.sleep(0)


async def test_a_provider_that_cancels_the_task_it_runs_in_fails(tmp_path, clock):
    async def cancels(request, job):
        asyncio.current_task().cancel()
        await asyncio.sleep(0)

    api = PlainApi(cancels, idempotent_submit=True)
    async with opened(tmp_path, api, clock) as shop:
        task = await shop.ended(await shop.accept(PAPER))
    assert (task.status, task.attempt) == ("completed", 2)


async def test_odd_progress_does_no_harm(tmp_path, clock):
    async def submit(request, job):
        for fraction in (float("nan"), "half", None, 10**400, -1, 0.5):
            await job.progress(fraction, note="\ud800")
            await asyncio.sleep(0.02)
        return TEXT

    async with opened(tmp_path, PlainApi(submit), clock, heartbeat_s=0.01) as shop:
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"


async def test_a_provider_with_nothing_but_a_submit_sells(tmp_path, clock):
    class Bare:
        name = "bare"

        async def submit(self, request, job):
            return TEXT

    async with opened(tmp_path, Bare(), clock) as shop:
        assert (await shop.ended(await shop.accept(PAPER))).status == "completed"
