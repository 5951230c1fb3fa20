"""Connections for plugins' functions, which take none of the gateway's threads.

A function that does not return in time is abandoned: its transaction is rolled back, its session is
ended, and its thread and connection are left behind until it returns.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any

import structlog

from gateway.concurrency.awaiting import outlive
from gateway.concurrency.threads import DaemonThread
from gateway.errors import StoreUnavailable
from gateway.store.plugin_functions import PluginOwner, Rests
from gateway.store.sql import PluginWork
from gateway_nodes.postgres.plugin_rights import run_fenced
from gateway_nodes.postgres.pool import Pool
from gateway_nodes.postgres.session import Session

# Connections for all plugins (docs/scale.md).
_SIZE = 2
_LIMIT_S = 5.0
# How often a transaction that is being committed is awaited after the limit.
_COMMIT_S = 0.1
_log = structlog.get_logger()


class PluginPool:
    """Runs plugins' functions, two at once."""

    def __init__(
        self,
        open_pool: Callable[[Executor], Pool],
        end_session: Callable[[int], Awaitable[None]],
        *,
        limit_s: float = _LIMIT_S,
    ) -> None:
        """`open_pool` makes a pool of one connection; `end_session` ends one by its process id."""
        self._open_pool = open_pool
        self._end_session = end_session
        self._limit_s = limit_s
        self._turns = asyncio.Semaphore(_SIZE)
        self._idle: list[Pool] = []
        self._rests = Rests()
        # One for each function that was abandoned and has not returned.
        self._left: set[asyncio.Task[None]] = set()

    async def run(self, owner: PluginOwner, work: PluginWork, *, writes: bool) -> Any:
        """Run a function in a transaction; a write is durable when this returns.

        Raises its errors, `DiskFull`, and `StoreUnavailable` if it takes longer than the limit.
        """
        self._rests.check(owner)
        call = self._run(owner, work, writes=writes)
        # A cancelled caller leaves the transaction to its end.
        return await outlive(asyncio.create_task(call, name="plugin-database"))

    async def _run(self, owner: PluginOwner, work: PluginWork, *, writes: bool) -> Any:
        async with self._turns:
            # The plugin may have blocked the database since.
            self._rests.check(owner)
            pool = self._idle.pop() if self._idle else self._open_pool(DaemonThread("plugin-store"))
            fenced = partial(run_fenced, owner=owner, work=work, writes=writes)
            call = _Call(fenced, self._limit_s)
            run = pool.write if writes else pool.read_one_state
            running = asyncio.create_task(run(call.run), name="plugin-database")
            while not running.done() and not call.abandon():
                await asyncio.wait((running,), timeout=call.left_s())
            if running.done():
                self._idle.append(pool)
                return running.result()
            self._rests.begin(owner, self._limit_s, running)
            await self._leave_behind(pool, running, call.session)
            raise StoreUnavailable

    async def _leave_behind(
        self, pool: Pool, running: "asyncio.Task[Any]", session: int | None
    ) -> None:
        left = asyncio.create_task(_close_after(running, pool), name="plugin-database")
        self._left.add(left)
        left.add_done_callback(self._left.discard)
        if session is None:
            return
        try:
            await self._end_session(session)
        except Exception as error:  # noqa: BLE001 - the server ends it after a minute without a statement
            _log.warning("plugin.session_not_ended", reason=str(error))

    def renew(self) -> None:
        """Replace idle connections before their next use."""
        for pool in self._idle:
            pool.renew()

    async def close(self) -> None:
        """Wait for running functions but not for abandoned ones, and close the connections."""
        for _ in range(_SIZE):
            await self._turns.acquire()
        for left in self._left:
            left.cancel()
        await asyncio.gather(*self._left, return_exceptions=True)
        for pool in self._idle:
            await pool.close()


class _Call:
    """A call of a function, which can be abandoned until its COMMIT."""

    def __init__(self, work: Callable[[Session], Any], limit_s: float) -> None:
        self._work, self._limit_s = work, limit_s
        # Held for each change of the fields below.
        self._lock = threading.Lock()
        # Monotonic time of the first attempt's start. The pool's own waiting is no plugin's fault.
        self._began_at: float | None = None
        self._is_inside = False
        self._is_abandoned = False
        # The server's process of the connection.
        self.session: int | None = None

    def run(self, db: Session) -> Any:
        """Make an attempt, in a transaction that is committed if this returns."""
        row = db.execute("SELECT pg_backend_pid()").fetchone()
        self._enter(None if row is None else int(row[0]))
        try:
            value = self._work(db)
        finally:
            # From here on the transaction ends without the plugin.
            self._leave()
        return value

    def _enter(self, session: int | None) -> None:
        with self._lock:
            if self._is_abandoned:
                raise StoreUnavailable
            self._began_at = self._began_at or time.monotonic()
            self.session, self._is_inside = session, True

    def _leave(self) -> None:
        with self._lock:
            self._is_inside = False
            if self._is_abandoned:
                raise StoreUnavailable

    def left_s(self) -> float:
        """Return when to call `abandon` again, in seconds."""
        if self._began_at is None:
            return self._limit_s
        return max(self._began_at + self._limit_s - time.monotonic(), _COMMIT_S)

    def abandon(self) -> bool:
        """Forbid COMMIT if the function is overdue; returns whether it is."""
        with self._lock:
            is_over = (
                self._began_at is not None and time.monotonic() >= self._began_at + self._limit_s
            )
            self._is_abandoned = is_over and self._is_inside
            return self._is_abandoned


async def _close_after(running: "asyncio.Task[Any]", pool: Pool) -> None:
    await asyncio.wait((running,))
    await pool.close()
