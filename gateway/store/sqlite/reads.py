"""Small reads: those that are asked for at once share a hop to the database's thread."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from gateway.store.sqlite.connection import ThreadConnection, answer_caller

Value = TypeVar("Value")
Read = Callable[[sqlite3.Connection], Value]

# So many reads share a hop. Two thousand at once would hold the loop with their answers.
_MAX_BATCH = 64


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
