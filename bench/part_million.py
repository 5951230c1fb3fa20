"""The same reads and leases with a thousand tasks and with a million."""

import asyncio
import sqlite3
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop
from place import folder, sized
from rich.table import Table
from samples import REQUEST

from gateway.store import SqliteStore
from gateway.store.rows import dump_request

_SIZES = (1_000, sized(1_000_000, 2_000))
WAITING = 500  # of them are queued; the others have ended
_REPEATS = sized(400, 5)
_FILL = (
    """INSERT INTO payments (id, flow, state, request_hash, price_units, payer, search_from_block,
           paid_tx, paid_log_index, paid_units, created_at, updated_at)
       SELECT n, 'direct', 'settled', printf('%064x', n), 20000, printf('0x%040x', n % 5000), 0,
           printf('0x%064x', n), 7, 20000, :now, :now FROM numbers""",
    "INSERT INTO claims SELECT printf('tx:0x%064x', n), n FROM numbers",
    """INSERT INTO tasks (id, payment_id, slug, capability, status, request, attempt, due_at,
           result, created_at, completed_at, expires_at)
       SELECT printf('%08x-0000-4000-8000-%012x', (n * 2654435761) % 4294967296, n), n, 'instant',
           'text-to-image', iif(n <= :waiting, 'queued', 'completed'), :request, 1, :now,
           iif(n <= :waiting, NULL, '{"outputs": [], "text": "done"}'), :now,
           iif(n <= :waiting, NULL, :now), iif(n <= :waiting, NULL, :now + 604800) FROM numbers""",
)
_NUMBERS = """CREATE TEMP TABLE numbers AS
    WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < {size})
    SELECT n FROM count"""


def fill(path: Path, size: int) -> None:
    """Write `size` tasks into a new database, as fast as SQLite can, with all triggers."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    db.execute("PRAGMA cache_size = -400000")
    db.execute(_NUMBERS.format(size=size))
    facts = {"now": time.time(), "waiting": WAITING, "request": dump_request(REQUEST)}
    db.execute("BEGIN")
    for statement in _FILL:
        names = {name: value for name, value in facts.items() if f":{name}" in statement}
        db.execute(statement, names)
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def task_id(n: int) -> str:
    """Return the id of a task of `fill`, counted from 1; those up to `WAITING` are queued."""
    return f"{n * 2654435761 % 4294967296:08x}-0000-4000-8000-{n:012x}"


async def _median_us(measured: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        await measured()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 10**6


async def measure(store: SqliteStore, size: int) -> dict[str, float]:
    """Return the median of each operation in microseconds; polls are spread over the table."""
    turn = iter(range(10**9))

    async def poll() -> None:
        n = WAITING + 1 + next(turn) * 7919 % (size - WAITING)
        if await store.task(task_id(n)) is None:
            raise RuntimeError("the task is not there")

    async def claim() -> None:
        if not await store.queue.lease(1, lease_s=3600, now=time.time()):
            raise RuntimeError("no task was due")

    return {
        "one poll (store.task)": await _median_us(poll),
        "queue depth (/api/health)": await _median_us(store.queue.depth),
        "next due task": await _median_us(lambda: store.queue.next_due(now=time.time())),
        "claim of one task, durable": await _median_us(claim),
    }


async def _both(data: Path) -> tuple[list[dict[str, float]], float]:
    """Return the medians at both sizes, and the seconds for filling the larger."""
    found, took_s = [], 0.0
    for size in _SIZES:
        path = data / str(size) / "gateway.db"
        async with SqliteStore(path):
            pass  # makes the schema
        began = time.perf_counter()
        await asyncio.to_thread(fill, path, size)
        took_s = time.perf_counter() - began
        async with SqliteStore(path) as store:
            found.append(await measure(store, size))
    return found, took_s


def run() -> list[Table]:
    """Measure, and return the tables."""
    with folder() as name:
        (small, large), took_s = uvloop.run(_both(Path(name)))
    small_size, large_size = (f"µs of {size:,}" for size in _SIZES)
    caption = f"{WAITING} tasks wait at either size; the million took {took_s:.0f} s to write"
    table = Table(
        "median", small_size, large_size, "ratio", title="Among many tasks", caption=caption
    )
    for what, us in small.items():
        table.add_row(what, f"{us:,.0f}", f"{large[what]:,.0f}", f"{large[what] / us:.2f}x")
    return [table]
