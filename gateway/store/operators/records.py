"""An operator's part of the store: sums on a connection of their own, actions with the writer."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from gateway.contracts.operators import ActionRecord, EndpointChange, NewAction
from gateway.store.connection import ThreadConnection
from gateway.store.operators import actions, overrides
from gateway.store.rows import RunWrite

Value = TypeVar("Value")


class SumReader(Protocol):
    """A connection that runs a whole function on its own thread."""

    async def run(self, function: Callable[[sqlite3.Connection], Any]) -> Any:
        """Call `function` with the SQLite connection."""
        ...

    async def close(self) -> None:
        """Close the connection, and end its thread."""
        ...


async def open_sum_reader(path: Path) -> SumReader:
    """Open the database for reading only, on a thread of its own."""
    connection = ThreadConnection(lambda: _connect(path), 64)
    await connection
    return connection


def _connect(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    db = sqlite3.connect(address, uri=True, isolation_level=None)
    db.execute("PRAGMA busy_timeout = 5000")
    db.execute("PRAGMA query_only = ON")
    db.row_factory = sqlite3.Row
    return db


class SqliteOperators:
    """What an operator reads and does. Implements `contracts.operators.OperatorRecords`.

    The connection for sums is opened by the first sum: a gateway whose pages nobody opens has
    neither its thread nor its memory.
    """

    def __init__(
        self, read: RunWrite, write: RunWrite, open_reader: Callable[[], Awaitable[SumReader]]
    ) -> None:
        self._read = read
        self._write = write
        self._open_reader = open_reader
        self._opening: asyncio.Future[SumReader] | None = None

    async def close(self) -> None:
        """Close the connection for sums, if it was opened."""
        opening, self._opening = self._opening, None
        if opening is not None:
            (reader,) = await asyncio.gather(opening, return_exceptions=True)
            if not isinstance(reader, BaseException):
                await reader.close()

    async def sum(self, function: Callable[..., Value], *arguments: Any) -> Value:
        reader = await self._find_reader()
        value: Value = await reader.run(lambda db: _read_one_state(db, function, arguments))
        return value

    async def _find_reader(self) -> SumReader:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_reader())
        opening = self._opening
        try:
            return await asyncio.shield(opening)
        except sqlite3.Error:
            # The next sum opens it anew.
            if self._opening is opening:
                self._opening = None
            raise

    async def read(self, function: Callable[..., Value], *arguments: Any) -> Value:
        value: Value = await self._read(function, *arguments)
        return value

    async def write(self, write: Callable[..., Value], *arguments: Any) -> Value:
        value: Value = await self._write(write, *arguments)
        return value

    async def act(self, write: Callable[..., Value], *arguments: Any, action: NewAction) -> Value:
        value: Value = await self._write(actions.act, write, arguments, action)
        return value

    async def changes_after(
        self, known: int, *, now: float
    ) -> tuple[int, dict[str, EndpointChange]] | None:
        return await self.read(_find_changes, known, now)

    async def note(self, action: NewAction) -> None:
        await self._write(actions.insert, action)

    async def actions(
        self,
        before: int | None,
        limit: int,
        subject: str | None = None,
        action: str | None = None,
    ) -> list[ActionRecord]:
        return await self.sum(actions.find, before, limit, subject, action)


def _find_changes(
    db: sqlite3.Connection, known: int, now: float
) -> tuple[int, dict[str, EndpointChange]] | None:
    newest = overrides.newest_id(db)
    return None if newest == known else (newest, overrides.changes(db, now))


def _read_one_state(
    db: sqlite3.Connection, function: Callable[..., Value], arguments: tuple[Any, ...]
) -> Value:
    """Run all statements of a function on one state of the database."""
    if db.in_transaction:
        return function(db, *arguments)
    db.execute("BEGIN")
    try:
        return function(db, *arguments)
    finally:
        db.execute("ROLLBACK")
