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
    """What an operator reads and does. Implements `contracts.operators.SqlOperators`.

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
        """Return `function(db, *arguments)` of one state of the database.

        `db` is a read-only connection on a thread of its own, so that a long sum holds up neither
        sales nor polls. Its rows are known by position and by name.
        """
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
        """Return `function(db, *arguments)` of a function that takes microseconds.

        It runs beside the sums, so it never waits for one.
        """
        value: Value = await self._read(function, *arguments)
        return value

    async def write(self, write: Callable[..., Value], *arguments: Any) -> Value:
        """Run `write(db, *arguments)`, which is no action of an operator, such as a backup's row.

        Returns what `write` returns, and raises what it raises.
        """
        value: Value = await self._write(write, *arguments)
        return value

    async def act(self, write: Callable[..., Value], *arguments: Any, action: NewAction) -> Value:
        """Write down an action and run `write(db, *arguments)`, both or neither.

        Returns what `write` returns, and raises what it raises. Raises `AlreadyDone` where the
        actor's request was carried out before, and `ActionRefused` where another action had it.
        """
        value: Value = await self._write(actions.act, write, arguments, action)
        return value

    async def changes_after(
        self, known: int, *, now: float
    ) -> tuple[int, dict[str, EndpointChange]] | None:
        """Return (number, changes by slug), or None where `known` is the newest number.

        The number grows with each change. Cheap: a running gateway asks every two seconds.
        """
        return await self.read(_find_changes, known, now)

    async def note(self, action: NewAction) -> None:
        """Write down an action that changes nothing in the database, such as a login.

        Raises what `act` raises.
        """
        await self._write(actions.insert, action)

    async def actions(
        self,
        before: int | None,
        limit: int,
        subject: str | None = None,
        action: str | None = None,
    ) -> list[ActionRecord]:
        """Return actions, newest first: those with an id below `before`, at most `limit`."""
        return await self.sum(actions.find, before, limit, subject, action)


def _find_changes(
    db: Connection, known: int, now: float
) -> tuple[int, dict[str, EndpointChange]] | None:
    newest = overrides.count(db)
    return None if newest == known else (newest, overrides.changes(db, now))
