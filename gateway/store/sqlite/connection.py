"""A connection that runs whole functions on its own thread, and how their callers are answered."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar, cast

import aiosqlite

Value = TypeVar("Value")


class ThreadConnection(aiosqlite.Connection):
    """An aiosqlite connection that runs a whole function on its thread.

    That is one hop between threads, where aiosqlite makes one for each statement and fetch.
    """

    async def run(self, function: Callable[[sqlite3.Connection], Value]) -> Value:
        """Call `function` with the SQLite connection, on the connection's own thread."""
        # aiosqlite declares no types for it.
        execute: Any = self._execute
        return cast(Value, await execute(function, self._conn))


def answer_caller(answer: asyncio.Future[Any], outcome: Any) -> None:
    """Hand an outcome, which may be an error, to its caller, unless the caller was cancelled."""
    if answer.cancelled():
        return
    if not isinstance(outcome, BaseException):
        answer.set_result(outcome)
        return
    if not isinstance(outcome, Exception) or isinstance(outcome, StopIteration):
        # A future refuses such an error.
        outcome = RuntimeError(f"the database's thread raised {outcome!r}")
    answer.set_exception(outcome)
    # A caller that is cancelled now will not fetch the error, and asyncio would log it as lost.
    answer.exception()
