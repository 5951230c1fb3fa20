"""Hands the durable queue's tasks to lanes.

The queue is the store's; here is only who works. A lane that dies loses its lease, and the
task is due again. Waking is by event, so an accepted task starts at once.
"""

import asyncio
import contextlib
from collections.abc import Callable

import attrs
import structlog

from gateway.contracts import Clock, Lease, OutputStore, Store
from gateway.plugins.catalog import Catalog
from gateway.tasks.attempt import LEASE_S, Attempt
from gateway.tasks.outcome import PATIENCE_S
from gateway.tasks.resources import Resources
from gateway.tasks.slots import Slots

_BACKOFF_S = 2.0
_IDLE_S = 5.0  # a look at the queue without an event: for clocks that jump
_LOOK_S = 0.2  # while draining: between two looks at who only waits by now
_log = structlog.get_logger()


@attrs.define(kw_only=True)
class WorkerPool:
    """A number of lanes over one durable queue."""

    store: Store
    catalog: Catalog
    output_store: OutputStore
    now: Clock
    lanes: int
    retention_s: float
    on_done: Callable[[str], None]
    _backoff_s: float = attrs.field(default=_BACKOFF_S, alias="backoff_s")
    resources: Resources = attrs.field(init=False)
    _wake: asyncio.Event = attrs.field(factory=asyncio.Event, init=False)
    _working: dict[asyncio.Task[None], Attempt] = attrs.field(factory=dict, init=False)
    _look_at: float = attrs.field(default=0.0, init=False)  # for begun jobs, by the loop's clock
    _dispatcher: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    @resources.default
    def _set_up(self) -> Resources:
        return Resources(
            queue=self.store.queue,
            catalog=self.catalog,
            output_store=self.output_store,
            now=self.now,
            retention_s=self.retention_s,
            backoff_s=self._backoff_s,
            slots=Slots(self.lanes, on_free=self.wake),
        )

    @property
    def backoff_s(self) -> float:
        """Seconds before a second attempt; may be changed while lanes work."""
        return self.resources.backoff_s

    @backoff_s.setter
    def backoff_s(self, seconds: float) -> None:
        self.resources.backoff_s = seconds

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
        left_s = grace_s
        while self._working and left_s > 0:
            self._stop_waiting()
            await asyncio.wait(self._working, timeout=min(left_s, _LOOK_S))
            left_s -= _LOOK_S
        for work in list(self._working):
            work.cancel()
        if self._working:
            await asyncio.wait(self._working)
        await self.resources.close()

    def _stop_waiting(self) -> None:
        """Stop the lanes that wait for jobs, which go on without us."""
        for work, lane in self._working.items():
            if lane.is_waiting and not work.cancelling():
                work.cancel()

    async def _dispatch(self) -> None:
        is_recovered = False
        while True:
            self._wake.clear()
            try:
                if not is_recovered:
                    await self.store.queue.recover(now=self.now())
                    is_recovered = True
                await self._keep_leases()
                wanted = self._wanted()
                leases = await self._claim(wanted) if wanted else []
                for lease in leases:
                    self._open_lane(lease)
                await asyncio.sleep(0)  # the lanes count themselves at their providers
                if len(leases) < wanted or not wanted:
                    await self._sleep(has_looked=wanted > 0)
            except Exception:  # noqa: BLE001 - a lane's edge
                _log.exception("worker.dispatch_failed")
                await asyncio.sleep(1)

    async def _keep_leases(self) -> None:
        """Prolong what we work on, before the clock or a plugin that held the loop ends it.

        Else we would take our own tasks for a dead lane's, and fail what is about to succeed.
        """
        soon = self.now() + LEASE_S / 2
        late = [lane.prolong() for lane in self._working.values() if lane.until < soon]
        if late:
            await asyncio.gather(*late)

    def _wanted(self) -> int:
        """Return how many leases can be put to work now.

        Where no provider has room, there may still be jobs that were begun earlier: that is
        looked at from time to time, because it reads past all that rests.
        """
        free = max(self.resources.slots.free, 0)
        room = sum(upstream.free_submits for upstream in self.catalog.upstreams())
        is_time = asyncio.get_running_loop().time() >= self._look_at
        return min(free, room or int(is_time))

    async def _claim(self, wanted: int) -> list[Lease]:
        """Claim; a claim that commits while we are told to stop is given back."""
        claim = asyncio.create_task(
            self.store.queue.claim(
                wanted,
                lease_s=LEASE_S,
                now=self.now(),
                resting=self.catalog.resting(PATIENCE_S),
            ),
            name="worker-claim",
        )
        try:
            return await asyncio.shield(claim)
        except asyncio.CancelledError:
            with contextlib.suppress(Exception):  # the leases run out
                for lease in await claim:
                    await self.store.queue.give_back(lease)
            raise

    async def _sleep(self, *, has_looked: bool) -> None:
        """Wait for an event, until the next task is due, or until a provider may be asked again."""
        pauses = [_IDLE_S]
        if self.resources.slots.free > 0:
            pauses += [one.wait_s for one in self.catalog.upstreams() if one.wait_s > 0]
        if has_looked:
            self._look_at = asyncio.get_running_loop().time() + _IDLE_S
            due = await self.store.queue.next_due(self.catalog.resting(PATIENCE_S))
            pauses.append(max(due - self.now(), 0.0) if due is not None else _IDLE_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(pauses)):
                await self._wake.wait()

    def _open_lane(self, lease: Lease) -> None:
        lane = Attempt(self.resources, lease)
        self.resources.slots.take()
        work = asyncio.create_task(lane.run(), name=f"task-{lease.task_id}")
        self._working[work] = lane
        work.add_done_callback(lambda _: self._close_lane(work, lease.task_id))

    def _close_lane(self, work: asyncio.Task[None], task_id: str) -> None:
        del self._working[work]
        self.resources.slots.release()
        self.on_done(task_id)
        self.wake()
