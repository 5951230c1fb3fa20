"""Small reads: `Reads` shares hops to the database's thread, `RowReads` needs none.

A read of one row by its key takes 15 µs; the way to the thread and back takes ten times as long.
So `RowReads` reads on the event loop itself while the disk answers at once. After a slow read the
thread reads for fifty times as long, so a bad disk takes 2 % of the loop's time.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gateway.store.sqlite.connection import ThreadConnection, answer_caller

Value = TypeVar("Value")
Read = Callable[[sqlite3.Connection], Value]

# So many reads share a hop. Two thousand at once would hold the loop with their answers.
_MAX_BATCH = 64
# A read that takes longer than this holds up every other request.
_SLOW_S = 0.02
_TIMES_IN_THREAD = 50
_MOST_IN_THREAD_S = 60.0
# SQLite's default is 2 MB. A row needs a few pages, and the system keeps the rest.
_CACHE_KB = 256


class Reads:
    """Runs reads that take microseconds each. Longer reads go to the connection by themselves."""

    def __init__(self, connection: ThreadConnection) -> None:
        self._connection = connection
        # What was asked for while another read runs.
        self._asked: list[tuple[Read[Any], asyncio.Future[Any]]] = []
        self._is_reading = False
        self._rest: asyncio.Task[None] | None = None

    async def run(self, read: Read[Value]) -> Value:
        """Return what a read returns; it sees every write that was answered before this call."""
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
        """Run what was asked for meanwhile, and what is asked for until that is done."""
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
    """Run each read; an outcome may be an error."""
    return [_read(read, db) for read in reads]


def _read(read: Read[Any], db: sqlite3.Connection) -> Any:
    try:
        return read(db)
    except BaseException as error:  # noqa: BLE001 - an error is the outcome of one read only
        return error


class RowReads:
    """Runs reads on a connection of the loop's thread, or hands them to `reads`."""

    def __init__(
        self, path: Path, reads: Reads, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._reads = reads
        self._clock = clock
        self._in_thread_until = float("-inf")
        self._db = _connect(path)

    async def run(self, read: Read[Value]) -> Value:
        """Return what a read returns; it sees every write that was answered before this call."""
        begun = self._clock()
        if begun < self._in_thread_until:
            return await self._reads.run(read)
        try:
            return read(self._db)
        except sqlite3.OperationalError:
            # Another process holds the file for a moment. The thread can wait for it, and raises
            # what does not pass.
            return await self._reads.run(read)
        finally:
            ended = self._clock()
            took_s = ended - begun
            if took_s > _SLOW_S:
                wait_s = min(took_s * _TIMES_IN_THREAD, _MOST_IN_THREAD_S)
                self._in_thread_until = ended + wait_s

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    # The loop never waits for a lock.
    db.execute("PRAGMA busy_timeout = 0")
    db.execute("PRAGMA query_only = ON")
    db.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
    db.row_factory = sqlite3.Row
    return db
