"""Starts, drains and closes the parts of a gateway, in order."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, Self

import attrs
import structlog

from gateway.concurrency.awaiting import outlive
from gateway.concurrency.periodic import Periodic, always
from gateway.contracts.parts import Mount, Part, Step
from gateway.errors import ChainUnavailable
from gateway.running.readiness import Readiness

_log = structlog.get_logger()


@attrs.define(kw_only=True)
class Lifecycle:
    """The parts of a gateway, and the progress of its start or stop."""

    readiness: Readiness
    # Whether this node is the leader.
    leads: Callable[[], bool]
    warm_up_s: float
    # Called after all parts have drained.
    on_drained: Callable[[], None]
    parts: list[Part] = attrs.field(factory=list)
    # Set after the first response.
    answered: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # Set after warm-up.
    warmed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # Set when this process must stop using its database.
    unfit: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _started: list[Part] = attrs.field(factory=list, init=False)
    _tasks: list[asyncio.Task[None]] = attrs.field(factory=list, init=False)
    _draining: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    @functools.cached_property
    def mounts(self) -> Sequence[Mount]:
        """The mounts of all parts."""
        return tuple(mount for part in self.parts for mount in part.mounts)

    def find_mount(self, path: str) -> Mount | None:
        """Return the mount that serves a path, or None."""
        for mount in self.mounts:
            for rule in mount.paths:
                root = rule.removesuffix("/*")
                if path == root or (root != rule and path.startswith(f"{root}/")):
                    return mount
        return None

    async def __aenter__(self) -> Self:
        """Start the parts. If one fails, close those already started."""
        try:
            await self._start()
        except BaseException:
            await self._close()
            raise
        if self.readiness.is_draining:
            # Stopped during the start: only drain the started parts.
            return self
        self._begin("warm-up", self._warm_up())
        for part in self.parts:
            self._begin_work(part)
        return self

    async def _start(self) -> None:
        for part in self.parts:
            if self.readiness.is_draining:
                return
            self._started.append(part)
            if part.start is not None:
                await part.start()
        for part in self.parts:
            if part.begin is not None and not self.readiness.is_draining:
                async with _logged(part, "begin"):
                    await part.begin()

    async def __aexit__(self, *_: object) -> None:
        """Drain and close the parts."""
        await self.drain()
        await self._close()

    def stop_selling(self) -> None:
        """Stop sales. Tasks, polls, files, pages and streams go on."""
        self.readiness.is_draining = True

    def mark_unfit(self, problem: str) -> None:
        """Stop sales, and make the server end the process."""
        _log.error("node.unfit", problem=problem)
        self.stop_selling()
        self.unfit.set()

    async def drain(self) -> None:
        """Stop sales and drain all parts. Concurrent callers share one drain.

        The socket stays open: buyers poll running tasks, and purchases are refused with a
        Retry-After.
        """
        if self._draining is None:
            self.stop_selling()
            _log.info("draining")
            self._draining = asyncio.create_task(self._drain(), name="drain")
        await outlive(self._draining)

    async def _drain(self) -> None:
        try:
            for part in list(self._started):
                if part.drain is not None:
                    async with _logged(part, "drain"), asyncio.timeout(part.drain_s):
                        await part.drain()
        finally:
            self.on_drained()

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in reversed(self._started):
            if part.close is not None:
                async with _logged(part, "close"):
                    await part.close()

    async def _warm_up(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.warm_up_s):
                await self.answered.wait()
        if self.readiness.is_draining:
            return
        for part in self.parts:
            if part.warm is not None:
                async with _logged(part, "warm"), asyncio.timeout(part.warm_s):
                    await part.warm()
        self.warmed.set()

    def _begin_work(self, part: Part) -> None:
        if part.run is not None:
            self._begin(part.name, self._run(part.run))
        if part.work is not None:
            is_mine = self.leads if part.only_leader else always
            work = Periodic(part.name, part.work, part.every_s, wait_first=True, is_mine=is_mine)
            self._begin(part.name, work.repeat())

    async def _run(self, run: Step) -> None:
        await self.warmed.wait()
        await run()

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_log_failure)
        self._tasks.append(task)


@contextlib.asynccontextmanager
async def _logged(part: Part, step: str) -> AsyncIterator[None]:
    """Log an exception of a part's step, so the other parts go on."""
    try:
        yield
    except ChainUnavailable as error:
        _log.warning("chain.silent", error=error.message, details=error.details)
    except Exception:  # noqa: BLE001 - the edge of a part
        _log.exception("part.failed", part=part.name, step=step)


def _log_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("background.failed", work=task.get_name(), exc_info=error)
