"""The resources that workers share."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import attrs
import structlog

from gateway.catalog.catalog import Catalog
from gateway.concurrency.standstills import Standstills, never
from gateway.contracts import Clock, OutputStore
from gateway.outputs.downloads import Downloader
from gateway.sandbox.kinds import ResultChecks
from gateway.store.tasks import SqlQueue
from gateway.tasks.shortage import Shortages
from gateway.tasks.timing import TaskTiming
from gateway.telemetry.spans import Spans


@attrs.define(eq=False, repr=False)
class Slots:
    """Free slots. A released slot goes to the attempt that has waited longest."""

    # Below 0 while cancelled attempts have not ended yet.
    free: int
    on_free: Callable[[], None]
    _waiting: deque[asyncio.Future[None]] = attrs.field(factory=deque, init=False)

    def take(self) -> None:
        """Take a slot, even if none is free."""
        self.free -= 1

    def release(self) -> None:
        """Release a slot, to the next waiting attempt if there is one."""
        self.free += 1
        while self.free > 0 and self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.free -= 1
                waiter.set_result(None)
        if self.free > 0:
            self.on_free()

    async def wait(self) -> None:
        """Take a slot as soon as one is free."""
        if self.free > 0:
            self.take()
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # `release` gave it a slot just before the cancellation.
            if waiter.done() and not waiter.cancelled():
                self.release()
            raise

    @contextlib.asynccontextmanager
    async def released(self) -> AsyncIterator[None]:
        """Release the slot inside the block, and wait for one at its end."""
        self.release()
        try:
            yield
        except asyncio.CancelledError:
            # A cancelled attempt does not wait; it releases this slot when it ends.
            self.take()
            raise
        except BaseException:
            await self._wait_again()
            raise
        await self._wait_again()

    async def _wait_again(self) -> None:
        try:
            await self.wait()
        except asyncio.CancelledError:
            self.take()
            raise


Value = TypeVar("Value")

# Concurrent downloads of results, each up to 128 MB.
_FETCHES = 4
_log = structlog.get_logger()


class WriteFailed(Exception):
    """A write still failed after the last retry."""


@attrs.define(kw_only=True, eq=False, repr=False)
class Resources:
    """The resources that all attempts share."""

    queue: SqlQueue
    catalog: Catalog
    output_store: OutputStore
    now: Clock
    # How long results are kept, in seconds.
    retention_s: float
    slots: Slots
    # A submit waits until the process has recovered from them.
    standstills: Standstills = attrs.field(factory=never)
    timing: TaskTiming = attrs.field(factory=TaskTiming)
    spans: Spans = attrs.field(factory=Spans)
    fetching: asyncio.Semaphore = attrs.field(factory=lambda: asyncio.Semaphore(_FETCHES))
    results: ResultChecks = attrs.field(factory=ResultChecks)
    # Downloads the outputs that providers return as links.
    links: Downloader = attrs.field(factory=Downloader)
    shortages: Shortages = attrs.field(
        default=attrs.Factory(lambda self: Shortages(self.now), takes_self=True)
    )

    async def close(self) -> None:
        """Close connections, and end the processes that check results."""
        await self.links.close()
        self.results.close()

    async def retry_write(
        self,
        write: Callable[[], Awaitable[Value]],
        task_id: str,
        *,
        on: type[Exception] = Exception,
    ) -> Value:
        """Write with retries: a full disk must not make the operator pay for generating again.

        Retries only errors of class `on`, longer if this machine is short of something. Raises
        `WriteFailed` after the last retry.
        """
        next_pause_s = self.shortages.pauses(self.timing.write_pauses_s, task_id)
        while True:
            try:
                return await write()
            except on as error:
                _log.exception("output.not_stored", task=task_id)
                pause_s = next_pause_s(error)
                if pause_s is None:
                    raise WriteFailed from error
                await asyncio.sleep(pause_s)
