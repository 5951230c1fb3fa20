"""The database interface of transactions, common to SQLite and PostgreSQL.

Functions of the store take a `Connection` and use SQL that both databases accept, with `?` or
`:name` for parameters. All differences are in `Dialect`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import attrs


class Row(Protocol):
    """A row, indexed by number, name or slice."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return a value, or the tuple of a slice."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Return the values in their order."""
        ...

    def __len__(self) -> int:
        """Return the number of columns."""
        ...

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        ...


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """How many rows an INSERT, UPDATE or DELETE changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Return the rows that are left, one by one."""
        ...


class Connection(Protocol):
    """A connection inside a transaction, such as `sqlite3.Connection`."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor:
        """Run a statement; parameters are a sequence for `?` and a mapping for `:name`."""
        ...


@attrs.frozen(kw_only=True)
class Dialect:
    """SQL that differs between the databases."""

    name: str

    # Joins tables in the written order, for queries that SQLite's planner gets wrong.
    ordered_join: str
    # Whether FROM takes an index hint, for queries that SQLite's planner gets wrong.
    takes_index_hints: bool
    # Follows a SELECT of rows to change. Skips rows that another transaction has locked, so that
    # two nodes never lease the same task. SQLite allows one writer only.
    skip_locked: str
    # Follows a SELECT of a row that must not change until COMMIT.
    share_lock: str

    # Follows a text in ORDER BY: compares bytes, as SQLite does. A server's collation may ignore
    # hyphens or mix upper and lower case.
    by_bytes: str

    # Reads a text value from a JSON object; an expression index can use it.
    json_function: str
    # The database's time, in Unix seconds.
    clock: str
    # Whether nodes share the database. If so, its clock decides leases.
    is_shared: bool
    # Reads the database's size in bytes.
    size_query: str

    def json_text(self, column: str, name: str) -> str:
        """Return the expression for one value, as text, in a column with a JSON object."""
        path = f"$.{name}" if self.json_function == "json_extract" else name
        return f"{self.json_function}({column}, '{path}')"

    @property
    def clock_query(self) -> str:
        """The statement that reads the database's time."""
        return f"SELECT {self.clock}"

    def not_in_future(self, moment: str) -> str:
        """Return the expression for a node's timestamp, capped at the database's time."""
        return f"least({moment}, {self.clock})" if self.is_shared else moment

    def indexed_by(self, index: str) -> str:
        """Return the index hint for a FROM clause, or an empty string."""
        return f"INDEXED BY {index}" if self.takes_index_hints else ""


SQLITE = Dialect(
    name="sqlite",
    ordered_join="CROSS JOIN",
    takes_index_hints=True,
    skip_locked="",
    share_lock="",
    by_bytes="COLLATE BINARY",
    json_function="json_extract",
    clock="(julianday('now') - 2440587.5) * 86400.0",
    is_shared=False,
    size_query="SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
)


def dialect_of(db: Connection) -> Dialect:
    """Return a connection's dialect. `sqlite3.Connection` has no such attribute."""
    dialect: Dialect = getattr(db, "dialect", SQLITE)
    return dialect


def marks(values: Sequence[object]) -> str:
    """Return one `?` per value, for `IN (…)`.

    An empty list becomes NULL, which equals nothing. For `NOT IN`, see `none_of`.
    """
    return ", ".join("?" * len(values)) or "NULL"


def none_of(column: str, values: Sequence[object]) -> str:
    """Return the condition that a column has none of these values; true for no values."""
    return f"{column} NOT IN ({marks(values)})" if values else "1 = 1"
