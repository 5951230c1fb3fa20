"""Lanes that work off the queue: lease, generate, keep the outputs, write the result down.

The queue is the store's; here is only who works. A lane that dies loses its lease, and the
task is due again. Waking is by event, so an accepted task starts at once.
"""

import asyncio
import contextlib
import random
import traceback
from collections.abc import Callable

import attrs
import structlog

from gateway.catalog import Catalog
from gateway.contracts import Artifacts, Clock, Lease, Store
from gateway.domain import MAX_ATTEMPTS, Endpoint, Result
from gateway.errors import ContentPolicy, InvalidInput, NotFound, RateLimited

_LEASE_S = 60.0  # extended while the provider works; what a dead lane's task waits for
_EXTEND_S = 20.0  # between two extensions
_BACKOFF_S = 2.0  # before the second attempt; doubles, with jitter
_BACKOFF_CAP_S = 60.0
_IDLE_S = 5.0  # a look at the queue without an event: for clocks that jump
_log = structlog.get_logger()


@attrs.define(kw_only=True)
class LaneJob:
    """The `contracts.Job` of one attempt."""

    task_id: str
    attempt: int
    endpoint: Endpoint
    report: Callable[[float], None] = attrs.field(repr=False)

    async def progress(self, fraction: float) -> None:
        """Show in the task how far this attempt is."""
        self.report(min(max(fraction, 0.0), 1.0))


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
        await self.store.recover_leases(now=self.now())
        while True:
            self._wake.clear()
            try:
                free = self.lanes - len(self._busy)
                leases = (
                    await self.store.claim_tasks(free, lease_s=_LEASE_S, now=self.now())
                    if free
                    else []
                )
                for lease in leases:
                    self._open_lane(lease)
                if len(leases) < free or not free:
                    await self._sleep(has_free_lane=bool(free))
            except Exception:  # noqa: BLE001 - a lane's edge
                _log.exception("worker.dispatch_failed")
                await asyncio.sleep(1)

    async def _sleep(self, *, has_free_lane: bool) -> None:
        """Wait for an event, or until the next task is due."""
        due = await self.store.next_due() if has_free_lane else None
        pause_s = _IDLE_S if due is None else min(max(due - self.now(), 0.0), _IDLE_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._wake.wait()

    def _open_lane(self, lease: Lease) -> None:
        lane = asyncio.create_task(self._run(lease), name=f"task-{lease.task_id}")
        self._busy.add(lane)
        lane.add_done_callback(self._close_lane)

    def _close_lane(self, lane: asyncio.Task[None]) -> None:
        self._busy.discard(lane)
        self.wake()

    async def _run(self, lease: Lease) -> None:
        """Work on one lease to its end; whatever happens here stays in this lane."""
        keeper = asyncio.current_task()
        progress: list[float] = []
        heartbeat = asyncio.create_task(
            self._keep(lease, keeper, progress), name=f"lease-{lease.task_id}"
        )
        try:
            await self._attempt(lease, progress.append)
        except asyncio.CancelledError:
            await self.store.retry(lease, due_at=self.now(), costs_attempt=False)
            raise
        except Exception:  # noqa: BLE001 - a lane's edge: its lease runs out
            _log.exception("worker.lane_failed", task=lease.task_id)
        finally:
            heartbeat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heartbeat
            self.on_done(lease.task_id)

    async def _keep(
        self, lease: Lease, lane: asyncio.Task[None] | None, progress: list[float]
    ) -> None:
        """Prolong the lease while the lane works; a lane that lost it stops."""
        waited_s = 0.0
        while True:
            await asyncio.sleep(1)
            waited_s += 1
            if not progress and waited_s < _EXTEND_S:
                continue
            shown = progress[-1] if progress else None
            progress.clear()
            waited_s = 0.0
            until = self.now() + _LEASE_S
            if not await self.store.extend(lease, until=until, progress=shown) and lane:
                lane.cancel()

    async def _attempt(self, lease: Lease, report: Callable[[float], None]) -> None:
        """Generate once and write down what came of it (T5)."""
        if lease.attempt > MAX_ATTEMPTS:  # the last one died with its process
            await self._fail(lease, "provider_error", "The provider failed after all retries.")
            return
        try:
            registered = self.catalog[lease.slug]
            job = LaneJob(
                task_id=lease.task_id,
                attempt=lease.attempt,
                endpoint=registered.endpoint,
                report=report,
            )
            async with asyncio.timeout(registered.endpoint.timeout_s):
                result = await registered.provider.submit(lease.request, job)
            await self._complete(lease, result)
        except InvalidInput as error:
            await self._fail(lease, "invalid_input", str(error))
        except ContentPolicy as error:
            await self._fail(lease, "content_policy", str(error))
        except NotFound:
            await self._fail(lease, "provider_error", "The endpoint is not on sale any more.")
        except RateLimited as error:
            await self._later(lease, error.retry_after_s, costs_attempt=False)
        except TimeoutError:
            await self._retry(lease, "timed_out", "The provider took too long.")
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            _log.warning("task.attempt_failed", task=lease.task_id, **_where(error))
            await self._retry(lease, "provider_error", "The provider failed after all retries.")

    async def _complete(self, lease: Lease, result: Result) -> None:
        if not result.outputs and result.text is None:
            raise ValueError("the provider returned nothing")
        stored = await self.artifacts.save(lease.task_id, result)
        now = self.now()
        if await self.store.complete(lease, stored, expires_at=now + self.retention_s, now=now):
            _log.info("task.completed", task=lease.task_id, attempt=lease.attempt)

    async def _retry(self, lease: Lease, details: str, error: str) -> None:
        """Try again later, or fail where this was the last attempt."""
        if lease.attempt >= MAX_ATTEMPTS:
            await self._fail(lease, details, error)
            return
        delay = min(self.backoff_s * 2 ** (lease.attempt - 1), _BACKOFF_CAP_S)
        await self._later(lease, delay * random.uniform(0.5, 1.0), costs_attempt=True)  # noqa: S311 - jitter

    async def _later(self, lease: Lease, delay_s: float, *, costs_attempt: bool) -> None:
        await self.store.retry(lease, due_at=self.now() + delay_s, costs_attempt=costs_attempt)
        _log.info("task.later", task=lease.task_id, attempt=lease.attempt, delay_s=delay_s)

    async def _fail(self, lease: Lease, details: str, error: str) -> None:
        if await self.store.fail(lease, details=details, error=error, now=self.now()):
            _log.warning("task.failed", task=lease.task_id, details=details)


def _where(error: Exception) -> dict[str, str]:
    """Return an error's kind and place, not its message: that may quote the prompt."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "at": place}
