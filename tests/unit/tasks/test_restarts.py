"""Deaths of the gateway count apart from attempts, and a task that causes them is found."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio
import contextlib
import sqlite3

import attrs
import pytest

from gateway import RateLimited, Traits, Transient
from gateway.store import SqliteStore
from gateway.store.sqlite import migrations
from gateway.tasks.outcome import MAX_LONE_RUNS, MAX_RESTARTS
from gateway_testing.facts import queued
from tests.patience import until
from tests.unit.tasks.engine_shop import PAPER, TEXT, JobApi, PlainApi, opened, steal


class DeadlyApi:
    """A provider during whose work on some tasks the process dies; it records what runs beside."""

    name = "deadly"
    traits = Traits(idempotent_submit=True)

    def __init__(self, *poison):
        self.poison = set(poison)
        self.is_first = True
        self.running = set()
        self.beside = []
        self.killed = asyncio.Event()

    async def submit(self, request, job):
        self.running.add(job.task_id)
        self.beside.append(frozenset(self.running))
        try:
            if job.task_id in self.poison:
                self.killed.set()
            if job.task_id in self.poison or self.is_first:
                await asyncio.Event().wait()
        finally:
            self.running.discard(job.task_id)
        return TEXT


async def live(tmp_path, api, clock, *, workers=3, count=0):
    """Run one process until it is killed or idle; returns the tasks, accepted at first."""
    async with opened(tmp_path, api, clock, workers=workers, start=not count) as shop:
        if count:
            tasks = await shop.sold(count)
            shop.pool.start()
            await until(lambda: len(api.running) == min(count, workers))
            await shop.crash()
            return tasks
        await until_idle_or_killed(shop, api)
        await shop.crash()
        return []


async def until_idle_or_killed(shop, api):
    while not api.killed.is_set():
        depth = await shop.store.queue.depth()
        if not depth:
            return
        await asyncio.sleep(0.01)


async def state_of(tmp_path, clock, task_id):
    async with opened(tmp_path, PlainApi(), clock, start=False) as shop:
        return await shop.store.task(task_id), await shop.row(task_id)


async def test_a_task_that_was_running_in_four_processes_that_died_is_made(shop):
    task_id = await shop.accept()
    for _ in range(4):
        (lease,) = await shop.store.queue.lease(1, lease_s=60, now=shop.clock())
        assert lease.attempt == 1
        await shop.store.queue.recover(now=shop.clock())
    shop.pool.start()
    task = await shop.ended(task_id)
    assert (task.status, task.attempt) == ("completed", 1)


async def test_a_lease_that_expired_is_a_restart_and_no_attempt(shop):
    task_id = await shop.accept()
    for restarts in range(3):
        (lease,) = await shop.store.queue.lease(1, lease_s=60, now=shop.clock())
        assert (lease.attempt, lease.restarts) == (1, restarts)
        shop.clock.offset_s += 61
    shop.pool.start()
    assert (await shop.ended(task_id)).attempt == 1


async def test_the_task_that_kills_the_gateway_is_found_and_takes_no_other_down(tmp_path, clock):
    api = DeadlyApi()
    first, poison, last = await live(tmp_path, api, clock, count=3)
    api.poison, api.is_first, api.beside = {poison}, False, []
    for _ in range(MAX_LONE_RUNS):
        api.killed.clear()
        await live(tmp_path, api, clock)
        assert api.killed.is_set()
    api.killed.clear()
    await live(tmp_path, api, clock)
    assert not api.killed.is_set()
    # What ran in the process that died started one at a time.
    assert all(len(running) == 1 for running in api.beside)
    for task_id in (first, last):
        task, _ = await state_of(tmp_path, clock, task_id)
        assert (task.status, task.attempt) == ("completed", 1)
    task, row = await state_of(tmp_path, clock, poison)
    assert (task.status, task.details, task.refund.amount_units) == (
        *("failed", "provider_error", 20_000),
    )
    assert "gateway stopped each time" in task.error
    assert row["reason"] == (
        "The gateway stopped, or could not write, 3 times while it worked on this task."
    )
    assert task.attempt <= 4


async def test_new_tasks_wait_for_a_suspect_and_then_run_together(tmp_path, clock):
    api = DeadlyApi()
    (old,) = await live(tmp_path, api, clock, count=1)
    api.beside = []
    async with opened(tmp_path, api, clock, workers=3, start=False) as shop:
        new = await shop.sold(2)
        shop.pool.start()
        await until(lambda: old in api.running)
        await asyncio.sleep(0.05)
        assert api.running == {old}
        shop.time(lone_s=0.0, heartbeat_s=0.001)
        # Its time alone ends at a heartbeat.
        await until(lambda: api.running == {old, *new})


async def test_long_suspects_pass_one_after_another_and_new_tasks_start(tmp_path, clock):
    api = DeadlyApi()
    old = await live(tmp_path, api, clock, workers=3, count=3)
    async with opened(tmp_path, api, clock, workers=4, start=False) as shop:
        shop.time(lone_s=0.0, heartbeat_s=0.001)
        (new,) = await shop.sold()
        shop.pool.start()
        await until(lambda: api.running == {*old, new})


@contextlib.asynccontextmanager
async def expired_beside_a_long_attempt(tmp_path, clock, **timing):
    """Open a shop that runs one attempt while the lease of a dead node has expired."""
    api = DeadlyApi()
    async with opened(tmp_path, api, clock, workers=3, start=False, **timing) as shop:
        queue = shop.store.queue
        queue._node = "dead"
        (suspect,) = await shop.sold()
        await queue.lease(1, lease_s=60, now=clock())
        queue._node = "alive"
        (long,) = await shop.sold()
        shop.pool.start()
        await until(lambda: api.running == {long})
        clock.offset_s += 61
        (new,) = await shop.sold()
        await asyncio.sleep(0.05)
        yield shop, api, suspect, long, new


async def test_a_suspect_that_another_node_leases_holds_up_nothing_here(tmp_path, clock):
    async with expired_beside_a_long_attempt(tmp_path, clock, idle_s=0.02) as found:
        shop, api, suspect, long, new = found
        assert api.running == {long}
        (lease,) = await shop.store.queue.lease(1, lease_s=60, now=clock(), which="suspects")
        assert lease.task_id == suspect
        await until(lambda: api.running == {long, new})


async def test_a_suspect_waits_for_no_attempt_that_has_long_run(tmp_path, clock):
    async with expired_beside_a_long_attempt(tmp_path, clock, idle_s=0.02) as found:
        shop, api, suspect, long, new = found
        shop.time(lone_s=0.0, idle_s=0.02)
        await until(lambda: api.running == {suspect, long, new})


async def test_if_one_lone_attempt_after_another_is_killed_none_of_them_is_to_blame(
    tmp_path, clock
):
    """An operator's kills, or a gateway that dies of something else."""
    api = DeadlyApi()
    tasks = await live(tmp_path, api, clock, count=3)
    api.poison, api.is_first = set(tasks), False
    for _ in range(24):
        api.killed.clear()
        await live(tmp_path, api, clock)
    api.poison = set()
    api.killed.clear()
    await live(tmp_path, api, clock)
    for task_id in tasks:
        task, row = await state_of(tmp_path, clock, task_id)
        assert (task.status, task.attempt) == ("completed", 1), row["reason"]


async def test_of_two_poisonous_files_each_is_found_by_two_lone_deaths(tmp_path, clock):
    api = DeadlyApi()
    *poison, good = await live(tmp_path, api, clock, count=3)
    api.poison, api.is_first = set(poison), False
    for _ in range(2 * MAX_LONE_RUNS):
        api.killed.clear()
        await live(tmp_path, api, clock)
        assert api.killed.is_set()
    api.killed.clear()
    await live(tmp_path, api, clock)
    assert not api.killed.is_set()
    for task_id in poison:
        task, _ = await state_of(tmp_path, clock, task_id)
        assert (task.status, task.payment.state) == ("failed", "refund_due")
    task, _ = await state_of(tmp_path, clock, good)
    assert (task.status, task.attempt) == ("completed", 1)


async def test_but_no_task_is_begun_for_ever(tmp_path, clock):
    api = DeadlyApi()
    tasks = await live(tmp_path, api, clock, count=3)
    api.poison, api.is_first = set(tasks), False
    for _ in range(3 * MAX_RESTARTS + 3):
        api.killed.clear()
        await live(tmp_path, api, clock)
    for task_id in tasks:
        task, _ = await state_of(tmp_path, clock, task_id)
        assert (task.status, task.payment.state) == ("failed", "refund_due")


async def test_a_job_that_still_waits_is_no_suspect_any_more(tmp_path, clock):
    api = JobApi(idempotent_submit=True)
    async with opened(tmp_path, api, clock, workers=3) as shop:
        first, second = await shop.sold(2)
        await until(lambda: len(api.polls) >= 2)
        await shop.crash()
    async with opened(tmp_path, api, clock, workers=3, heartbeat_s=0.001) as shop:
        await until(lambda: len(shop.pool._working) == 2)
        for task_id in (first, second):
            await until_row(shop, task_id, lone_runs=0, restarts=1)
        api.usual = TEXT
        assert (await shop.ended(first)).attempt == (await shop.ended(second)).attempt == 1
    assert len(api.submits) == 2


_AWAY = [Transient("503"), TimeoutError(), RateLimited("429", retry_after_s=1.0)]


@pytest.mark.parametrize("away", _AWAY, ids=repr)
async def test_jobs_whose_vendor_is_away_hold_up_no_other_task(tmp_path, clock, away):
    api = JobApi(idempotent_submit=True)
    async with opened(tmp_path, api, clock, workers=2) as shop:
        jobs = await shop.sold(3)
        await until(lambda: len(set(api.polls)) == len(jobs))
        await shop.crash()
    api.usual = away
    api.polls.clear()
    async with opened(tmp_path, api, clock, workers=2) as shop:
        await until(lambda: len(set(api.polls)) == len(jobs))
        shop.catalog.register(attrs.evolve(PAPER, slug="other"), PlainApi(), "test")
        task = await shop.ended(await shop.accept(attrs.evolve(PAPER, slug="other")))
        assert task.status == "completed"
    assert len(api.submits) == len(jobs)


async def test_a_job_begun_alone_whose_vendor_is_away_holds_up_no_other_task(tmp_path, clock):
    api = JobApi(idempotent_submit=True)
    api.usual = Transient("503")
    async with opened(tmp_path, api, clock, start=False) as shop:
        (task_id,) = await shop.sold()
        await shop.store.queue.lease(1, lease_s=60, now=clock())
        shop.pool.start()
        await until(lambda: api.polls)
        await until_row(shop, task_id, lone_runs=0, restarts=1)
        await shop.sold()
        await until(lambda: len(set(api.polls)) == 2)


async def until_row(shop, task_id, **values):
    while {name: row[name] for row in [await shop.row(task_id)] for name in values} != values:
        await asyncio.sleep(0.005)


async def test_a_provider_that_answers_ends_the_suspicion(tmp_path, clock):
    api = PlainApi(Transient("503"), idempotent_submit=True)
    async with opened(tmp_path, api, clock, start=False, backoff_s=600.0) as shop:
        (task_id,) = await shop.sold()
        await shop.store.queue.lease(1, lease_s=60, now=clock())
        shop.pool.start()
        await until_row(shop, task_id, restarts=0, lone_runs=0, attempt=1, lease_token=None)
    assert len(api.submits) == 1


async def test_a_stop_gives_a_lone_attempt_back(tmp_path, clock):
    api = DeadlyApi()
    (task_id,) = await live(tmp_path, api, clock, count=1)
    for _ in range(4):
        async with opened(tmp_path, api, clock) as shop:
            await until(lambda: api.running)
    async with opened(tmp_path, api, clock, start=False) as shop:
        row = await shop.row(task_id)
    assert (row["restarts"], row["lone_runs"], row["attempt"]) == (1, 0, 0)


async def test_a_stolen_lease_counts_once(shop):
    task_id = await shop.accept()
    await shop.store.queue.lease(1, lease_s=60, now=shop.clock())
    lease = await steal(shop, task_id)
    assert (lease.attempt, lease.restarts, lease.lone_runs) == (1, 1, 0)


@pytest.mark.parametrize("status", ["queued", "processing"])
async def test_a_database_of_the_previous_release_goes_on(tmp_path, status):
    path = tmp_path / "gateway.db"
    number, sql = migrations.migrations()[0]
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrations.apply(db, number, sql)
        assert "restarts" not in {row[1] for row in db.execute("PRAGMA table_info(tasks)")}
    async with SqliteStore(path) as store:
        task = await queued(store)
        now = task.created_at
        if status == "processing":
            await store.queue.lease(1, lease_s=60, now=now)
            assert await store.queue.recover(now=now) == 1
        (lease,) = await store.queue.lease(1, lease_s=60, now=now)
        restarts = int(status == "processing")
        assert attrs.astuple(lease, filter=attrs.filters.include("attempt", "restarts")) == (
            *(1, restarts),
        )


def test_the_previous_release_may_use_a_migrated_database(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "gateway.db", isolation_level=None)) as db:
        migrations.migrate(db)
        assert migrations.readable_by_of(db) == 1
        db.execute("SELECT restarts, lone_runs FROM tasks")
