"""Requests per second and latency on one core, compared with a bare ASGI app.

The table also has the ratios of an earlier day, so that a slower path shows.
"""

import asyncio
import contextlib
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs
from load import HOW_TO_GET_WRK, Load, Target, has_wrk, measure
from place import folder, sized
from processes import bare, cpu_s, gateway_process, get, stub_chain
from rich.table import Table
from samples import accept

from gateway.domain import StoredOutput, StoredResult
from gateway.store import SqliteStore

_CONNECTIONS = 16
_ROUNDS = sized(3, 1)  # in turns, so that a noisy neighbour affects all alike
_SECONDS = sized(2, 0.1)  # a round of one target
_BARE = "bare ASGI app, no Quart"
# CPU time of an answer, divided by that of the bare ASGI app; median of three runs on 2026-11-29.
# A commit that changes them on purpose writes new ones.
_RECORDED = {
    "bare Quart route": 1.91,
    "/api/health": 1.63,
    "poll of a completed task": 2.23,
    "402 challenge": 2.12,
}
# Runs of one day differ by a tenth.
_SLOWER = 1.2
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
def _targets() -> Iterator[list[tuple[Target, int]]]:
    """Run the servers within the block; yields the targets, each with its server's pid."""
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        task_id = asyncio.run(completed_task(data))
        rpc_url = stack.enter_context(stub_chain())
        quart, asgi = (stack.enter_context(bare(kind)) for kind in ("quart", "asgi"))
        port, pid = stack.enter_context(gateway_process(data, rpc_url))
        if get(port, f"/api/task/{task_id}")[0] != 200:
            raise RuntimeError("the completed task cannot be polled")
        body = '{"prompt":"A lighthouse at dusk"}'
        yield [
            (Target(name="bare Quart route", port=quart[0], path="/bare"), quart[1]),
            (Target(name=_BARE, port=asgi[0], path="/bare"), asgi[1]),
            (Target(name="/api/health", port=port, path="/api/health"), pid),
            (Target(name="poll of a completed task", port=port, path=f"/api/task/{task_id}"), pid),
            (
                Target(
                    name="402 challenge", port=port, path="/api/x402/instant", body=body, status=402
                ),
                pid,
            ),
        ]


@attrs.frozen
class _Round:
    """One round of a target."""

    load: Load
    cpu_us: float  # of the server, per answer


def _measure(target: Target, pid: int, seconds: float) -> _Round:
    before = cpu_s(pid)
    load = measure(target, connections=_CONNECTIONS, seconds=seconds)
    return _Round(load, (cpu_s(pid) - before) / max(load.answers, 1) * 10**6)


def run() -> list[Table]:
    """Measure, and return the tables."""
    found: dict[str, list[_Round]] = defaultdict(list)
    with _targets() as targets:
        for target, pid in targets:
            _measure(target, pid, _SECONDS / 2)
        for _ in range(_ROUNDS):
            for target, pid in targets:
                found[target.name].append(_measure(target, pid, _SECONDS))
    return [_table(found)]


def _table(found: Mapping[str, Sequence[_Round]]) -> Table:
    client = "wrk" if has_wrk() else "the built-in client"
    table = Table(
        *("", "a second", "p50", "p99", "CPU µs", "to bare ASGI", "recorded"),
        title=f"HTTP, one core, {_CONNECTIONS} connections of {client} ({os.cpu_count()} cores)",
        caption=None if has_wrk() else HOW_TO_GET_WRK,
    )
    cpu_us = {name: statistics.median(one.cpu_us for one in found[name]) for name in found}
    for name, rounds in found.items():
        wrong = sum(one.load.wrong for one in rounds)
        ratio, recorded = cpu_us[name] / cpu_us[_BARE], _RECORDED.get(name, 1.0)
        is_slower = ratio > recorded * _SLOWER
        table.add_row(
            name + (f" [red]({wrong} wrong answers)[/red]" if wrong else ""),
            f"{statistics.median(one.load.rate for one in rounds):,.0f}",
            f"{statistics.median(one.load.p50_ms for one in rounds):.1f} ms",
            f"{statistics.median(one.load.p99_ms for one in rounds):.1f} ms",
            f"{cpu_us[name]:,.0f}",
            f"[red]{ratio:.2f}x, slower[/red]" if is_slower else f"{ratio:.2f}x",
            f"{recorded:.2f}x",
        )
    return table
