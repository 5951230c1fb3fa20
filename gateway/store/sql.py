"""What a transaction sees of a database: the same few names on SQLite and on PostgreSQL.

Every function of the store takes a `Connection` and speaks SQL that both understand, with `?` or
`:name` for its parameters. What they do not share is a `Dialect`; nothing else may differ.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import attrs


class Row(Protocol):
    """A row, whose values are found by number, by name or by slice."""

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
    """What a statement found or changed."""

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
    """A connection inside a transaction; `sqlite3.Connection` is one."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor:
        """Run a statement; parameters are a sequence for `?` and a mapping for `:name`."""
        ...


@attrs.frozen(kw_only=True)
class Dialect:
    """The words that only one of the databases knows."""

    name: str

    # Joins tables in their order, where SQLite's planner would choose a worse one.
    ordered_join: str
    # The planner of SQLite is told which index to take where it would choose a worse one.
    takes_index_hints: bool
    # Behind a SELECT whose rows are to be changed: rows that another transaction changes are left
    # out, so that two nodes never lease the same task. SQLite lets one writer in.
    skip_locked: str
    # Behind a SELECT of a row that must stay as it is until COMMIT.
    share_lock: str

    # Behind a text in ORDER BY: its bytes are compared, as SQLite does. A server's language may
    # pass over hyphens, or put capitals among small letters.
    by_bytes: str

    # Reads a value of a text that is a JSON object; an index on it is found.
    json_function: str
    # The database's own time, in Unix seconds.
    clock: str
    # Whether machines share the database: then its clock decides leases, and theirs do not.
    is_shared: bool
    # How many bytes the database takes.
    size_query: str

    def json_text(self, column: str, name: str) -> str:
        """Return the expression for a value, as a text, of a column that holds a JSON object."""
        path = f"$.{name}" if self.json_function == "json_extract" else name
        return f"{self.json_function}({column}, '{path}')"

    @property
    def clock_query(self) -> str:
        """The statement that reads the database's own time."""
        return f"SELECT {self.clock}"

    def not_in_future(self, moment: str) -> str:
        """Return the expression for a moment of some machine that is due now at the latest."""
        return f"least({moment}, {self.clock})" if self.is_shared else moment

    def indexed_by(self, index: str) -> str:
        """Return the hint to take an index, for a FROM clause; empty where there is none."""
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
    """Return the dialect of a connection; `sqlite3.Connection` has no place to say its own."""
    dialect: Dialect = getattr(db, "dialect", SQLITE)
    return dialect


def marks(values: Sequence[object]) -> str:
    """Return a list of `?` for `IN (…)`, one for each value.

    An empty list becomes NULL, which equals nothing. For `NOT IN` see `none_of`.
    """
    return ", ".join("?" * len(values)) or "NULL"


def none_of(column: str, values: Sequence[object]) -> str:
    """Return the condition that a column is none of these values; of no values it always holds."""
    return f"{column} NOT IN ({marks(values)})" if values else "1 = 1"
