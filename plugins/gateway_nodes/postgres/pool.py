"""A connection pool with one thread per connection, and retries.

Writes run concurrently under REPEATABLE READ. If two conflict over a row or a key, the loser is
retried on a fresh snapshot. Lost connections are replaced. If one is lost during COMMIT, a write
that recognizes its own commit runs again. For any other, the server is asked whether it was
committed, so the result is never a guess.
"""

import asyncio
import contextlib
import inspect
import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import attrs
import psycopg
import structlog
from psycopg import errors

from gateway.concurrency.awaiting import outlive
from gateway.errors import DiskFull, StoreUnavailable
from gateway.store import direct_payments, leases, method_payments, payments, refunds
from gateway.store.meta import write_something
from gateway.store.signing_groups import begin_settling_each
from gateway.store.sql import Connection
from gateway_nodes.postgres.batch import Batch
from gateway_nodes.postgres.failover import read_life, read_server
from gateway_nodes.postgres.locks import locks_of
from gateway_nodes.postgres.session import Session, connect
from gateway_nodes.postgres.transaction import READ_COMMITTED, REPEATABLE_READ, Transaction

Value = TypeVar("Value")
_log = structlog.get_logger()

# A newer release added a column to a table that a prepared statement selects whole, the server has
# discarded prepared statements, or it kept those of a pooler's earlier client. A new connection has
# none.
_STALE_STATEMENT = (
    errors.FeatureNotSupported,
    errors.InvalidSqlStatementName,
    errors.DuplicatePreparedStatement,
)
# A concurrent transaction won; this one is rolled back and retried.
_LOST_RACE = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    *_STALE_STATEMENT,
)
# The server is gone, restarts, or has become a standby.
_UNANSWERED = (psycopg.OperationalError, psycopg.InterfaceError, errors.ReadOnlySqlTransaction)
# A race is lost this often only if a key is permanently taken.
_MAX_RACES = 20
# A restarting server is back after some seconds; a buyer does not wait longer.
_TIMEOUT_S = 5.0
# Leasing skips rows that another node leases, and needs the newest state of each row.
_READ_COMMITTED = {leases.lease_due}
# Functions that accept a payment, and must see all earlier ones.
_SALES = {payments.reserve, direct_payments.accept_direct, method_payments.reserve}

# Functions that return the same result if they run again after their own COMMIT.
_REPEATABLE = {
    payments.reserve,
    payments.begin_settling,
    begin_settling_each,
    direct_payments.accept_direct,
    method_payments.reserve,
    method_payments.begin_settling,
    refunds.begin,
}


@attrs.frozen
class _Call:
    """A function of the store, and its arguments after the connection."""

    function: Callable[..., Any]
    given: tuple[Any, ...]
    named: dict[str, Any]

    def run(self, db: Connection) -> Any:
        """Call the function."""
        return self.function(db, *self.given, **self.named)

    @property
    def locks(self) -> Sequence[int]:
        """The numbers of its locks, named by its arguments, however the caller passed them."""
        if not hasattr(self.function, "name_locks"):
            return ()
        arguments: Sequence[Any] = self.given
        if self.named:
            bound = inspect.signature(self.function).bind(None, *self.given, **self.named)
            arguments = bound.args[1:]
        return locks_of(self.function, arguments)


class Pool:
    """Runs store functions on up to `size` connections at once."""

    def __init__(
        self,
        address: str,
        name: str,
        size: int,
        *,
        statement_s: int = 30,
        server: str = "",
        on_other_server: Callable[[], None] = lambda: None,
        threads: Executor | None = None,
        transaction: Callable[[Session, Batch], Transaction] = Transaction,
    ) -> None:
        """`server` identifies the server at the start (`read_server`).

        Once a connection reaches another server, sales stop, and `on_other_server` is called on
        that connection's thread.
        """
        self._open_one: Callable[[], psycopg.Connection[Any]] = partial(
            connect, address, name, statement_s=statement_s
        )
        self._threads = threads or ThreadPoolExecutor(size, "store")
        self._local = threading.local()
        self._make_transaction = transaction
        self._opened: set[Session] = set()
        self._running: set[asyncio.Future[Any]] = set()
        self._is_down = False
        # Connections of an earlier generation are replaced before their next use.
        self._generation = 0
        self._server = server
        self._on_other_server = on_other_server
        self._is_other_server = False
        # Whether the server's disk was full at the last write.
        self.is_full = False

    async def write(self, function: Callable[..., Value], *given: Any, **named: Any) -> Value:
        """Run a function in a transaction, which is durable when this returns.

        Raises the function's errors, `StoreUnavailable` if the server does not respond, and
        `DiskFull`. If the caller is cancelled, the write still completes.
        """
        value: Value = await outlive(self._start(self._write, _Call(function, given, named)))
        return value

    async def read(self, function: Callable[..., Value], *given: Any, **named: Any) -> Value:
        """Run a read-only function; each statement sees the newest state."""
        value: Value = await self._start(self._read, _Call(function, given, named))
        return value

    async def read_one_state(
        self, function: Callable[..., Value], *given: Any, **named: Any
    ) -> Value:
        """Run a read-only function; all statements see the same snapshot."""
        value: Value = await self._start(self._read_one_state, _Call(function, given, named))
        return value

    async def try_room(self) -> None:
        """Try a write if the disk was full; raises `DiskFull` while it still is."""
        if self.is_full:
            await self.write(write_something)
            self.is_full = False
            _log.info("disk.writable")

    def renew(self) -> None:
        """Replace all connections, each before its next use: they may be dead without a sign."""
        self._generation += 1

    async def close(self) -> None:
        """Wait for running functions, then close the connections."""
        if self._running:
            await asyncio.wait(self._running)
        await asyncio.to_thread(self._threads.shutdown)
        for session in self._opened:
            session.close()

    def _start(self, run: Callable[["_Call"], Any], call: "_Call") -> asyncio.Future[Any]:
        running = asyncio.get_running_loop().run_in_executor(self._threads, run, call)
        self._running.add(running)
        running.add_done_callback(self._forget)
        return running

    def _forget(self, running: asyncio.Future[Any]) -> None:
        self._running.discard(running)
        # Retrieve the error: a cancelled caller does not.
        if not running.cancelled():
            running.exception()

    # -- on a thread

    def _connection(self) -> Session:
        """Return this thread's session; reconnect if it was lost."""
        session: Session | None = getattr(self._local, "session", None)
        is_old = session is not None and self._local.generation != self._generation
        if session is None or is_old or session.is_closed:
            if session is not None:
                session.close()
                self._opened.discard(session)
            raw = self._open_one()
            # Never use a connection to an unknown server.
            try:
                self._note_server(read_server(raw))
                self._local.life = read_life(raw)
            except BaseException:
                raw.close()
                raise
            session = Session(raw)
            self._local.session, self._local.batch = session, Batch(raw)
            self._local.generation = self._generation
            self._opened.add(session)
        return session

    def _note_server(self, server: str) -> None:
        self._local.server = server
        if self._server not in ("", server) and not self._is_other_server:
            self._is_other_server = True
            self._on_other_server()
        self._server = self._server or server

    def _drop(self) -> None:
        """Close this thread's connection, whose state is unknown."""
        session = getattr(self._local, "session", None)
        if session is not None:
            session.close()

    def _read(self, call: "_Call") -> Any:
        return self._until_answered(call.run)

    def _read_one_state(self, call: "_Call") -> Any:
        def read(session: Session) -> Any:
            session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                return call.run(session)
            finally:
                with contextlib.suppress(psycopg.Error):
                    session.execute("ROLLBACK")

        return self._until_answered(read)

    def _until_answered(self, attempt: Callable[[Session], Any]) -> Any:
        """Retry an idempotent function until the server responds."""
        give_up_at = self._give_up_at()
        while True:
            try:
                value = self._on_fresh_statements(attempt)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self._wait_or_raise(error, give_up_at)
            else:
                self._is_down = False
                return value

    def _on_fresh_statements(self, attempt: Callable[[Session], Any]) -> Any:
        try:
            return attempt(self._connection())
        except _STALE_STATEMENT:
            self._drop()
            return attempt(self._connection())

    def _give_up_at(self) -> float:
        """Return the retry deadline; while the server is down, calls fail at once."""
        return time.monotonic() + (0.0 if self._is_down else _TIMEOUT_S)

    def _wait_or_raise(self, error: psycopg.Error, give_up_at: float) -> None:
        self._drop()
        if isinstance(error, errors.QueryCanceled):
            raise StoreUnavailable from error
        if time.monotonic() >= give_up_at:
            self._is_down = True
            raise StoreUnavailable from error
        time.sleep(0.1 + random.random() * 0.2)  # noqa: S311 - not a secret

    def _write(self, call: "_Call") -> Any:
        locks = call.locks
        give_up_at = self._give_up_at()
        races = 0
        while True:
            try:
                value = self._transact(call, locks)
            except _LOST_RACE as error:
                races += 1
                if races == _MAX_RACES:
                    raise
                if isinstance(error, _STALE_STATEMENT):
                    self._drop()
                time.sleep(random.random() * 0.002 * races)  # noqa: S311 - not a secret
            except errors.DiskFull as error:
                self._note_full(error)
                raise DiskFull from error
            except _UNANSWERED as error:
                self._wait_or_raise(error, give_up_at)
            else:
                self._is_down = False
                return value

    def _refuse_sale(self, function: Callable[..., Any]) -> None:
        """Raise `StoreUnavailable` for a sale on a server that may lack recorded payments."""
        if self._is_other_server and function in _SALES:
            raise StoreUnavailable

    def _note_full(self, error: psycopg.Error) -> None:
        if not self.is_full:
            _log.error("disk.full", error=str(error))
        self.is_full = True

    def _transact(self, call: "_Call", locks: Sequence[int]) -> Any:
        session, server = self._connection(), self._identity()
        self._refuse_sale(call.function)
        transaction = self._make_transaction(session, self._local.batch)
        value = None
        try:
            transaction.begin(_level_of(call.function), locks)
            value = call.run(transaction)
            transaction.commit()
        except BaseException as error:
            was_open = transaction.roll_back()
            if was_open or not (transaction.is_committing and isinstance(error, psycopg.Error)):
                raise
            self._drop()
            is_repeatable = call.function in _REPEATABLE
            if is_repeatable or not self._has_committed(transaction.id, server):
                raise
        return value

    def _identity(self) -> tuple[str, str]:
        """Return on which server a transaction's id is that transaction's."""
        return self._local.server, self._local.life

    def _has_committed(self, xid: str | None, server: tuple[str, str]) -> bool:
        """Return whether a transaction was committed whose COMMIT got no response.

        Raises `StoreUnavailable` if that is unknown. On another server, such as a promoted
        standby, and after a crash, the id may belong to another transaction.
        """
        give_up_at = self._give_up_at()
        while True:
            try:
                session = self._connection()
                if self._identity() != server:
                    raise StoreUnavailable
                status = session.execute("SELECT pg_xact_status(?::xid8)", (xid,)).fetchone()
            except _UNANSWERED as error:
                self._wait_or_raise(error, give_up_at)
                continue
            except psycopg.Error as error:
                # After a failover the id may be in the new server's future: it lacks the
                # transaction.
                raise StoreUnavailable from error
            if status is not None and status[0] in ("committed", "aborted"):
                return bool(status[0] == "committed")
            # The old session is still ending, or the status has been discarded.
            if time.monotonic() > give_up_at:
                raise StoreUnavailable
            time.sleep(0.05)


def _level_of(function: Callable[..., Any]) -> str:
    return READ_COMMITTED if function in _READ_COMMITTED else REPEATABLE_READ
