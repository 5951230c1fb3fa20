"""Starts, drains and closes the parts of a gateway, in order."""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self

import attrs
import structlog

from gateway.concurrency.awaiting import outlive
from gateway.concurrency.fence import Fence, Fenced, Owner
from gateway.concurrency.periodic import Periodic, always
from gateway.contracts.parts import Mount, Part, Step
from gateway.errors import ChainUnavailable, SettingsError
from gateway.running.readiness import Readiness
from gateway.running.timing import Timing

# The shortest pause between two times of a part's `work`.
MIN_PAUSE_S = 0.01
_log = structlog.get_logger()


@attrs.define(kw_only=True, eq=False, repr=False)
class Lifecycle:
    """The parts of a gateway, and the progress of its start or stop."""

    readiness: Readiness
    # Whether this node is the leader.
    leads: Callable[[], bool]
    timing: Timing
    fence: Fence
    # Called after all parts have drained.
    on_drained: Callable[[], None]
    parts: list[Part] = attrs.field(factory=list)
    # Set once all parts have started.
    started: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # Set after the first response.
    answered: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # Set after warm-up.
    warmed: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # Set when this process must stop using its database.
    unfit: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    # Set when this process is to end because nothing needs it.
    asleep: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _started: list[Part] = attrs.field(factory=list, init=False)
    _tasks: list[asyncio.Task[None]] = attrs.field(factory=list, init=False)
    _mounts: Sequence[Mount] | None = attrs.field(default=None, init=False)
    _draining: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    @property
    def mounts(self) -> Sequence[Mount]:
        """The mounts of all parts. Each request reads them, so they are kept."""
        if self._mounts is None:
            self._mounts = tuple(mount for part in self.parts for mount in part.mounts)
        return self._mounts

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
        self.started.set()
        return self

    async def _start(self) -> None:
        for part in list(self.parts):
            if self.readiness.is_draining:
                return
            self._started.append(part)
            await self._start_part(part)
        for part in self.parts:
            if not self.readiness.is_draining:
                await self._take_step(part, "begin", self.timing.step_s)

    async def _start_part(self, part: Part) -> None:
        """Start a part; leave a third party's part out if that fails, or raise the error."""
        if part.start is None:
            return
        limit_s = self.timing.start_s if part.plugin else None
        try:
            await self.fence.wait(
                owner_of(part), "start", part.start, limit_s=limit_s, expected=(SettingsError,)
            )
        except Fenced as fenced:
            if part.is_optional:
                self.parts.remove(part)
                self._mounts = None
            elif isinstance(fenced.error, Exception):
                raise fenced.error from None
            else:
                raise

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

    def sleep(self) -> None:
        """Make the server end the process. Sales go on until its socket is closed."""
        self.asleep.set()

    async def resume(self) -> list[str]:
        """Let all parts renew what is old after a standstill; return the parts that fail.

        Sales wait meanwhile.
        """
        await self.warmed.wait()
        return [
            part.name
            for part in list(self.parts)
            if not await self._take_step(part, "resume", self.timing.step_s)
        ]

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
                await self._take_step(part, "drain", part.drain_s)
        finally:
            self.on_drained()

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for part in reversed(self._started):
            await self._take_step(part, "close", self.timing.step_s)

    async def _warm_up(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.timing.warm_up_s):
                await self.answered.wait()
        if self.readiness.is_draining:
            return
        for part in self.parts:
            await self._take_step(part, "warm", part.warm_s)
        self.warmed.set()

    async def _take_step(self, part: Part, name: str, limit_s: float | None) -> bool:
        """Take a step of a part; an error is logged, so the other parts go on. True: it succeeded.

        Only the core's own parts may take longer than `limit_s`, or have no limit.
        """
        step: Step | None = getattr(part, name)
        if step is None:
            return True
        if part.plugin and limit_s is None:
            limit_s = self.timing.longest_step_s
        elif not part.plugin and name in ("begin", "close", "resume"):
            limit_s = None
        try:
            await self.fence.wait(
                owner_of(part), name, step, limit_s=limit_s, expected=(ChainUnavailable,)
            )
        except ChainUnavailable as error:
            _log.warning("chain.silent", error=error.message, details=error.details)
            return False
        except Fenced:
            return False
        return True

    def _begin_work(self, part: Part) -> None:
        if part.run is not None:
            self._begin(part.name, self._run(part, part.run))
        if part.work is not None:
            is_mine = self.leads if part.only_leader else always
            work = functools.partial(self._work, part, part.work)
            every_s = max(part.every_s, MIN_PAUSE_S)
            repeated = Periodic(part.name, work, every_s, wait_first=True, is_mine=is_mine)
            self._begin(part.name, repeated.repeat())

    async def _work(self, part: Part, work: Step) -> None:
        with contextlib.suppress(Fenced):
            await self.fence.wait(
                owner_of(part),
                "work",
                work,
                limit_s=self.timing.longest_work_s if part.plugin else None,
                expected=(ChainUnavailable,),
            )

    async def _run(self, part: Part, run: Step) -> None:
        await self.warmed.wait()
        with contextlib.suppress(Fenced):
            await self.fence.wait(owner_of(part), "run", run, limit_s=None)

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_log_failure)
        self._tasks.append(task)


def owner_of(part: Part) -> Owner:
    """Return the plugin of a part; the gateway itself has parts, too."""
    return Owner(part.plugin or "gateway", part.name)


def _log_failure(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.error("background.failed", work=task.get_name(), exc_info=error)
