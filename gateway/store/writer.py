"""The one writer: runs function-shaped transactions in order and commits many at once.

A transaction is a plain function of the connection. Each runs in a savepoint of its own, so
one that raises leaves nothing behind and harms no neighbour. Its caller is answered after
COMMIT, so what a caller has seen is durable. A caller that is cancelled leaves its
transaction to run to its end.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import aiosqlite

from gateway.errors import ExecutionError

Value = TypeVar("Value")
Transaction = Callable[[sqlite3.Connection], Value]

MAX_BATCH = 64  # transactions a commit; more only adds latency (docs/architecture.md)


class WriteConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole function on its thread: one hop, not one a row."""

    async def run(self, function: Callable[[sqlite3.Connection], Value]) -> Value:
        """Call `function` with the SQLite connection, on the connection's own thread."""
        execute: Any = self._execute  # untyped in aiosqlite
        return cast(Value, await execute(function, self._conn))


class Writer:
    """Owns the write connection; nothing else writes."""

    def __init__(self, connection: WriteConnection) -> None:
        self._connection = connection
        self._queue: asyncio.Queue[tuple[Transaction[Any], asyncio.Future[Any]]] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to serve; transactions queued before that have waited."""
        self._task = asyncio.create_task(self._serve(), name="store-writer")

    async def close(self) -> None:
        """Finish what is queued, then stop and close the connection."""
        if self._task is not None:
            finished = asyncio.create_task(self._queue.join(), name="store-finished")
            await asyncio.wait({finished, self._task}, return_when=asyncio.FIRST_COMPLETED)
            for task in (finished, self._task):
                task.cancel()
            await asyncio.gather(finished, self._task, return_exceptions=True)
        await self._connection.close()

    async def run(self, transaction: Transaction[Value]) -> Value:
        """Run a transaction; it is durable when this returns.

        Raises whatever the transaction raises, and `ExecutionError` where the disk is full.
        """
        if self._task is None or self._task.done():
            raise RuntimeError("the store is not open")
        answer: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((transaction, answer))
        return await asyncio.shield(answer)

    async def between(self, function: Callable[[sqlite3.Connection], Value]) -> Value:
        """Run a function between two batches, outside of any transaction."""
        return await self._connection.run(function)

    async def _serve(self) -> None:
        while True:
            batch = [await self._queue.get()]
            while len(batch) < MAX_BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            try:
                transactions = [transaction for transaction, _ in batch]
                outcomes = await self._connection.run(partial(_commit_batch, transactions))
            except Exception as error:  # noqa: BLE001 - a lane's edge: COMMIT failed, each caller hears why
                outcomes = [error] * len(batch)
            for (_, answer), outcome in zip(batch, outcomes, strict=True):
                _answer(answer, outcome)
                self._queue.task_done()


def _answer(answer: asyncio.Future[Any], outcome: Any) -> None:
    """Hand an outcome to its caller, if it still waits."""
    if answer.cancelled():
        return
    if not isinstance(outcome, BaseException):
        answer.set_result(outcome)
        return
    if not isinstance(outcome, Exception) or isinstance(outcome, StopIteration):
        outcome = RuntimeError(f"a transaction raised {outcome!r}")  # no future takes these
    if isinstance(outcome, sqlite3.OperationalError) and _is_full(outcome):
        outcome = ExecutionError("The gateway cannot store anything now; nothing was charged.")
    answer.set_exception(outcome)
    answer.exception()  # a caller that was cancelled will not fetch it


def _is_full(error: sqlite3.OperationalError) -> bool:
    return getattr(error, "sqlite_errorcode", None) in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR_WRITE,
    )


def _commit_batch(transactions: list[Transaction[Any]], db: sqlite3.Connection) -> list[Any]:
    """Run each in its savepoint and commit them together; an outcome may be an error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        outcomes = [_run_one(db, transaction) for transaction in transactions]
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return outcomes


def _run_one(db: sqlite3.Connection, transaction: Transaction[Any]) -> Any:
    db.execute("SAVEPOINT one")
    try:
        outcome = transaction(db)
    except BaseException as error:
        if not db.in_transaction:
            raise  # SQLite rolled all of it back (disk full): nobody may be told it is durable
        db.execute("ROLLBACK TO one")
        outcome = error
    db.execute("RELEASE one")
    return outcome
