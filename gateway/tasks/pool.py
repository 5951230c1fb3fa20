"""Leases due tasks from the queue and starts attempts.

If a process dies, its leases expire and the tasks are due again. `wake` makes a new task start at
once.
"""

import asyncio
import contextlib
from collections.abc import Callable

import attrs
import structlog

from gateway.catalog.catalog import Catalog
from gateway.concurrency.awaiting import outlive
from gateway.concurrency.standstills import Standstills, never
from gateway.contracts import Clock, Lease, OutputStore
from gateway.contracts.parts import Condition
from gateway.outputs.downloads import Downloader
from gateway.store import SqlStore
from gateway.store.leases import Which
from gateway.tasks.attempt import Attempt
from gateway.tasks.resources import Resources, Slots
from gateway.tasks.timing import TaskTiming
from gateway.tasks.unknown import UnknownTasks
from gateway.telemetry.spans import Spans

_log = structlog.get_logger()


@attrs.define(kw_only=True, eq=False, repr=False)
class WorkerPool:
    """A fixed number of workers over one durable queue."""

    store: SqlStore
    catalog: Catalog
    output_store: OutputStore
    now: Clock
    workers: int
    retention_s: float
    # Called with the task id when an attempt has ended.
    on_done: Callable[[str], None]
    standstills: Standstills = attrs.field(factory=never)
    spans: Spans = attrs.field(factory=Spans)
    # Whether results may link to this machine: `GATEWAY_ALLOW_LOOPBACK_LINKS`.
    follows_loopback: bool = False
    _timing: TaskTiming = attrs.field(factory=TaskTiming, alias="timing")
    resources: Resources = attrs.field(init=False)
    unknown: UnknownTasks = attrs.field(init=False)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _working: dict[asyncio.Task[None], Attempt] = attrs.field(factory=dict, init=False)
    # Whether the last lease was filled, so the next one needs no read first.
    _has_more: bool = attrs.field(default=False, init=False)
    # When to search for begun jobs even if no provider has a free slot, in loop time.
    _search_at: float = attrs.field(default=0.0, init=False)
    _dispatcher: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    # Whether tasks may wait during which a process died, and when to search for them, in loop time.
    _has_suspects: bool = attrs.field(default=False, init=False)
    _suspects_at: float = attrs.field(default=0.0, init=False)
    # Until when nothing starts, in loop time, because one of them waits for running attempts.
    _holds_until: float = attrs.field(default=0.0, init=False)

    @resources.default
    def _set_up(self) -> Resources:
        return Resources(
            queue=self.store.queue,
            catalog=self.catalog,
            output_store=self.output_store,
            now=self.now,
            retention_s=self.retention_s,
            slots=Slots(self.workers, on_free=self.wake),
            standstills=self.standstills,
            timing=self._timing,
            spans=self.spans,
            links=Downloader(
                follows_loopback=self.follows_loopback,
                loopback_hint=" A vendor on the gateway's machine needs allow_loopback_links.",
            ),
        )

    @unknown.default
    def _set_up_unknown(self) -> UnknownTasks:
        return UnknownTasks(self.resources, has_others=self.store.nodes.has_others)

    def start(self) -> None:
        """Start. Tasks that a dead process had leased are due at once."""
        self._dispatcher = asyncio.create_task(self._dispatch(), name="worker-dispatch")

    def wake(self) -> None:
        """Read the queue now."""
        self._wake.set()

    @property
    def running(self) -> int:
        """The number of running attempts."""
        return len(self._working)

    async def fail_unknown(self) -> None:
        """Fail tasks whose endpoint no node has had for too long; a refund becomes due."""
        overdue = await self.unknown.find_overdue()
        for task_id in overdue[: max(self.resources.slots.free, 0)]:
            if self._dispatcher is None or self._dispatcher.done():
                # This node has no workers, or drains.
                return
            lease = await self.store.queue.lease_unknown(
                task_id, lease_s=self.resources.timing.lease_s, now=self.now()
            )
            if lease is not None:
                self._start_attempt(lease)

    async def find_conditions(self) -> list[Condition]:
        """Return the conditions of the tasks that wait: for this machine, or for an endpoint."""
        shortages = await self.resources.shortages.find_conditions()
        return [*shortages, *await self.unknown.find_conditions()]

    async def drain(self, *, grace_s: float) -> None:
        """Start no more tasks, let attempts finish for `grace_s` seconds, give the rest back."""
        if self._dispatcher is not None:
            self._dispatcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._dispatcher
        poll_s, left_s = self.resources.timing.drain_poll_s, grace_s
        while self._working and left_s > 0:
            # A vendor's job goes on without the gateway.
            for work, attempt in self._working.items():
                if attempt.is_waiting and not work.cancelling():
                    work.cancel()
            await asyncio.wait(self._working, timeout=min(left_s, poll_s))
            left_s -= poll_s
        for work in list(self._working):
            work.cancel()
        if self._working:
            await asyncio.wait(self._working)
        await self.resources.close()

    async def _dispatch(self) -> None:
        is_recovered = False
        while True:
            self._wake.clear()
            try:
                if not is_recovered:
                    self._has_suspects = await self.store.queue.recover(now=self.now()) > 0
                    is_recovered = True
                await self._prolong_leases()
                wanted = self._count_wanted()
                pause_s = await self._find_pause_s(wanted)
                if pause_s > 0:
                    await self._wait_for_work(pause_s)
                else:
                    await self._start_some(wanted)
            except Exception:  # noqa: BLE001 - the dispatcher's edge
                _log.exception("worker.dispatch_failed")
                await asyncio.sleep(self.resources.timing.dispatch_pause_s)

    async def _prolong_leases(self) -> None:
        """Extend leases that would expire soon because the clock jumped or the loop was blocked.

        Otherwise the pool would treat its own tasks as those of a dead process, and fail tasks that
        are about to succeed.
        """
        soon = self.now() + self.resources.timing.lease_s / 2
        late = [attempt.prolong() for attempt in self._working.values() if attempt.until < soon]
        if late:
            await asyncio.gather(*late)

    async def check_leases(self) -> None:
        """Extend the leases of all running attempts; those that another node has by now stop."""
        self.wake()
        asked = [attempt.prolong() for attempt in self._working.values()]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        if failures := [each for each in outcomes if isinstance(each, Exception)]:
            raise ExceptionGroup("Leases were not extended.", failures)

    def _count_wanted(self) -> int:
        """Return how many tasks can be started now.

        Without a free provider slot, there may still be jobs to resume. The pool searches for those
        only now and then, because such a lease reads all waiting tasks.
        """
        if any(attempt.is_alone for attempt in self._working.values()):
            return 0
        loop_time = asyncio.get_running_loop().time()
        is_held = loop_time < self._holds_until and self._is_busy
        free_workers = max(self.resources.slots.free, 0)
        if is_held or not free_workers:
            return 0
        free_submits = sum(upstream.free_submits for upstream in self.catalog.upstreams())
        is_time = loop_time >= self._search_at
        return min(free_workers, free_submits or int(is_time))

    async def _find_pause_s(self, wanted: int) -> float:
        """Return the seconds until a lease may find a task.

        This only reads; a lease commits even if it finds nothing.
        """
        idle_s = self.resources.timing.idle_s
        if not wanted:
            return idle_s
        if self._has_more:
            return 0.0
        now = self.now()
        known, blocked = self.catalog.runnable_slugs(), self._find_blocked()
        due = await self.store.queue.next_due(blocked, now=now, known=known)
        pause_s = max(due - now, 0.0) if due is not None else idle_s
        if pause_s > 0:
            self._note_search()
        return pause_s

    def _find_blocked(self) -> list[str]:
        """Return the known slugs whose tasks wait.

        Another node may still have an endpoint that is switched off here. A retired one is retired
        on every node, and its tasks fail at once.
        """
        blocked = self.catalog.blocked_slugs(self.resources.timing.max_outage_s)
        if self.store.nodes.has_others:
            blocked += self.catalog.switched_off_slugs()
        return blocked

    def _note_search(self) -> None:
        self._search_at = asyncio.get_running_loop().time() + self.resources.timing.idle_s

    @property
    def _is_busy(self) -> bool:
        """Whether an attempt runs that a suspect should not take down.

        Those that wait for a vendor's job lose nothing. Those that have run for `lone_s` may go on
        for long, and neither suspects nor new tasks wait for their end.
        """
        return any(not (one.is_waiting or one.is_trusted) for one in self._working.values())

    async def _find_suspects(self) -> bool:
        """Whether a task is due during which a process died. On shared databases, read seldom."""
        loop_time = asyncio.get_running_loop().time()
        if self.store.queue.is_shared and loop_time >= self._suspects_at:
            self._suspects_at = loop_time + self.resources.timing.idle_s
            self._has_suspects = True
        if not self._has_suspects:
            return False
        now = self.now()
        known, blocked = self.catalog.runnable_slugs(), self._find_blocked()
        due = await self.store.queue.next_due(blocked, now=now, known=known, which="suspects")
        if due is None:
            # Suspects whose provider rests, or whose plugin is missing, remain suspects.
            due = await self.store.queue.next_due(now=now, which="suspects")
            self._has_suspects = due is not None
            return False
        return due <= now

    async def _start_some(self, wanted: int) -> None:
        """Start up to `wanted` attempts, or alone one that follows a process's death.

        While a suspect waits for running attempts, nothing starts. Another node may lease it
        meanwhile, so the pool soon asks again.
        """
        self._has_more = False
        is_suspect = await self._find_suspects()
        if is_suspect and self._is_busy:
            loop_time = asyncio.get_running_loop().time()
            self._holds_until = loop_time + self.resources.timing.idle_s
            return
        if is_suspect:
            leases = await self._lease(1, "suspects")
        else:
            leases = await self._lease(wanted, "others" if self._has_suspects else "all")
        for lease in leases:
            self._start_attempt(lease)
        self._has_more = len(leases) >= wanted
        if not self._has_more:
            self._note_search()
        # Let the new attempts take their providers' slots before the next count.
        await asyncio.sleep(0)

    async def _lease(self, wanted: int, which: Which) -> list[Lease]:
        """Lease up to `wanted` tasks; if cancelled, give the leases back."""
        leasing = asyncio.create_task(
            self.store.queue.lease(
                wanted,
                lease_s=self.resources.timing.lease_s,
                now=self.now(),
                known=self.catalog.runnable_slugs(),
                blocked=self._find_blocked(),
                which=which,
            ),
            name="worker-lease",
        )
        try:
            return await outlive(leasing)
        except asyncio.CancelledError:
            # If giving back fails, the leases expire.
            with contextlib.suppress(Exception):
                for lease in await leasing:
                    await self.store.queue.give_back(lease)
            raise

    async def _wait_for_work(self, pause_s: float) -> None:
        """Wait for `wake`, for `pause_s`, or for a provider that may be called again."""
        pauses = [self.resources.timing.idle_s, pause_s]
        if self.resources.slots.free > 0:
            pauses += [one.wait_s for one in self.catalog.upstreams() if one.wait_s > 0]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(pauses)):
                await self._wake.wait()

    def _start_attempt(self, lease: Lease) -> None:
        attempt = Attempt(self.resources, lease)
        self.resources.slots.take()
        work = asyncio.create_task(attempt.run(), name=f"task-{lease.task_id}")
        self._working[work] = attempt
        work.add_done_callback(lambda _: self._end_attempt(work, lease.task_id))

    def _end_attempt(self, work: asyncio.Task[None], task_id: str) -> None:
        del self._working[work]
        self.resources.slots.release()
        self.on_done(task_id)
        self.wake()
