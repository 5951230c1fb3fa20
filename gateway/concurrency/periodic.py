"""Repeats a function every few seconds, and logs its exceptions."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import attrs
import structlog

from gateway.concurrency.fence import is_plugins_own
from gateway.errors import ChainUnavailable

_log = structlog.get_logger()


def always() -> bool:
    """Return True, for work that every process does."""
    return True


@attrs.define(eq=False, repr=False)
class Periodic:
    """A named task that repeats `work`, with a pause of `every_s` seconds after each time.

    `every_s` may change between two times.
    """

    name: str
    work: Callable[[], Awaitable[None]]
    every_s: float
    wait_first: bool = attrs.field(default=False, kw_only=True)
    # Called before each time; False skips it. For work that only one of several nodes does.
    is_mine: Callable[[], bool] = attrs.field(default=always, kw_only=True)
    _task: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def start(
        self, is_mine: Callable[[], bool] | None = None, *, every_s: float | None = None
    ) -> None:
        """Begin: the first time at once, or after the first pause if `wait_first` is set."""
        self.is_mine, self.every_s = is_mine or self.is_mine, every_s or self.every_s
        self._task = asyncio.create_task(self.repeat(), name=self.name)

    async def stop(self) -> None:
        """Stop, even in the middle of the work."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def repeat(self) -> None:
        """Repeat the work until this is cancelled.

        A `CancelledError` that no cancellation of this task has caused, as of a library that closes
        its connections, is logged like any other error.
        """
        if self.wait_first:
            await asyncio.sleep(self.every_s)
        while True:
            try:
                if self.is_mine():
                    await self.work()
            except ChainUnavailable as error:
                _log.warning("sweep.chain_silent", sweep=self.name, error=error.message)
            except (Exception, SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
                if not is_plugins_own(error):
                    raise
                _log.exception("sweep.failed", sweep=self.name)
            await asyncio.sleep(self.every_s)
