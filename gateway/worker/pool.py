"""Hands the durable queue's tasks to lanes.

The queue is the store's; here is only who works. A lane that dies loses its lease, and the
task is due again. Waking is by event, so an accepted task starts at once.
"""

import asyncio
import contextlib
from collections.abc import Callable

import attrs
import structlog

from gateway.catalog import Catalog
from gateway.contracts import Artifacts, Clock, Lease, Store
from gateway.images import Pictures
from gateway.lane import LEASE_S, Lane

_BACKOFF_S = 2.0  # before the second attempt; doubles, with jitter
_IDLE_S = 5.0  # a look at the queue without an event: for clocks that jump
_log = structlog.get_logger()


@attrs.define(kw_only=True)
class WorkerPool:
    """A number of lanes over one durable queue."""

    store: Store
    catalog: Catalog
    artifacts: Artifacts
    now: Clock
    lanes: int
    retention_s: float
    on_done: Callable[[str], None]
    backoff_s: float = _BACKOFF_S
    pictures: Pictures = attrs.field(factory=Pictures)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _busy: set[asyncio.Task[None]] = attrs.field(factory=set, init=False)
    _dispatcher: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    def start(self) -> None:
        """Begin to work; tasks that a dead process held are due at once."""
        self._dispatcher = asyncio.create_task(self._dispatch(), name="worker-dispatch")

    def wake(self) -> None:
        """Look at the queue now."""
        self._wake.set()

    async def drain(self, *, grace_s: float) -> None:
        """Take nothing new, let the lanes finish for `grace_s` seconds, give the rest back."""
        if self._dispatcher is not None:
            self._dispatcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._dispatcher
        if self._busy:
            await asyncio.wait(self._busy, timeout=grace_s)
        for lane in list(self._busy):
            lane.cancel()
        if self._busy:
            await asyncio.wait(self._busy)

    async def _dispatch(self) -> None:
        is_recovered = False
        while True:
            self._wake.clear()
            try:
                if not is_recovered:
                    await self.store.recover_leases(now=self.now())
                    is_recovered = True
                free = self.lanes - len(self._busy)
                leases = await self._claim(free) if free else []
                for lease in leases:
                    self._open_lane(lease)
                if len(leases) < free or not free:
                    await self._sleep(has_free_lane=bool(free))
            except Exception:  # noqa: BLE001 - a lane's edge
                _log.exception("worker.dispatch_failed")
                await asyncio.sleep(1)

    async def _claim(self, free: int) -> list[Lease]:
        """Claim; a claim that commits while we are told to stop is given back."""
        claim = asyncio.create_task(
            self.store.claim_tasks(free, lease_s=LEASE_S, now=self.now()), name="worker-claim"
        )
        try:
            return await asyncio.shield(claim)
        except asyncio.CancelledError:
            for lease in await claim:
                await self.store.retry(lease, due_at=self.now(), costs_attempt=False)
            raise

    async def _sleep(self, *, has_free_lane: bool) -> None:
        """Wait for an event, or until the next task is due."""
        due = await self.store.next_due() if has_free_lane else None
        pause_s = _IDLE_S if due is None else min(max(due - self.now(), 0.0), _IDLE_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._wake.wait()

    def _open_lane(self, lease: Lease) -> None:
        lane = Lane(
            store=self.store,
            catalog=self.catalog,
            artifacts=self.artifacts,
            now=self.now,
            retention_s=self.retention_s,
            backoff_s=self.backoff_s,
            lease=lease,
            pictures=self.pictures,
        )
        work = asyncio.create_task(lane.run(), name=f"task-{lease.task_id}")
        self._busy.add(work)
        work.add_done_callback(lambda _: self._close_lane(work, lease.task_id))

    def _close_lane(self, work: asyncio.Task[None], task_id: str) -> None:
        self._busy.discard(work)
        self.on_done(task_id)
        self.wake()
