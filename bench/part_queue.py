"""Tasks per second through queue, lanes and store, with a provider that answers at once."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop
from place import folder
from rich.table import Table
from samples import accept, catalog, log_to_nowhere

from gateway.artifacts import LocalArtifacts
from gateway.contracts import Artifacts
from gateway.domain import Result, StoredOutput, StoredResult
from gateway.store import SqliteStore
from gateway.worker import WorkerPool

_TASKS = 10_000
_WITH_FILES = 1_000


class NoArtifacts:
    """Keeps nothing: what is left is the engine."""

    async def save(self, task_id: str, result: Result) -> StoredResult:  # noqa: ARG002 - Artifacts
        """Keep the text only."""
        return StoredResult(text=result.text)

    async def delete(self, outputs: Sequence[StoredOutput]) -> None:
        """Delete nothing."""


async def _rate(tasks: int, lanes: int, artifacts: Artifacts, data: Path) -> float:
    """Return how many tasks a second go from queued to completed."""
    async with SqliteStore(data / "gateway.db") as store:
        for _ in range(0, tasks, 500):
            await asyncio.gather(*(accept(store, time.time()) for _ in range(500)))
        done, finished = 0, asyncio.Event()

        def count(_: str) -> None:
            nonlocal done
            done += 1
            if done == tasks:
                finished.set()

        workers = WorkerPool(
            store=store,
            catalog=catalog(),
            artifacts=artifacts,
            now=time.time,
            lanes=lanes,
            retention_s=86_400,
            on_done=count,
        )
        began = time.perf_counter()
        workers.start()
        await finished.wait()
        elapsed = time.perf_counter() - began
        await workers.drain(grace_s=5)
        counts = await store.counts()
        if counts["tasks"] != {"completed": tasks}:
            raise RuntimeError(f"not every task was completed: {counts}")
    return tasks / elapsed


def _once(tasks: int, lanes: int, *, with_files: bool) -> float:
    with folder() as name:
        data = Path(name)
        kept: object = LocalArtifacts(data / "outputs", "s") if with_files else NoArtifacts()
        return uvloop.run(_rate(tasks, lanes, kept, data))  # type: ignore[arg-type]


def run() -> list[Table]:
    """Measure, and return the tables."""
    log_to_nowhere()
    table = Table("lanes", "tasks", "outputs", "a second", title="Queue, provider at once")
    for lanes in (4, 64):
        rate = _once(_TASKS, lanes, with_files=False)
        table.add_row(str(lanes), f"{_TASKS:,}", "none: the engine alone", f"{rate:,.0f}")
    for lanes in (4, 64):
        rate = _once(_WITH_FILES, lanes, with_files=True)
        table.add_row(str(lanes), f"{_WITH_FILES:,}", "a file each, durable", f"{rate:,.0f}")
    return [table]
