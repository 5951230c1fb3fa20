"""The database interface of transactions, common to SQLite and PostgreSQL.

Functions of the store take a `Connection` and use SQL that both databases accept, with `?` or
`:name` for parameters. All differences are in `Dialect`. `as_write`, `as_short_read` and
`as_long_read` make methods of the store from such functions.

A write on PostgreSQL waits for the server only when it reads a result. So a write executes all
statements whose results it needs before it reads the first one (a round trip), and then changes
rows without reading (another one, with COMMIT). See also `finish`.
"""

import functools
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import attrs

# Task leases use the database's clock, but buyers and vendors see timestamps of the machine. A skew
# of one second should not prevent a start; `gateway check` warns earlier.
MAX_SKEW_S = 5.0

Given = ParamSpec("Given")
Value = TypeVar("Value")
# A plugin's work: called with the connection and the plugin's handle, which can do less.
PluginWork = Callable[[Any, Any], Any]
# Runs a function of the connection, with its further arguments.
Run = Callable[..., Awaitable[Any]]


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


@attrs.frozen(kw_only=True, eq=False, repr=False)
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
    # Reads the id for a new payment, which no other payment gets.
    new_payment_query: str

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
    # As SQLite chooses it itself.
    new_payment_query="SELECT coalesce(max(id), 0) + 1 FROM payments",
)


def dialect_of(db: Connection) -> Dialect:
    """Return a connection's dialect. `sqlite3.Connection` has no such attribute."""
    dialect: Dialect = getattr(db, "dialect", SQLITE)
    return dialect


Write = TypeVar("Write", bound=Callable[..., Any])
# Called with the write's arguments, but without the connection.
NameLocks = Callable[..., Sequence[str]]


def locked(names: str | NameLocks) -> Callable[[Write], Write]:
    """Make a write take the named lock, or the locks computed from its arguments.

    SQLite allows only one writer. On PostgreSQL, each write sees a snapshot from its beginning, and
    two writes that read the same rows could both succeed. A primary key, or a state in the WHERE
    clause, already settles such a race: the loser is retried. A write whose decision depends on a
    sum or on the absence of rows takes a named lock before its snapshot begins.
    """
    name_locks: NameLocks = (lambda *_: [names]) if isinstance(names, str) else names

    def mark(write: Write) -> Write:
        vars(write)["name_locks"] = name_locks
        return write

    return mark


def lock_names(function: Callable[..., Any], arguments: Sequence[Any]) -> Sequence[str]:
    """Return the names of a write's locks, in the order to take them."""
    name_locks: NameLocks | None = getattr(function, "name_locks", None)
    return name_locks(*arguments) if name_locks is not None else []


def finish(db: Connection) -> None:
    """Let a write commit in the round trip of its next result. It changes nothing afterwards.

    Only for a write that may run twice: if the connection breaks in this trip, it cannot be known
    whether it was committed, so it runs again. SQLite has no round trips, and commits later.
    """
    commit: Callable[[], None] | None = getattr(db, "finish", None)
    if commit is not None:
        commit()


def read_clock(db: Connection) -> float:
    """Return the database's time (Unix seconds)."""
    return float(db.execute(dialect_of(db).clock_query).fetchone()[0])


def lease_clock(db: Connection, now: float) -> float:
    """Return the clock that decides leases: the database's if nodes share it, else the caller's.

    With SQLite, both are the clock of the same machine.
    """
    return read_clock(db) if dialect_of(db).is_shared else now


@attrs.frozen(eq=False, repr=False)
class LeaseClock:
    """`lease_clock` as a part of a statement, which saves a round trip."""

    # An expression, and the parameters in it.
    sql: str
    parameters: tuple[float, ...]
    # Reads the clock as the last column; empty if it is the caller's.
    column: str
    _now: float

    @classmethod
    def of(cls, db: Connection, now: float) -> "LeaseClock":
        """Return the clock of a database."""
        dialect = dialect_of(db)
        if not dialect.is_shared:
            return cls("?", (now,), "", now)
        # As a subquery, PostgreSQL reads it once and can use an index.
        sql = f"(SELECT {dialect.clock})"
        return cls(sql, (), f", {sql}", now)

    def read(self, row: Row) -> float:
        """Return the time in a row whose last column is `column`."""
        return float(row[len(row) - 1]) if self.column else self._now


def is_off(now: float, clock: float) -> bool:
    """Whether a machine's clock differs too much from the database's to take new work."""
    return abs(clock - now) > MAX_SKEW_S


def placeholders(values: Sequence[object]) -> str:
    """Return one `?` per value, for `IN (…)`.

    An empty list becomes NULL, which equals nothing. For `NOT IN`, see `none_of`.
    """
    return ", ".join("?" * len(values)) or "NULL"


def none_of(column: str, values: Sequence[object]) -> str:
    """Return the condition that a column has none of these values; true for no values."""
    return f"{column} NOT IN ({placeholders(values)})" if values else "1 = 1"


def _fetch_rows(db: Connection, sql: str, parameters: Sequence[object]) -> list[Row]:
    return db.execute(sql, parameters).fetchall()


def _fetch_row(db: Connection, sql: str, parameters: Sequence[object]) -> Row | None:
    row: Row | None = db.execute(sql, parameters).fetchone()
    return row


class Tables:
    """Methods over some tables of the store; each is one durable write, or one read."""

    def __init__(self, write: Run, read: Run, query: Run, read_row: Run) -> None:
        """See the methods of these names in `SqlStore`."""
        self._write, self._short_read, self._long_read, self._read_row = (
            write,
            read,
            query,
            read_row,
        )

    async def _rows(self, sql: str, *parameters: object) -> list[Row]:
        rows: list[Row] = await self._long_read(_fetch_rows, sql, parameters)
        return rows

    async def _row(self, sql: str, *parameters: object) -> Row | None:
        row: Row | None = await self._read_row(_fetch_row, sql, parameters)
        return row


Function = Callable[Concatenate[Connection, Given], Value]
Method = Callable[Concatenate[Any, Given], Coroutine[Any, Any, Value]]


def _method(run: str, function: Function[Given, Value]) -> Method[Given, Value]:
    @functools.wraps(function)
    def method(
        self: Any, /, *given: Given.args, **named: Given.kwargs
    ) -> Coroutine[Any, Any, Value]:
        coroutine: Coroutine[Any, Any, Value] = getattr(self, run)(function, *given, **named)
        return coroutine

    return method


def as_write(function: Function[Given, Value]) -> Method[Given, Value]:
    """Return a method that runs the function in a transaction, durable when it returns."""
    return _method("_write", function)


def as_long_read(function: Function[Given, Value]) -> Method[Given, Value]:
    """Return a method that runs the function, a read that may take longer."""
    return _method("_long_read", function)


def as_short_read(function: Function[Given, Value]) -> Method[Given, Value]:
    """Return a method that runs the function, a short read, without waiting for a commit."""
    return _method("_short_read", function)


def as_row_read(function: Function[Given, Value]) -> Method[Given, Value]:
    """Return a method that runs the function, which reads one row by key or index."""
    return _method("_read_row", function)
