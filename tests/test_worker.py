"""Lanes: who works on what, what an attempt costs, and what a provider may do to them."""
# ruff: noqa: ASYNC110 - tests look from outside, where no event tells

import asyncio
import contextlib
import hashlib

import attrs
import pytest
import structlog

from gateway import (
    AccountProblem,
    ContentPolicy,
    InvalidInput,
    Output,
    RateLimited,
    Result,
    SubmitUncertain,
    Transient,
)
from gateway.artifacts import LocalArtifacts
from gateway.catalog import Catalog
from gateway.domain import GenerationRequest, StoredResult
from gateway.lane import Lane
from gateway.store import SqliteStore
from gateway.testing.store_facts import ENDPOINT, new_task, transfer, tx_hash
from gateway.worker import WorkerPool
from tests.conftest import PNG

PICTURE = Result(outputs=(Output(data=PNG, media_type="image/png", width=1, height=1),))
PATIENCE_S = 5


@attrs.define
class Shop:
    """A queue, its lanes and their provider."""

    store: SqliteStore
    pool: WorkerPool
    provider: object
    clock: object
    done: list
    folder: object
    accepted: int = 0

    async def accept(self, **changes):
        self.accepted += 1
        task = new_task(created_at=self.clock(), **changes)
        number = self.accepted
        await self.store.accept_direct(task, tx_hash(number), [transfer(number)], None)
        self.pool.wake()
        return task.id

    async def ended(self, task_id):
        async with asyncio.timeout(PATIENCE_S):
            while not (task := await self.store.task(task_id)).is_done:
                await asyncio.sleep(0.01)
        return task


@contextlib.asynccontextmanager
async def opened(tmp_path, provider, clock, *, lanes=2, timeout_s=5.0):
    done = []
    async with SqliteStore(tmp_path / "gateway.db") as store:
        catalog = Catalog({})
        catalog.register(attrs.evolve(ENDPOINT, timeout_s=timeout_s), provider, "test")
        pool = WorkerPool(
            store=store,
            catalog=catalog,
            artifacts=LocalArtifacts(tmp_path / "outputs", "secret"),
            now=clock,
            lanes=lanes,
            retention_s=60,
            on_done=done.append,
            backoff_s=0.01,
        )
        shop = Shop(store, pool, provider, clock, done, tmp_path / "outputs")
        yield shop
        with contextlib.suppress(Exception):  # what a test's dispatcher died of was its finding
            async with asyncio.timeout(PATIENCE_S):
                await shop.pool.drain(grace_s=0)


@pytest.fixture
async def shop(tmp_path, provider, clock):
    async with opened(tmp_path, provider, clock) as shop:
        yield shop


@attrs.define
class Gate:
    """A step of the provider that waits to be let through."""

    result: object = PICTURE
    entered: asyncio.Event = attrs.field(factory=asyncio.Event)
    open: asyncio.Event = attrs.field(factory=asyncio.Event)
    running: int = 0
    most: int = 0

    async def __call__(self, request, job):
        self.running += 1
        self.most = max(self.most, self.running)
        self.entered.set()
        try:
            await self.open.wait()
        finally:
            self.running -= 1
        return self.result


async def passed(event):
    async with asyncio.timeout(PATIENCE_S):
        await event.wait()


async def settled_down(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(0.005)


# -- who works


async def test_an_accepted_task_starts_by_an_event_and_not_by_a_look_at_the_queue(
    shop, monkeypatch
):
    monkeypatch.setattr("gateway.worker._IDLE_S", 3600.0)
    gate = Gate()
    shop.provider.script = [gate]
    shop.pool.start()
    await asyncio.sleep(0.05)
    await shop.accept()
    await passed(gate.entered)
    gate.open.set()


async def test_no_more_than_the_lanes_work_at_once(shop):
    gate = Gate()
    shop.provider.script = [gate] * 7
    ids = [await shop.accept() for _ in range(7)]
    shop.pool.start()
    await settled_down(lambda: gate.running == 2)
    await asyncio.sleep(0.05)
    assert (await shop.store.queue_depth()) == {"processing": 2, "queued": 5}
    gate.open.set()
    for task_id in ids:
        assert (await shop.ended(task_id)).status == "completed"
    assert gate.most == 2
    await settled_down(lambda: sorted(set(shop.done)) == sorted(ids))


async def test_an_attempt_is_durable_before_the_provider_is_called(shop):
    seen = []

    async def look(request, job):
        seen.append((await shop.store.task(job.task_id)).attempt)
        return PICTURE

    shop.provider.script = [look]
    shop.pool.start()
    await shop.ended(await shop.accept())
    assert seen == [1]


async def test_progress_shows_in_the_task(shop):
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
            await asyncio.sleep(0.05)
    gate.open.set()
    await shop.ended(task_id)


async def test_a_task_whose_endpoint_is_gone_fails_and_is_owed_back(shop):
    shop.pool.start()
    task = await shop.ended(await shop.accept(endpoint=attrs.evolve(ENDPOINT, slug="gone")))
    assert (task.status, task.refund.amount_units) == ("failed", 20_000)


# -- attempts


async def test_three_retries_after_the_first_attempt_and_each_waits_longer(shop):
    waits = []
    retry = shop.store.retry

    async def recorded(lease, *, due_at, costs_attempt):
        waits.append(due_at - shop.clock())
        return await retry(lease, due_at=due_at, costs_attempt=costs_attempt)

    shop.store.retry = recorded
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
    shop, error, details
):
    shop.provider.script = [error]
    with structlog.testing.capture_logs() as lines:
        shop.pool.start()
        task = await shop.ended(await shop.accept())
    assert (task.status, task.details, task.refund.amount_units) == ("failed", details, 20_000)
    assert str(error) not in task.error
    assert len(shop.provider.requests) == 1
    told = [line for line in lines if line["log_level"] == "error"]
    assert [line.get("reason") for line in told] == (
        ["402: no credit left"] if isinstance(error, AccountProblem) else []
    )


async def test_being_asked_to_wait_costs_no_attempt(shop, monkeypatch):
    monkeypatch.setattr("gateway.lane._WAIT_S", (0.01, 1.0))
    shop.provider.script = [RateLimited("later", retry_after_s=0.01)] * 6
    shop.pool.start()
    task = await shop.ended(await shop.accept())
    assert (task.status, task.attempt) == ("completed", 1)
    assert len(shop.provider.requests) == 7


async def test_a_task_that_kills_its_process_four_times_fails(shop, monkeypatch):
    task_id = await shop.accept()
    for attempt in range(1, 5):
        (lease,) = await shop.store.claim_tasks(1, lease_s=60, now=shop.clock())
        assert lease.attempt == attempt
        await shop.store.recover_leases(now=shop.clock())
    shop.pool.start()
    task = await shop.ended(task_id)
    assert (task.status, task.details) == ("failed", "provider_error")
    assert task.refund.amount_units == 20_000
    assert shop.provider.requests == []


# -- what a provider may do


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
    async with opened(tmp_path, provider, clock, timeout_s=0.05) as shop:
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


# -- leases


def lane_of(shop, lease):
    """Return another process's lane, as far as the store can tell."""
    pool = shop.pool
    return Lane(
        store=pool.store,
        catalog=pool.catalog,
        artifacts=pool.artifacts,
        now=pool.now,
        retention_s=pool.retention_s,
        backoff_s=pool.backoff_s,
        lease=lease,
    )


async def steal(shop, task_id):
    """Take a task's lease away, as after it has expired."""
    _, (lease,) = await asyncio.gather(  # one batch of the writer: no lane comes in between
        shop.store.recover_leases(now=shop.clock()),
        shop.store.claim_tasks(1, lease_s=60, now=shop.clock()),
    )
    assert lease.task_id == task_id
    return lease


async def test_who_lost_the_lease_changes_neither_the_result_nor_its_files(shop):
    gate = Gate(result=Result(outputs=(Output(data=b"late", media_type="image/png"),)))
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    await lane_of(shop, await steal(shop, task_id))._complete(PICTURE)
    gate.open.set()
    await settled_down(lambda: not shop.pool._busy)
    task = await shop.store.task(task_id)
    assert (task.status, task.attempt) == ("completed", 2)
    (output,) = task.result.outputs
    assert output.sha256 == hashlib.sha256(PNG).hexdigest()
    on_disk = (shop.folder / output.key).read_bytes()
    assert hashlib.sha256(on_disk).hexdigest() == output.sha256


async def test_the_files_of_a_refused_result_are_deleted(shop):
    gate = Gate(result=Result(outputs=(Output(data=b"late", media_type="image/jpeg"),)))
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    await lane_of(shop, await steal(shop, task_id))._complete(PICTURE)
    gate.open.set()
    await settled_down(lambda: not shop.pool._busy)
    task = await shop.store.task(task_id)
    known = {shop.folder / output.key for output in task.result.outputs}
    assert {path for path in shop.folder.rglob("*") if path.is_file()} == known


async def test_a_lane_that_lost_its_lease_stops(shop, monkeypatch):
    monkeypatch.setattr("gateway.lane._EXTEND_S", 0.5)
    gate = Gate()
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    lease = await steal(shop, task_id)
    await settled_down(lambda: gate.running == 0)
    assert await shop.store.complete(
        lease, StoredResult(text="mine"), expires_at=shop.clock(), now=shop.clock()
    )


async def test_a_lease_is_kept_although_prolonging_it_fails_once(shop, monkeypatch):
    monkeypatch.setattr("gateway.lane._EXTEND_S", 0.5)
    monkeypatch.setattr("gateway.worker.LEASE_S", 2.2)
    monkeypatch.setattr("gateway.lane.LEASE_S", 2.2)
    extend, calls = shop.store.extend, []

    async def fails_once(lease, **more):
        calls.append(lease)
        if len(calls) == 1:
            raise OSError("disk trouble")
        return await extend(lease, **more)

    shop.store.extend = fails_once
    gate = Gate()
    shop.provider.script = [gate, gate]
    shop.pool.start()
    task_id = await shop.accept()
    await asyncio.sleep(2.6)
    assert gate.running == 1  # the same task is not generated twice
    gate.open.set()
    task = await shop.ended(task_id)
    assert (task.status, task.attempt) == ("completed", 1)
    await settled_down(lambda: task_id in shop.done)


async def test_the_queue_is_worked_off_although_the_store_failed_at_the_start(shop):
    recover = shop.store.recover_leases

    async def fails_once(**more):
        shop.store.recover_leases = recover
        raise OSError("disk trouble")

    shop.store.recover_leases = fails_once
    task_id = await shop.accept()
    shop.pool.start()
    assert (await shop.ended(task_id)).status == "completed"


# -- draining


async def test_draining_lets_the_lanes_finish(shop):
    gate = Gate()
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    draining = asyncio.create_task(shop.pool.drain(grace_s=5))
    await asyncio.sleep(0.02)
    waiting = await shop.accept()
    gate.open.set()
    await draining
    assert (await shop.store.task(task_id)).status == "completed"
    assert (await shop.store.task(waiting)).status == "queued"


async def test_what_does_not_finish_in_time_is_given_back_and_costs_nothing(shop):
    gate = Gate()
    shop.provider.script = [gate]
    shop.pool.start()
    task_id = await shop.accept()
    await passed(gate.entered)
    await shop.pool.drain(grace_s=0.01)
    task = await shop.store.task(task_id)
    assert (task.status, task.attempt) == ("processing", 0)
    shop.pool = attrs.evolve(shop.pool)
    shop.pool.start()
    task = await shop.ended(task_id)
    assert (task.status, task.attempt) == ("completed", 1)


async def test_a_claim_under_way_is_given_back_as_well(shop):
    """The claim commits although its caller is cancelled; nobody works on it then."""
    claim, claiming = shop.store.claim_tasks, asyncio.Event()

    async def slowly(limit, **more):
        leases = await claim(limit, **more)
        if leases:
            claiming.set()
            await asyncio.sleep(0.1)
        return leases

    shop.store.claim_tasks = slowly
    shop.pool.start()
    task_id = await shop.accept()
    await passed(claiming)
    await shop.pool.drain(grace_s=1)
    task = await shop.store.task(task_id)
    assert task.is_done or task.attempt == 0
