"""Connections: `ThreadConnection` runs whole functions on its own thread.

Of the small reads, `Reads` batches thread hops and `RowReads` avoids them. Reading one row by key
takes 15 µs; the hop to the thread and back takes ten times that. So `RowReads` reads on the event
loop while the disk is fast. After a slow read it uses the thread for fifty times as long, so a slow
disk blocks the loop for at most 2 % of the time.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import aiosqlite

from gateway.concurrency.awaiting import answer_caller

Value = TypeVar("Value")
# aiosqlite's fetch size; unused, because no function fetches through it.
_CHUNK = 64


class FetchedRows:
    """The result of a statement, without its cursor. Implements `gateway.store.sql.Cursor`."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = iter(rows)
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        """Return the rows that are left, one by one."""
        return self._rows


class FetchingConnection(sqlite3.Connection):
    """A connection whose statements end at once.

    A SELECT with unread rows survives COMMIT and keeps its snapshot, until its cursor is deleted.
    Once another connection commits, such a snapshot can never write again.
    """

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Run a statement, and fetch all its rows."""
        cursor = super().execute(sql, parameters)
        rows = cursor.fetchall()
        return FetchedRows(rows, cursor.rowcount)


class ThreadConnection:
    """An aiosqlite connection that runs a whole function on its thread.

    That is one thread hop. aiosqlite makes one for each statement and fetch: a transaction of four
    statements takes 2.7 times the CPU that way.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._db: sqlite3.Connection | None = None
        self._aiosqlite = aiosqlite.Connection(self._connect_on_thread, _CHUNK)

    def _connect_on_thread(self) -> sqlite3.Connection:
        self._db = self._connect()
        return self._db

    async def open(self) -> None:
        """Start the thread and connect; raises connection errors."""
        await self._aiosqlite

    async def run(self, function: Callable[[sqlite3.Connection], Value]) -> Value:
        """Call `function` with the SQLite connection, on the connection's thread.

        Raises its errors, and `ValueError` unless the connection is open.
        """
        # aiosqlite declares no types for it.
        execute: Any = self._aiosqlite._execute  # noqa: SLF001 - docs/private-names.md
        return cast(Value, await execute(function, self._db))

    async def close(self) -> None:
        """Finish queued work, close the connection and end its thread."""
        await self._aiosqlite.close()


Read = Callable[[sqlite3.Connection], Value]

# Reads per thread hop. Resolving two thousand callers at once would block the loop.
_MAX_BATCH = 64
# A read on the event loop that takes longer than this delays every other request.
_SLOW_S = 0.02
_TIMES_IN_THREAD = 50
_MAX_IN_THREAD_S = 60.0
# SQLite's default is 2 MB. A row needs a few pages, and the OS caches the rest.
_CACHE_KB = 256


class Reads:
    """Runs short reads (microseconds) in batches. Longer reads go directly to the connection."""

    def __init__(self, connection: ThreadConnection) -> None:
        self._connection = connection
        # Reads that wait while another one runs.
        self._asked: list[tuple[Read[Any], asyncio.Future[Any]]] = []
        self._is_reading = False
        self._rest: asyncio.Task[None] | None = None

    async def run(self, read: Read[Value]) -> Value:
        """Return the result of a read. It sees every write acknowledged before this call."""
        answer: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        if self._is_reading:
            self._asked.append((read, answer))
            return await answer
        self._is_reading = True
        try:
            (outcome,) = await self._connection.run(partial(_read_batch, [read]))
            answer_caller(answer, outcome)
            return await answer
        finally:
            self._is_reading = bool(self._asked)
            if self._asked:
                self._rest = asyncio.create_task(self._read_rest(), name="store-reads")

    async def _read_rest(self) -> None:
        try:
            while self._asked:
                batch, self._asked = self._asked[:_MAX_BATCH], self._asked[_MAX_BATCH:]
                try:
                    reads = [read for read, _ in batch]
                    outcomes = await self._connection.run(partial(_read_batch, reads))
                except Exception as error:  # noqa: BLE001 - every caller gets the reason
                    outcomes = [error] * len(batch)
                for (_, answer), outcome in zip(batch, outcomes, strict=True):
                    answer_caller(answer, outcome)
        finally:
            self._is_reading = False


def _read_batch(reads: Sequence[Read[Any]], db: sqlite3.Connection) -> list[Any]:
    return [_read(read, db) for read in reads]


def _read(read: Read[Any], db: sqlite3.Connection) -> Any:
    try:
        return read(db)
    except BaseException as error:  # noqa: BLE001 - an error is the outcome of one read only
        return error


class RowReads:
    """Runs reads on a connection of the event loop's thread, or passes them to `reads`."""

    def __init__(
        self, path: Path, reads: Reads, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._in_thread_until = float("-inf")
        self._db = _connect(path)

    async def run(self, read: Read[Value]) -> Value:
        """Return the result of a read. It sees every write acknowledged before this call."""
        began_at = self._clock()
        if began_at < self._in_thread_until:
            return await self._reads.run(read)
        try:
            return read(self._db)
        except sqlite3.OperationalError:
            # Another process may hold a lock for a moment. The thread can wait for it, and raises
            # an error that lasts.
            return await self._reads.run(read)
        finally:
            ended = self._clock()
            took_s = ended - began_at
            if took_s > _SLOW_S:
                wait_s = min(took_s * _TIMES_IN_THREAD, _MAX_IN_THREAD_S)
                self._in_thread_until = ended + wait_s

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, factory=FetchingConnection)
    # Never wait for a lock on the event loop.
    db.execute("PRAGMA busy_timeout = 0")
    db.execute("PRAGMA query_only = ON")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    db.row_factory = sqlite3.Row
    return db
