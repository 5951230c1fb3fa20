"""A database connection that runs whole functions on its own thread."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar, cast

import aiosqlite

Value = TypeVar("Value")
# aiosqlite's fetch size; unused, because no function fetches through it.
_CHUNK = 64


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


def answer_caller(answer: asyncio.Future[Any], outcome: Any) -> None:
    """Resolve a future with a result or an error, unless its caller was cancelled."""
    if answer.cancelled():
        return
    if not isinstance(outcome, BaseException):
        answer.set_result(outcome)
        return
    if not isinstance(outcome, Exception) or isinstance(outcome, StopIteration):
        # A future rejects such an error.
        outcome = RuntimeError(f"the database's thread raised {outcome!r}")
    answer.set_exception(outcome)
    # Mark the error as retrieved. If the caller is cancelled now, asyncio would log it as lost.
    answer.exception()
