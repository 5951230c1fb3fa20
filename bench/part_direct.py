"""Direct payments accepted per second, and the store's group commit compared with plain inserts."""

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import aiosqlite
import uvloop
from load import Load, Target, numbers, repeat_here, request_bytes
from place import folder, fsync_us, sized
from processes import gateway, stub_chain
from rich.table import Table
from samples import new_task, new_transfer

from gateway.contracts import NewTask
from gateway.domain import Transfer
from gateway.store import SqliteStore
from gateway.store.rows import dump_request

_CLIENTS = 64
_SECONDS = sized(8.0, 0.1)
_INSERTS = sized(2_000, 64)


def next_payment() -> Callable[[], bytes]:
    """Return a function for the next request, each with a new transaction."""
    hashes = numbers()

    def next_request() -> bytes:
        tx_hash = f"0x{next(hashes) % 2**256:064x}"
        body = {"slug": "instant", "prompt": "A lighthouse at dusk", "txHash": tx_hash}
        return request_bytes("/api/proxy-generate", json.dumps(body))

    return next_request


def _payments() -> Load:
    """Pay over HTTP, each time with a new transaction."""
    requests = [next_payment()] * _CLIENTS
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        port = stack.enter_context(gateway(data, stack.enter_context(stub_chain())))
        target = Target(name="direct", port=port, path="/api/proxy-generate")
        repeat_here(target, requests, _SECONDS / 8)
        return repeat_here(target, requests, _SECONDS)


async def _rate(insert: Callable[[], Awaitable[object]], clients: int, inserts: int) -> float:
    """Return the total inserts per second of `clients`."""

    async def client() -> None:
        for _ in range(inserts // clients):
            await insert()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return inserts / (time.perf_counter() - began)


def _made(number: int) -> Iterator[tuple[NewTask, Transfer]]:
    """Return prepared tasks and transfers, so that their creation is not measured."""
    return iter([(new_task(time.time()), new_transfer()) for _ in range(number)])


async def _store_rate(data: Path) -> float:
    async with SqliteStore(data / "gateway.db") as store:
        inserts = _INSERTS * 4
        made = _made(inserts)

        def insert() -> Awaitable[object]:
            task, transfer = next(made)
            return store.accept_direct(task, transfer.tx_hash, [transfer], None)

        return await _rate(insert, _CLIENTS, inserts)


async def _plain_rate(data: Path, journal: str, inserts: int) -> float:
    """Return the rate of the same rows in one transaction each, on the store's schema."""
    async with aiosqlite.connect(data / "gateway.db", isolation_level=None) as db:
        await db.execute(f"PRAGMA journal_mode = {journal}")
        await db.execute("PRAGMA synchronous = FULL")
        await db.execute("PRAGMA foreign_keys = ON")
        made = _made(inserts)
        return await _rate(lambda: _insert_plainly(db, *next(made)), 1, inserts)


async def _insert_plainly(db: aiosqlite.Connection, task: NewTask, transfer: Transfer) -> None:
    """Make the inserts of T1', statement by statement."""
    now = task.created_at
    await db.execute("BEGIN IMMEDIATE")
    cursor = await db.execute(
        """INSERT INTO payments (flow, state, request_hash, price_units, payer, search_from_block,
               paid_tx, paid_log_index, paid_units, created_at, updated_at)
           VALUES ('direct', 'settled', ?, 20000, ?, 0, ?, 7, 20000, ?, ?)""",
        (task.request_hash, transfer.sender, transfer.tx_hash, now, now),
    )
    payment_id = cursor.lastrowid
    await db.execute("INSERT INTO claims VALUES (?, ?)", (f"tx:{transfer.tx_hash}", payment_id))
    await db.execute(
        """INSERT INTO tasks (id, payment_id, slug, capability, status, request, due_at, created_at)
           VALUES (?, ?, ?, ?, 'queued', ?, ?, ?)""",
        (
            task.id,
            payment_id,
            task.endpoint.slug,
            task.endpoint.capability,
            dump_request(task.request),
            now,
            now,
        ),
    )
    await db.execute("COMMIT")


async def _inserts() -> tuple[float, float, float]:
    """Return the median rates of store, plain WAL and plain default, in three rounds."""
    rounds = []
    for _ in range(3):
        with folder() as name:
            store = await _store_rate(Path(name))
            wal = await _plain_rate(Path(name), "WAL", _INSERTS)
            default = await _plain_rate(Path(name), "DELETE", _INSERTS // 4)
            rounds.append((store, wal, default))
    store, wal, default = (sorted(rates)[1] for rates in zip(*rounds, strict=True))
    return store, wal, default


def run() -> list[Table]:
    """Measure, and return the tables."""
    paid = _payments()
    store, wal, default = uvloop.run(_inserts())
    wrong = f" [red]{paid.wrong} refused[/red]" if paid.wrong else ""
    http = Table("", "a second", "p50", "p99", title=f"Direct payments, {_CLIENTS} clients")
    http.add_row(
        "accepted over HTTP, three RPC calls each" + wrong,
        f"[bold]{paid.rate:,.0f}[/bold]",
        f"{paid.p50_ms:.0f} ms",
        f"{paid.p99_ms:.0f} ms",
    )
    caption = f"write + fsync here: {fsync_us():,.0f} µs; the slower, the more a group saves"
    title = f"The store alone: T1' by {_CLIENTS} callers (target ≥ 5x)"
    table = Table("", "a second", "store to it", title=title, caption=caption)
    table.add_row("store, group commit", f"[bold]{store:,.0f}[/bold]", "")
    for name, rate in (("WAL, as the store", wal), ("SQLite's default journal", default)):
        what = f"plain aiosqlite, a transaction each, {name}"
        table.add_row(what, f"{rate:,.0f}", f"[bold]{store / rate:.1f}x[/bold]")
    return [http, table]
