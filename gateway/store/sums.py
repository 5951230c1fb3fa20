"""A connection for reads that take seconds, such as sums over all sales."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from gateway.concurrency.awaiting import outlive
from gateway.store.sql import Connection

Value = TypeVar("Value")


class SumReader(Protocol):
    """A connection for functions that only read, and may take seconds."""

    async def run(self, function: Callable[[Connection], Any]) -> Any:
        """Call `function` with the connection, on one snapshot."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class Sums:
    """Opens the connection at the first sum, so it costs nothing before."""

    def __init__(self, open_reader: Callable[[], Awaitable[SumReader]]) -> None:
        self._open_reader = open_reader
        self._opening: asyncio.Future[SumReader] | None = None

    async def run(self, function: Callable[[Connection], Value]) -> Value:
        """Return `function(db)` on one snapshot of the database."""
        reader = await self._find_reader()
        value: Value = await reader.run(function)
        return value

    async def _find_reader(self) -> SumReader:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open_reader())
        opening = self._opening
        try:
            return await outlive(opening)
        except Exception:
            # The next sum tries again.
            if self._opening is opening:
                self._opening = None
            raise

    async def close(self) -> None:
        """Close the connection, if it was opened."""
        opening, self._opening = self._opening, None
        if opening is not None:
            (reader,) = await asyncio.gather(opening, return_exceptions=True)
            if not isinstance(reader, BaseException):
                await reader.close()
