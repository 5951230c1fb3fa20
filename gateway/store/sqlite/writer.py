"""The single writer: runs writes in order and commits many of them together.

A write is a plain function of the connection. It may run twice, so it must change nothing but the
database. A write that raises is rolled back without affecting the others. Callers get their results
after COMMIT, so a result they have seen is durable. The write of a cancelled caller still
completes.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import structlog

from gateway.concurrency.awaiting import answer_caller
from gateway.errors import DiskFull
from gateway.store.disk import means_full
from gateway.store.meta import write_something
from gateway.store.sqlite.connection import ThreadConnection
from gateway.telemetry import signals

Value = TypeVar("Value")
Write = Callable[[sqlite3.Connection], Value]

_log = structlog.get_logger()

# Writes per commit; more only adds latency (docs/architecture.md).
MAX_BATCH = 64


class Writer:
    """Owns the write connection; all writes go through it."""

    def __init__(self, connection: ThreadConnection, turn: asyncio.Lock | None = None) -> None:
        """`turn` is held for each batch; plugins' writes take turns with it."""
        self._connection = connection
        self._turn = turn or asyncio.Lock()
        self._queue: asyncio.Queue[tuple[Write[Any], asyncio.Future[Any]]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        # Set when a write fails on a full disk, until `try_room` succeeds.
        self.is_full = False

    def start(self) -> None:
        """Start processing writes, including those already queued."""
        self._task = asyncio.create_task(self._serve(), name="store-writer")

    async def close(self) -> None:
        """Finish the queued writes, then stop and close the connection."""
        if self._task is not None:
            finished = asyncio.create_task(self._queue.join(), name="store-finished")
            await asyncio.wait({finished, self._task}, return_when=asyncio.FIRST_COMPLETED)
            for task in (finished, self._task):
                task.cancel()
            await asyncio.gather(finished, self._task, return_exceptions=True)
        await self._connection.close()

    async def run(self, write: Write[Value]) -> Value:
        """Run a write; it is durable when this returns.

        Raises the write's own errors, and `DiskFull`.
        """
        if self._task is None or self._task.done():
            raise RuntimeError("the store is not open")
        answer: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((write, answer))
        return await answer

    async def run_between_batches(self, function: Callable[[sqlite3.Connection], Value]) -> Value:
        """Run a function between two batches, outside any transaction."""
        async with self._turn:
            return await self._connection.run(function)

    async def _serve(self) -> None:
        while True:
            batch = [await self._queue.get()]
            began_s = time.perf_counter()
            async with self._turn:
                while len(batch) < MAX_BATCH and not self._queue.empty():
                    batch.append(self._queue.get_nowait())
                outcomes = await self._commit([write for write, _ in batch])
            signals.batch_committed.send(seconds=time.perf_counter() - began_s)
            self._note_room(outcomes)
            for (_, answer), outcome in zip(batch, outcomes, strict=True):
                answer_caller(answer, _explain(outcome))
                self._queue.task_done()

    async def _commit(self, writes: list[Write[Any]]) -> list[Any]:
        try:
            return await self._connection.run(partial(_commit_batch, writes))
        except Exception as error:  # noqa: BLE001 - COMMIT failed: every caller gets the reason
            return [error] * len(writes)

    def _note_room(self, outcomes: list[Any]) -> None:
        full = [each for each in outcomes if means_full(each)]
        if full and not self.is_full:
            _log.error("disk.full", error=str(full[0]))
        self.is_full = self.is_full or bool(full)

    async def try_room(self) -> None:
        """If the disk was full, test a write. Raises `DiskFull` while it still is."""
        if not self.is_full:
            return
        await self.run(write_something)
        self.is_full = False
        _log.info("disk.writable")


def _explain(outcome: Any) -> Any:
    """Replace a disk-full error by the buyer's error."""
    return DiskFull() if means_full(outcome) else outcome


def _commit_batch(writes: list[Write[Any]], db: sqlite3.Connection) -> list[Any]:
    """Run all writes and commit them together; an outcome may be an error.

    Savepoints copy every changed page, a quarter of the cost of a sale. So the writes run without
    them first. If one fails halfway, all are rolled back and run again, each in its own savepoint.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        outcomes = _run_plainly(db, writes)
        if outcomes is None:
            db.execute("ROLLBACK")
            db.execute("BEGIN IMMEDIATE")
            outcomes = [_run_in_savepoint(db, write) for write in writes]
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return outcomes


def _run_plainly(db: sqlite3.Connection, writes: list[Write[Any]]) -> list[Any] | None:
    """Run writes in order; None if one failed after changing something."""
    outcomes: list[Any] = []
    for write in writes:
        changes = db.total_changes
        try:
            outcomes.append(write(db))
        except BaseException as error:
            if not db.in_transaction:
                # On a full disk SQLite has rolled the whole batch back, so every write has failed.
                raise
            if db.total_changes != changes:
                return None
            outcomes.append(error)
    return outcomes


def _run_in_savepoint(db: sqlite3.Connection, write: Write[Any]) -> Any:
    db.execute("SAVEPOINT one")
    try:
        outcome = write(db)
    except BaseException as error:
        if not db.in_transaction:
            # On a full disk SQLite has rolled the whole batch back, so every write has failed.
            raise
        db.execute("ROLLBACK TO one")
        outcome = error
    db.execute("RELEASE one")
    return outcome
