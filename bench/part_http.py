"""Requests per second and latency on one core, compared with a bare Quart route."""

import asyncio
import contextlib
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
from load import HOW_TO_GET_WRK, Load, Target, has_wrk, measure
from place import folder, sized
from processes import bare, gateway, get, stub_chain
from rich.table import Table
from samples import accept

from gateway.domain import StoredOutput, StoredResult
from gateway.store import SqliteStore

_CONNECTIONS = 16
_ROUNDS = sized(3, 1)  # in turns, so that a noisy neighbour affects all alike
_SECONDS = sized(2, 0.1)  # a round of one target
_RESULT = StoredResult(
    outputs=(
        StoredOutput(
            key="0/0.png",
            media_type="image/png",
            size_bytes=123_456,
            sha256="0" * 64,
            width=1024,
            height=1024,
        ),
    )
)


async def completed_task(data: Path, task_id: str | None = None) -> str:
    """Complete a task in a new database, with that id if one is given, and return the id."""
    async with SqliteStore(data / "gateway.db") as store:
        now = time.time()
        task = await accept(store, now, task_id)
        (lease,) = await store.queue.lease(1, lease_s=60, now=now)
        await store.queue.complete(lease, _RESULT, expires_at=now + 86_400, now=now)
    return task.id


@contextlib.contextmanager
def _targets() -> Iterator[list[Target]]:
    """Run the servers within the block; yields the targets, the baseline first."""
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        task_id = asyncio.run(completed_task(data))
        rpc_url = stack.enter_context(stub_chain())
        quart, asgi = (stack.enter_context(bare(kind)) for kind in ("quart", "asgi"))
        port = stack.enter_context(gateway(data, rpc_url))
        if get(port, f"/api/task/{task_id}")[0] != 200:
            raise RuntimeError("the completed task cannot be polled")
        body = '{"prompt":"A lighthouse at dusk"}'
        yield [
            Target(name="bare Quart route", port=quart, path="/bare"),
            Target(name="bare ASGI app, no Quart", port=asgi, path="/bare"),
            Target(name="/api/health", port=port, path="/api/health"),
            Target(name="poll of a completed task", port=port, path=f"/api/task/{task_id}"),
            Target(
                name="402 challenge", port=port, path="/api/x402/instant", body=body, status=402
            ),
        ]


@attrs.frozen
class _Median:
    """The medians of a target's rounds."""

    rounds: list[Load]

    def of(self, name: str) -> float:
        return statistics.median(getattr(one, name) for one in self.rounds)


def run() -> list[Table]:
    """Measure, and return the tables."""
    with _targets() as targets:
        for target in targets:
            measure(target, connections=_CONNECTIONS, seconds=_SECONDS / 2)
        rounds = [
            [measure(target, connections=_CONNECTIONS, seconds=_SECONDS) for target in targets]
            for _ in range(_ROUNDS)
        ]
    medians = [_Median(list(of_target)) for of_target in zip(*rounds, strict=True)]
    client = "wrk" if has_wrk() else "the built-in client"
    title = f"HTTP, one core, {_CONNECTIONS} connections of {client} ({os.cpu_count()} cores here)"
    caption = None if has_wrk() else HOW_TO_GET_WRK
    table = Table(
        "", "a second", "µs each", "p50", "p99", "to bare Quart", title=title, caption=caption
    )
    for target, median in zip(targets, medians, strict=True):
        wrong = sum(one.wrong for one in median.rounds)
        rate = median.of("rate")
        table.add_row(
            target.name + (f" [red]({wrong} wrong answers)[/red]" if wrong else ""),
            f"{rate:,.0f}",
            f"{10**6 / rate:,.0f}",
            f"{median.of('p50_ms'):.1f} ms",
            f"{median.of('p99_ms'):.1f} ms",
            f"{rate / medians[0].of('rate'):.2f}x",
        )
    return [table]
