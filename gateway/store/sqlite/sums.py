"""A read-only connection for the operator's sums, which may take seconds."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from gateway.store.sqlite.connection import ThreadConnection

Value = TypeVar("Value")


class SqliteSums:
    """Runs functions that only read, each on one snapshot of the database."""

    def __init__(self, connection: ThreadConnection) -> None:
        self._connection = connection

    async def run(self, function: Callable[[sqlite3.Connection], Value]) -> Value:
        """Call `function` with the connection, on the connection's thread."""
        return await self._connection.run(lambda db: _read_one_state(db, function))

    async def close(self) -> None:
        """Close the connection and end its thread."""
        await self._connection.close()


async def open_sum_reader(path: Path) -> SqliteSums:
    """Open the database read-only, on its own thread."""
    connection = ThreadConnection(lambda: _connect(path))
    await connection.open()
    return SqliteSums(connection)


def _connect(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    db = sqlite3.connect(address, uri=True, isolation_level=None)
    db.execute("PRAGMA busy_timeout = 5000")
    db.execute("PRAGMA query_only = ON")
    db.row_factory = sqlite3.Row
    return db


def _read_one_state(
    db: sqlite3.Connection, function: Callable[[sqlite3.Connection], Value]
) -> Value:
    if db.in_transaction:
        return function(db)
    db.execute("BEGIN")
    try:
        return function(db)
    finally:
        db.execute("ROLLBACK")
