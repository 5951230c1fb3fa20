"""An operator's part of the store: sums on a connection of their own, actions with the writer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from gateway.concurrency.outliving import outlive
from gateway.contracts.operators import ActionRecord, EndpointChange, NewAction
from gateway.store.operators import actions, overrides
from gateway.store.rows import RunWrite
from gateway.store.sql import Connection

Value = TypeVar("Value")


class SumReader(Protocol):
    """A connection for functions that only read, and that may take seconds."""

    async def run(self, function: Callable[[Connection], Any]) -> Any:
        """Call `function` with the connection; all its statements see one state."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class SqlOperators:
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
        value: Value = await reader.run(lambda db: function(db, *arguments))
        return value

    async def _find_reader(self) -> SumReader:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_reader())
        opening = self._opening
        try:
            return await outlive(opening)
        except Exception:
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
    db: Connection, known: int, now: float
) -> tuple[int, dict[str, EndpointChange]] | None:
    newest = overrides.count(db)
    return None if newest == known else (newest, overrides.changes(db, now))
