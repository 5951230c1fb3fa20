"""A queue with its workers over a real database, and providers whose every step a test decides."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio
import contextlib
import itertools

import attrs

from gateway import Handle, Output, Pending, Result, Traits
from gateway.catalog.catalog import Catalog
from gateway.domain import DOCUMENT_PARSING
from gateway.outputs import DiskOutputs
from gateway.store import SqliteStore
from gateway.tasks import TaskTiming, WorkerPool
from gateway.tasks.attempt import Attempt
from gateway_testing.facts import ENDPOINT, new_task, transfer, tx_hash
from tests.conftest import PNG
from tests.migrated_databases import put_database
from tests.patience import PATIENCE_S, until

PICTURE = Result(outputs=(Output(data=PNG, media_type="image/png", width=1, height=1),))
TEXT = Result(text="# Done\n")
PAPER = attrs.evolve(ENDPOINT, slug="paper", capability=DOCUMENT_PARSING)
SHORT = TaskTiming(
    backoff_s=0.01,
    dispatch_pause_s=0.01,
    drain_poll_s=0.02,
    poll_pauses_s=(0.002, 0.005),
    poll_after_s=(0.001, 60.0),
    download_pauses_s=(0.01, 0.01),
    write_pauses_s=(0.01, 0.01, 0.01),
)
_numbers = itertools.count(1)


@attrs.define
class Shop:
    """A queue, its workers and its offers."""

    store: SqliteStore
    pool: WorkerPool
    catalog: Catalog
    provider: object
    clock: object
    done: list
    folder: object

    @property
    def upstream(self):
        return self.catalog.everything()[0].upstream

    @property
    def circuit(self):
        return self.upstream.circuit

    def time(self, **changes):
        """Change durations of `TaskTiming` from here on."""
        resources = self.pool.resources
        resources.timing = attrs.evolve(resources.timing, **changes)

    async def accept(self, endpoint=ENDPOINT, **changes):
        task = new_task(endpoint=endpoint, created_at=self.clock(), **changes)
        number = next(_numbers)
        await self.store.accept_direct(task, tx_hash(number), [transfer(number)], None)
        self.pool.wake()
        return task.id

    async def sold(self, count=1):
        """Accept papers; returns their tasks' names, oldest first."""
        return [await self.accept(PAPER) for _ in range(count)]

    async def ended(self, task_id):
        async with asyncio.timeout(PATIENCE_S):
            while not (task := await self.store.task(task_id)).is_done:
                await asyncio.sleep(0.005)
        return task

    async def row(self, task_id):
        (row,) = await self.store._rows("SELECT * FROM tasks WHERE id = ?", task_id)
        return row

    async def idle(self):
        """Return once no attempt runs."""
        await until(lambda: not self.pool._working)

    async def crash(self):
        """End as by SIGKILL: nothing more is written."""

        async def dead(*_, **__):
            raise OSError("the process is dead")

        for name in ("lease", "begin_submit", "save_handle", "complete", "fail", "retry"):
            setattr(self.store.queue, name, dead)
        self.store.queue.give_back = self.store.queue.extend = dead
        await self.pool.drain(grace_s=0)


def put_on_sale(catalog, provider, **changes):
    for endpoint in (ENDPOINT, PAPER):
        catalog.register(attrs.evolve(endpoint, **changes), provider, "test")


@contextlib.asynccontextmanager
async def opened(
    tmp_path,
    provider,
    clock,
    *,
    workers=2,
    timeout_s=300.0,
    cost_micros=None,
    links=None,
    start=True,
    **timing,
):
    """Open a shop that sells a picture and a paper; over the same folder: a restart.

    `timing` are changes of `SHORT`.
    """
    done = []
    async with SqliteStore(put_database(tmp_path / "gateway.db")) as store:
        catalog = Catalog({}, now=clock, slots=workers)
        put_on_sale(catalog, provider, timeout_s=timeout_s, cost_micros=cost_micros)
        pool = WorkerPool(
            store=store,
            catalog=catalog,
            output_store=DiskOutputs(tmp_path / "outputs", "secret"),
            now=clock,
            workers=workers,
            retention_s=60,
            on_done=done.append,
            timing=attrs.evolve(SHORT, **timing),
        )
        if links is not None:
            pool.resources = attrs.evolve(pool.resources, links=links)
        shop = Shop(store, pool, catalog, provider, clock, done, tmp_path / "outputs")
        if start:
            pool.start()
        try:
            yield shop
        finally:
            with contextlib.suppress(Exception):  # what a dispatcher died of was a test's finding
                async with asyncio.timeout(PATIENCE_S):
                    await shop.pool.drain(grace_s=0)


class JobApi:
    """A provider of jobs: each call returns the script's next result, or the usual one."""

    name = "jobs"

    def __init__(self, **traits):
        self.traits = Traits(**{"max_concurrency": 50, **traits})
        self.submits = []  # tasks
        self.polls = []  # ids of jobs
        self.cancels = []
        self.to_submit = []
        self.to_poll = []
        self.usual = Pending()

    async def submit(self, request, job):
        self.submits.append(job.task_id)
        handle = Handle(id=f"job-{len(self.submits)}", urls={"get": "https://api.test/1"})
        return await run_step(self.to_submit.pop(0) if self.to_submit else handle, request, job)

    async def poll(self, handle, job):
        self.polls.append(handle.id)
        return await run_step(self.to_poll.pop(0) if self.to_poll else self.usual, handle, job)


class StoppableApi(JobApi):
    """A provider whose jobs can be stopped; `refusal` is raised instead."""

    refusal = None

    async def cancel(self, handle):
        self.cancels.append(handle.id)
        if self.refusal is not None:
            raise self.refusal


class PlainApi:
    """A provider that returns the result, and may be billed for each call."""

    name = "plain"

    def __init__(self, *script, **traits):
        self.traits = Traits(**traits)
        self.submits = []
        self.script = list(script)

    async def submit(self, request, job):
        self.submits.append(job.task_id)
        return await run_step(self.script.pop(0) if self.script else TEXT, request, job)


async def run_step(step, *asked):
    """Return or raise a script's result."""
    if callable(step):
        step = await step(*asked)
    if isinstance(step, BaseException):
        raise step
    return step


@attrs.define
class Gate:
    """A step of a provider that waits to be let through."""

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


async def drained(shop):
    """Drain with a long timeout, of which little may be needed."""
    await stopped(asyncio.create_task(shop.pool.drain(grace_s=3600)))


async def stopped(draining):
    """Wait for a drain; one that does not end is a failure."""
    done, _ = await asyncio.wait({draining}, timeout=PATIENCE_S)
    draining.cancel()
    assert done, "it does not stop"
    draining.result()


async def steal(shop, task_id):
    """Take a task's lease away, as after it has expired."""
    _, leases = await asyncio.gather(  # one batch of the writer: no worker comes in between
        shop.store.queue.recover(now=shop.clock()),
        shop.store.queue.lease(1, lease_s=60, now=shop.clock()),
    )
    (lease,) = leases
    assert lease.task_id == task_id
    return lease


def attempt_of(shop, lease):
    """Return another process's attempt, as the store sees it."""
    return Attempt(shop.pool.resources, lease)
