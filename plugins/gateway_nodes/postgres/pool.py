"""A connection pool with one thread per connection, and retries.

Writes run concurrently under REPEATABLE READ. If two conflict over a row or a key, the loser is
retried on a fresh snapshot. Lost connections are replaced. If one is lost during COMMIT, the server
is asked whether the transaction was committed, so the result is never a guess.
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
from gateway.store import direct_payments, leases, method_payments, payments
from gateway.store.meta import write_something
from gateway_nodes.postgres.failover import read_server
from gateway_nodes.postgres.locks import locks_of
from gateway_nodes.postgres.session import Session, connect

Value = TypeVar("Value")
_log = structlog.get_logger()

# A newer release added a column to a table that a prepared statement selects whole. A rollback or a
# new connection drops such statements.
_STALE_STATEMENT = errors.FeatureNotSupported
# A concurrent transaction won; this one is rolled back and retried.
_LOST_RACE = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.UniqueViolation,
    _STALE_STATEMENT,
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


@attrs.frozen
class _Call:
    """A function of the store, and its arguments after the connection."""

    function: Callable[..., Any]
    given: tuple[Any, ...]
    named: dict[str, Any]

    def run(self, db: Session) -> Any:
        """Call the function."""
        return self.function(db, *self.given, **self.named)


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
        self._opened: set[psycopg.Connection[Any]] = set()
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
        for raw in self._opened:
            raw.close()

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

    def _connection(self) -> psycopg.Connection[Any]:
        """Return this thread's connection; reconnect if it was lost."""
        raw: psycopg.Connection[Any] | None = getattr(self._local, "raw", None)
        if raw is not None and self._local.generation != self._generation:
            self._drop()
        if raw is None or raw.closed:
            if raw is not None:
                self._opened.discard(raw)
            raw = self._open_one()
            # Never use a connection to an unknown server.
            try:
                self._note_server(read_server(raw))
            except BaseException:
                raw.close()
                raise
            self._local.raw, self._local.generation = raw, self._generation
            self._opened.add(raw)
        return raw

    def _note_server(self, server: str) -> None:
        self._local.server = server
        if self._server not in ("", server) and not self._is_other_server:
            self._is_other_server = True
            self._on_other_server()
        self._server = self._server or server

    def _drop(self) -> None:
        """Close this thread's connection, whose state is unknown."""
        raw = getattr(self._local, "raw", None)
        if raw is not None:
            with contextlib.suppress(psycopg.Error):
                raw.close()

    def _read(self, call: "_Call") -> Any:
        return self._until_answered(lambda raw: call.run(Session(raw)))

    def _read_one_state(self, call: "_Call") -> Any:
        def read(raw: psycopg.Connection[Any]) -> Any:
            raw.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                return call.run(Session(raw))
            finally:
                with contextlib.suppress(psycopg.Error):
                    raw.execute(b"ROLLBACK")

        return self._until_answered(read)

    def _until_answered(self, attempt: Callable[[psycopg.Connection[Any]], Any]) -> Any:
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

    def _on_fresh_statements(self, attempt: Callable[[psycopg.Connection[Any]], Any]) -> Any:
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
        # Locks are named by the arguments, however the caller passed them.
        bound = inspect.signature(call.function).bind(None, *call.given, **call.named)
        locks = locks_of(call.function, bound.args[1:])
        give_up_at = self._give_up_at()
        races = 0
        while True:
            try:
                with _locked(self._connection(), locks) as raw:
                    self._refuse_sale(call.function)
                    value = self._transact(raw, call)
            except _LOST_RACE:
                races += 1
                if races == _MAX_RACES:
                    raise
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

    def _transact(self, raw: psycopg.Connection[Any], call: "_Call") -> Any:
        xid, server = _begin(raw, call.function), self._local.server
        try:
            value = call.run(Session(raw))
        except BaseException:
            # Report the first error, and drop a connection that cannot roll back.
            try:
                raw.execute(b"ROLLBACK")
            except psycopg.Error:
                raw.close()
            raise
        try:
            raw.execute(b"COMMIT")
        except _UNANSWERED as error:
            if isinstance(error, _LOST_RACE):
                raise
            self._drop()
            if not self._has_committed(xid, server):
                raise
        return value

    def _has_committed(self, xid: str, server: str) -> bool:
        """Return whether a transaction was committed whose COMMIT got no response.

        Raises `StoreUnavailable` if that is unknown. On another server, such as a promoted
        standby, the id may belong to another transaction.
        """
        give_up_at = self._give_up_at()
        while True:
            try:
                raw = self._connection()
                if self._local.server != server:
                    raise StoreUnavailable
                status = raw.execute(b"SELECT pg_xact_status(%s::xid8)", (xid,)).fetchone()
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


def _begin(raw: psycopg.Connection[Any], function: Callable[..., Any]) -> str:
    """Begin a transaction and return its id, in one round trip."""
    level = b"READ COMMITTED" if function in _READ_COMMITTED else b"REPEATABLE READ"
    cursor = raw.execute(b"BEGIN ISOLATION LEVEL " + level + b"; SELECT pg_current_xact_id()::text")
    cursor.nextset()
    row = cursor.fetchone()
    if row is None:
        raise psycopg.InterfaceError("the server gave a transaction no number")
    return str(row[0])


@contextlib.contextmanager
def _locked(raw: psycopg.Connection[Any], locks: Sequence[int]) -> Any:
    """Hold advisory locks across all nodes; a lost connection releases them."""
    if not locks:
        yield raw
        return
    try:
        for lock in locks:
            raw.execute(b"SELECT pg_advisory_lock(%s)", (lock,))
        yield raw
    finally:
        # The write is committed, so an error here must not retry it. Closing the connection
        # releases the locks, too.
        try:
            raw.execute(b"SELECT pg_advisory_unlock_all()")
        except psycopg.Error:
            raw.close()
