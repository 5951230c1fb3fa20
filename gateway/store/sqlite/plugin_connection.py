"""A connection for plugins' functions, which holds up sales for three seconds at most.

Each function runs in a transaction of its own, on a thread of its own. If it does not return in
time, its transaction is rolled back from here, and thread and connection are left behind.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import attrs

from gateway.concurrency.awaiting import outlive
from gateway.errors import DiskFull, StoreUnavailable
from gateway.store.disk import means_full
from gateway.store.plugin_functions import PluginOwner, Rests
from gateway.store.sqlite.plugin_rights import authorizer_of

Value = TypeVar("Value")
# Called with the connection and the plugin's handle.
Work = Callable[[sqlite3.Connection, "PluginHandle"], Value]

# Below the five seconds for which the writer waits for a lock.
_LIMIT_S = 3.0


class PluginHandle:
    """What a plugin's function gets as `db`: `execute` on its own tables, and nothing more."""

    __slots__ = ("_authorize", "_db", "_is_revoked")

    def __init__(self, db: sqlite3.Connection, owner: PluginOwner) -> None:
        self._db = db
        self._authorize = authorizer_of(owner)
        self._is_revoked = False

    def execute(self, sql: str, parameters: Any = ()) -> "PluginRows":
        """Execute one statement; raises `sqlite3.DatabaseError` if the plugin may not."""
        if self._is_revoked:
            raise StoreUnavailable
        self._db.set_authorizer(self._authorize)
        try:
            return PluginRows(self._db.execute(sql, parameters))
        finally:
            self._db.set_authorizer(None)

    def revoke(self) -> None:
        """Refuse all further statements."""
        self._is_revoked = True


@attrs.frozen
class PluginRows:
    """The result of a statement, without its connection."""

    _cursor: sqlite3.Cursor

    @property
    def rowcount(self) -> int:
        """How many rows an INSERT, UPDATE or DELETE changed."""
        return self._cursor.rowcount

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return self._cursor.fetchall()

    def __iter__(self) -> Any:
        """Return the rows that are left, one by one."""
        return iter(self._cursor)


class PluginConnection:
    """Runs plugins' functions, one after the other."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        write_turn: asyncio.Lock | None,
        limit_s: float = _LIMIT_S,
    ) -> None:
        """`connect` opens a connection that any thread may use.

        Functions hold `write_turn` while they run, so that each waiting batch of the writer comes
        before the next function. They only read if it is None.
        """
        self._connect = connect
        self._write_turn = write_turn
        self._limit_s = limit_s
        self._turn = asyncio.Lock()
        self._db: sqlite3.Connection | None = None
        self._rests = Rests()

    async def run(self, owner: PluginOwner, work: Work[Value]) -> Value:
        """Run a function in a transaction; a write is durable when this returns.

        Raises its errors, `DiskFull`, and `StoreUnavailable` if it takes longer than the limit.
        """
        self._rests.check(owner)
        # A cancelled caller leaves the transaction to its end.
        outcome = await outlive(asyncio.create_task(self._run(owner, work), name="plugin-database"))
        if outcome.error is not None:
            raise DiskFull if means_full(outcome.error) else outcome.error
        value: Value = outcome.value
        return value

    async def _run(self, owner: PluginOwner, work: Work[Any]) -> "_Outcome":
        async with self._turn:
            if self._db is None:
                self._db = await asyncio.to_thread(self._connect)
            async with self._write_turn or contextlib.nullcontext():
                return await self._call(self._db, owner, work)

    async def _call(self, db: sqlite3.Connection, owner: PluginOwner, work: Work[Any]) -> "_Outcome":
        call = _Call(db, owner, work, writes=self._write_turn is not None)
        done = call.start()
        await asyncio.wait((done,), timeout=self._limit_s)
        if done.done():
            return done.result()
        self._db = None
        self._rests.begin(owner, self._limit_s)
        await asyncio.to_thread(call.abandon)
        return _Outcome(error=StoreUnavailable())

    async def close(self) -> None:
        """Close the connection."""
        async with self._turn:
            if self._db is not None:
                await asyncio.to_thread(self._db.close)
                self._db = None


@attrs.frozen
class _Outcome:
    value: Any = None
    error: BaseException | None = None


class _Call:
    """One transaction, on a thread that ends with it."""

    def __init__(
        self, db: sqlite3.Connection, owner: PluginOwner, work: Work[Any], *, writes: bool
    ) -> None:
        self._db, self._work, self._writes = db, work, writes
        self._handle = PluginHandle(db, owner)
        # Held for each step that ends the transaction.
        self._ending = threading.Lock()
        self._is_abandoned = False

    def start(self) -> "asyncio.Future[_Outcome]":
        """Start the thread, and return the future outcome."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_Outcome] = loop.create_future()

        def resolve(outcome: _Outcome) -> None:
            if not answer.done():
                answer.set_result(outcome)

        def work() -> None:
            outcome = self._transact()
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(resolve, outcome)

        # The process may end while a plugin blocks its thread.
        threading.Thread(target=work, name="plugin-database", daemon=True).start()
        return answer

    def _transact(self) -> _Outcome:
        try:
            self._db.execute("BEGIN IMMEDIATE" if self._writes else "BEGIN")
            value = self._work(self._db, self._handle)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            self._end("ROLLBACK")
            return _Outcome(error=_as_exception(error))
        finally:
            self._handle.revoke()
        try:
            self._end("COMMIT" if self._writes else "ROLLBACK")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._end("ROLLBACK")
            return _Outcome(error=error)
        return _Outcome(value=value)

    def _end(self, statement: str) -> None:
        with self._ending:
            if not self._is_abandoned and self._db.in_transaction:
                self._db.execute(statement)

    def abandon(self) -> None:
        """Roll the transaction back while its function goes on, and close the connection."""
        self._handle.revoke()
        self._db.interrupt()
        with self._ending:
            self._is_abandoned = True
            with contextlib.suppress(sqlite3.Error):
                self._db.set_authorizer(None)
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            with contextlib.suppress(sqlite3.Error):
                self._db.close()


def _as_exception(error: BaseException) -> BaseException:
    """Return the error, or an `Exception` for one that would end the process."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"the plugin's function raised {error!r}")


def connect_for_plugins(path: Path, *, writes: bool) -> sqlite3.Connection:
    """Open a connection that any thread may use, without a cache of compiled statements.

    The authorizer sees a statement while it is compiled, and a cached one is not compiled again.
    """
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=0)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA busy_timeout = 5000")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA foreign_keys = ON")
    if not writes:
        db.execute("PRAGMA query_only = ON")
    return db
