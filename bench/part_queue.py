"""Tasks per second through queue, workers and store, and the delay from acceptance to submit."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop
from gateway_bench import INSTANT, InstantProvider
from place import folder, sized
from rich.table import Table
from samples import accept, log_to_nowhere

from gateway import GenerationRequest, Job, Result, Traits
from gateway.catalog.catalog import Catalog
from gateway.contracts import OutputStore, Provider
from gateway.domain import StoredOutput, StoredResult
from gateway.outputs import DiskOutputs
from gateway.store import SqliteStore
from gateway.tasks import WorkerPool

_TASKS = sized(10_000, 500)
_WITH_FILES = sized(1_000, 500)
_IDLE_TASKS = sized(300, 3)
_IDLE_PAUSE_S = 0.02  # between two tasks, so that the gateway is idle


class Repeatable(InstantProvider):
    """An idempotent provider: no mark is written before a submit."""

    traits = Traits(idempotent_submit=True)


class Timed(InstantProvider):
    """A provider that is not idempotent, like all real ones; records when it was called."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.at = 0.0

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Return one word."""
        self.at = time.perf_counter()
        self.asked.set()
        return await super().submit(request, job)


class NoOutputs:
    """Stores no outputs, so that only the engine is measured."""

    async def save(self, folder: str, result: Result) -> StoredResult:  # noqa: ARG002 - OutputStore
        """Keep the text only."""
        return StoredResult(text=result.text)

    async def delete(self, outputs: Sequence[StoredOutput]) -> None:
        """Delete nothing."""


def _pool(
    store: SqliteStore, provider: Provider, workers: int, outputs: OutputStore, **more: object
) -> WorkerPool:
    catalog = Catalog({}, slots=workers)
    catalog.register(INSTANT, provider, "bench")
    options = {"on_done": lambda _: None, **more}
    return WorkerPool(
        store=store,
        catalog=catalog,
        output_store=outputs,
        now=time.time,
        workers=workers,
        retention_s=86_400,
        **options,  # type: ignore[arg-type]
    )


async def _rate(
    tasks: int, workers: int, provider: Provider, outputs: OutputStore, data: Path
) -> float:
    """Return how many tasks per second go from queued to completed."""
    async with SqliteStore(data / "gateway.db") as store:
        for _ in range(0, tasks, 500):
            await asyncio.gather(*(accept(store, time.time()) for _ in range(500)))
        done, finished = 0, asyncio.Event()

        def count(_: str) -> None:
            nonlocal done
            done += 1
            if done == tasks:
                finished.set()

        pool = _pool(store, provider, workers, outputs, on_done=count)
        began = time.perf_counter()
        pool.start()
        await finished.wait()
        elapsed = time.perf_counter() - began
        await pool.drain(grace_s=5)
        counts = await store.counts()
        if counts["tasks"] != {"completed": tasks}:
            raise RuntimeError(f"not every task was completed: {counts}")
    return tasks / elapsed


def _once(tasks: int, workers: int, provider: Provider, *, with_files: bool) -> float:
    with folder() as name:
        data = Path(name)
        kept: object = DiskOutputs(data / "outputs", "s") if with_files else NoOutputs()
        return uvloop.run(_rate(tasks, workers, provider, kept, data))  # type: ignore[arg-type]


async def _delays_ms(data: Path) -> list[float]:
    """Return the sorted delays from acceptance to submit of single tasks, in milliseconds."""
    delays = []
    async with SqliteStore(data / "gateway.db") as store:
        provider = Timed()
        workers = _pool(store, provider, 4, NoOutputs())  # type: ignore[arg-type]
        workers.start()
        for _ in range(_IDLE_TASKS):
            await asyncio.sleep(_IDLE_PAUSE_S)
            provider.asked.clear()
            await accept(store, time.time())
            accepted = time.perf_counter()
            workers.wake()
            await provider.asked.wait()
            delays.append((provider.at - accepted) * 1000)
        await workers.drain(grace_s=5)
    return sorted(delays)


def _idle() -> Table:
    with folder() as name:
        delays = uvloop.run(_delays_ms(Path(name)))
    table = Table("", "p50", "p99", "target", title="Accepted until submitted, idle")
    p50, p99 = delays[len(delays) // 2], delays[int(len(delays) * 0.99)]
    table.add_row("one task, its mark durable", f"{p50:.1f} ms", f"{p99:.1f} ms", "p99 ≤ 20 ms")
    return table


def run() -> list[Table]:
    """Measure, and return the tables."""
    log_to_nowhere()
    table = Table(
        "workers", "tasks", "submit", "outputs", "a second", title="Queue, provider at once"
    )
    for provider, submit in ((Repeatable(), "repeatable"), (InstantProvider(), "marked before")):
        for workers in (4, 64):
            rate = _once(_TASKS, workers, provider, with_files=False)
            about = "none: the engine alone"
            table.add_row(str(workers), f"{_TASKS:,}", submit, about, f"{rate:,.0f}")
    for workers in (4, 64):
        rate = _once(_WITH_FILES, workers, Repeatable(), with_files=True)
        about = "a file each, durable"
        table.add_row(str(workers), f"{_WITH_FILES:,}", "repeatable", about, f"{rate:,.0f}")
    return [table, _idle()]
