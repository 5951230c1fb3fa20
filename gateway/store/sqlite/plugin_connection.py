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
from gateway.concurrency.threads import run_in_daemon
from gateway.errors import DiskFull, StoreUnavailable
from gateway.store.disk import means_full
from gateway.store.plugin_functions import PluginOwner, Rests
from gateway.store.sqlite.plugin_rights import authorizer_of

Value = TypeVar("Value")
# Called with the connection and the plugin's handle.
Work = Callable[[sqlite3.Connection, "PluginHandle"], Value]

# Below the five seconds for which the writer waits for a lock.
_LIMIT_S = 3.0
# How often and how long an abandoned function's statement is given to end.
_INTERRUPTS = 20
_INTERRUPT_S = 0.05


class PluginHandle:
    """The `db` of a plugin's function: `execute` on its own tables, and nothing more."""

    __slots__ = ("_authorize", "_db", "_is_revoked", "_using")

    def __init__(self, db: sqlite3.Connection, owner: PluginOwner, using: threading.Lock) -> None:
        """Take `using`, which is held while a statement runs."""
        self._db = db
        self._authorize = authorizer_of(owner)
        self._is_revoked = False
        self._using = using

    def execute(self, sql: str, parameters: Any = ()) -> "PluginRows":
        """Execute one statement; raises `sqlite3.DatabaseError` if the plugin may not."""
        with self._using:
            if self._is_revoked:
                raise StoreUnavailable
            self._db.set_authorizer(self._authorize)
            try:
                return PluginRows(self._db.execute(sql, parameters), self._using)
            finally:
                self._db.set_authorizer(None)

    def revoke(self) -> None:
        """Refuse all further statements."""
        self._is_revoked = True


@attrs.frozen(eq=False, repr=False)
class PluginRows:
    """The result of a statement, without its connection."""

    _cursor: sqlite3.Cursor
    _using: threading.Lock

    @property
    def rowcount(self) -> int:
        """How many rows an INSERT, UPDATE or DELETE changed."""
        return self._cursor.rowcount

    def fetchone(self) -> Any:
        """Return the next row, or None."""
        with self._using:
            return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        with self._using:
            return self._cursor.fetchall()

    def __iter__(self) -> Any:
        """Return the rows that are left, one by one."""
        return iter(self.fetchone, None)


class PluginConnection:
    """Runs plugins' functions, one after the other."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        rests: Rests,
        *,
        write_turn: asyncio.Lock | None,
        limit_s: float = _LIMIT_S,
    ) -> None:
        """`connect` opens a connection that any thread may use.

        Functions hold `write_turn` while they run, so that each waiting batch of the writer comes
        before the next function. They only read if it is None.
        """
        self._connect = connect
        self._rests = rests
        self._write_turn = write_turn
        self._limit_s = limit_s
        self._turn = asyncio.Lock()
        self._db: sqlite3.Connection | None = None

    async def run(self, owner: PluginOwner, work: Work[Value]) -> Value:
        """Run a function in a transaction; a write is durable when this returns.

        Raises its errors, `DiskFull`, and `StoreUnavailable` if it takes longer than the limit.
        """
        self._rests.check(owner)
        # A cancelled caller leaves the transaction to its end.
        running = asyncio.create_task(self._run(owner, work), name="plugin-database")
        try:
            value: Value = await outlive(running)
        except sqlite3.Error as error:
            if means_full(error):
                raise DiskFull from error
            raise
        return value

    async def _run(self, owner: PluginOwner, work: Work[Value]) -> Value:
        async with self._turn:
            # The plugin may have blocked the database since.
            self._rests.check(owner)
            if self._db is None:
                self._db = await asyncio.to_thread(self._connect)
            async with self._write_turn or contextlib.nullcontext():
                return await self._call(self._db, owner, work)

    async def _call(self, db: sqlite3.Connection, owner: PluginOwner, work: Work[Value]) -> Value:
        call = _Call(db, owner, work, writes=self._write_turn is not None)
        # The process may end while a plugin blocks its thread.
        running = asyncio.create_task(run_in_daemon(call.transact, "plugin-database"))
        await asyncio.wait((running,), timeout=self._limit_s)
        if running.done():
            value: Value = running.result()
            return value
        self._db = None
        self._rests.begin(owner, self._limit_s, running)
        await asyncio.to_thread(call.abandon)
        raise StoreUnavailable

    async def close(self) -> None:
        """Close the connection."""
        async with self._turn:
            if self._db is not None:
                await asyncio.to_thread(self._db.close)
                self._db = None


class _Call:
    """One transaction, on a thread that ends with it."""

    def __init__(
        self, db: sqlite3.Connection, owner: PluginOwner, work: Work[Any], *, writes: bool
    ) -> None:
        self._db, self._work, self._writes = db, work, writes
        # Held while the plugin uses the connection, and for each step that ends the transaction.
        # Two threads that use it at once may wait for each other, one with SQLite's lock and one
        # with the interpreter's.
        self._using = threading.Lock()
        self._handle = PluginHandle(db, owner, self._using)
        self._is_abandoned = False

    def transact(self) -> Any:
        """Run the function in a transaction, which is rolled back if it raises anything."""
        self._db.execute("BEGIN IMMEDIATE" if self._writes else "BEGIN")
        try:
            value = self._work(self._db, self._handle)
        except BaseException:
            self._end("ROLLBACK")
            raise
        finally:
            self._handle.revoke()
        try:
            self._end("COMMIT" if self._writes else "ROLLBACK")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                self._end("ROLLBACK")
            raise
        return value

    def _end(self, statement: str) -> None:
        with self._using:
            if not self._is_abandoned and self._db.in_transaction:
                self._db.execute(statement)

    def abandon(self) -> None:
        """Roll the transaction back while its function goes on, and close the connection."""
        self._handle.revoke()
        has_lock = self._interrupt()
        try:
            self._is_abandoned = True
            with contextlib.suppress(sqlite3.Error):
                self._db.set_authorizer(None)
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
            with contextlib.suppress(sqlite3.Error):
                self._db.close()
        finally:
            if has_lock:
                self._using.release()

    def _interrupt(self) -> bool:
        """End the plugin's statement, and take its lock; returns whether that succeeded.

        An interruption affects only a statement that runs already, so it is repeated. A parameter
        of the plugin's own class may keep the lock: then it runs no statement.
        """
        for _ in range(_INTERRUPTS):
            self._db.interrupt()
            if self._using.acquire(timeout=_INTERRUPT_S):
                return True
        return False


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
