"""One lane: works on one lease to its end, whatever the provider does."""

import asyncio
import contextlib
import random
import traceback
from collections.abc import Callable

import attrs
import structlog

from gateway.catalog import Catalog
from gateway.contracts import Artifacts, Clock, Lease, Registered, Store
from gateway.domain import MAX_ATTEMPTS, TEXT_TO_IMAGE, Endpoint, Result
from gateway.errors import (
    AccountProblem,
    ContentPolicy,
    InvalidInput,
    NotFound,
    RateLimited,
    SubmitUncertain,
    Transient,
)
from gateway.images import Pictures

LEASE_S = 60.0  # extended while the provider works; what a dead lane's task waits for
_EXTEND_S = 20.0  # between two extensions
_BACKOFF_CAP_S = 60.0
_WAIT_S = (1.0, 3600.0)  # least and most that a provider's "too many requests" is waited for
_GAVE_UP = "The provider failed after all retries."
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
class Lane:
    """Generates once under a lease, and writes down what came of it (T5)."""

    store: Store
    catalog: Catalog
    artifacts: Artifacts
    now: Clock
    retention_s: float
    backoff_s: float
    lease: Lease
    pictures: Pictures = attrs.field(factory=Pictures)
    _progress: list[float] = attrs.field(factory=list, init=False)

    async def run(self) -> None:
        """Work to the end; a lane told to stop gives its lease back at no cost."""
        heartbeat = asyncio.create_task(
            self._keep(asyncio.current_task()), name=f"lease-{self.lease.task_id}"
        )
        try:
            await self._attempt()
        except asyncio.CancelledError:
            await self.store.retry(self.lease, due_at=self.now(), costs_attempt=False)
            raise
        except Exception:  # noqa: BLE001 - a lane's edge: its lease runs out
            _log.exception("worker.lane_failed", task=self.lease.task_id)
        finally:
            heartbeat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heartbeat

    async def _keep(self, lane: asyncio.Task[None] | None) -> None:
        """Prolong the lease while the lane works; a lane that lost it stops."""
        waited_s = 0.0
        while True:
            await asyncio.sleep(1)
            waited_s += 1
            if not self._progress and waited_s < _EXTEND_S:
                continue
            shown = self._progress[-1] if self._progress else None
            self._progress.clear()
            waited_s = 0.0
            until = self.now() + LEASE_S
            try:
                if not await self.store.extend(self.lease, until=until, progress=shown) and lane:
                    lane.cancel()
            except Exception:  # noqa: BLE001 - the next one may work; a lease lasts three of them
                _log.exception("worker.extend_failed", task=self.lease.task_id)

    async def _attempt(self) -> None:
        if self.lease.attempt > MAX_ATTEMPTS:  # the last one died with its process
            await self._fail("provider_error", _GAVE_UP)
            return
        try:
            await self._complete(await self._generate())
        except InvalidInput as error:
            await self._fail("invalid_input", str(error))
        except ContentPolicy as error:
            await self._fail("content_policy", str(error))
        except AccountProblem as error:
            _log.error("provider.account_problem", slug=self.lease.slug, reason=str(error))
            await self._fail("provider_error", "The provider does not serve this gateway now.")
        except SubmitUncertain as error:
            _log.warning("task.uncertain", task=self.lease.task_id, **_where(error))
            await self._fail("uncertain_submit", "The provider was asked and never answered.")
        except NotFound:
            await self._fail("provider_error", "The endpoint is not on sale any more.")
        except RateLimited as error:
            least, most = _WAIT_S
            await self._later(min(max(error.retry_after_s, least), most), costs_attempt=False)
        except TimeoutError:
            await self._retry("timed_out", "The provider took too long.")
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            _log.warning("task.attempt_failed", task=self.lease.task_id, **_where(error))
            await self._retry("provider_error", _GAVE_UP)

    async def _generate(self) -> Result:
        """Ask the provider within its time, and look at its pictures."""
        registered = self.catalog[self.lease.slug]
        async with asyncio.timeout(registered.endpoint.timeout_s):
            result = await self._submit(registered)
        if registered.endpoint.capability != TEXT_TO_IMAGE:
            return result
        return await self.pictures.check(result, self.lease.request.output_format)

    async def _submit(self, registered: Registered) -> Result:
        """Ask the provider; a cancellation that nobody asked for is its failure, not our stop."""
        job = LaneJob(
            task_id=self.lease.task_id,
            attempt=self.lease.attempt,
            endpoint=registered.endpoint,
            report=self._progress.append,
        )
        lane = asyncio.current_task()
        try:
            return await registered.provider.submit(self.lease.request, job)
        except (asyncio.CancelledError, BaseExceptionGroup) as error:
            if lane is not None and lane.cancelling():
                raise
            raise Transient("the provider let a cancellation out") from error

    async def _complete(self, result: Result) -> None:
        """Keep the outputs under this lease's own name, so that no other lane overwrites them."""
        if not result.outputs and result.text is None:
            raise ValueError("the provider returned nothing")
        folder = f"{self.lease.task_id}-{self.lease.token[:16].lower()}"
        stored = await self.artifacts.save(folder, result)
        now = self.now()
        expires_at = now + self.retention_s
        if await self.store.complete(self.lease, stored, expires_at=expires_at, now=now):
            _log.info("task.completed", task=self.lease.task_id, attempt=self.lease.attempt)
        else:
            await self.artifacts.delete(stored.outputs)

    async def _retry(self, details: str, error: str) -> None:
        """Try again later, or fail where this was the last attempt."""
        if self.lease.attempt >= MAX_ATTEMPTS:
            await self._fail(details, error)
            return
        delay = min(self.backoff_s * 2 ** (self.lease.attempt - 1), _BACKOFF_CAP_S)
        await self._later(delay * random.uniform(0.5, 1.0), costs_attempt=True)  # noqa: S311 - jitter

    async def _later(self, delay_s: float, *, costs_attempt: bool) -> None:
        due_at = self.now() + delay_s
        await self.store.retry(self.lease, due_at=due_at, costs_attempt=costs_attempt)
        _log.info("task.later", task=self.lease.task_id, delay_s=round(delay_s, 1))

    async def _fail(self, details: str, error: str) -> None:
        if await self.store.fail(self.lease, details=details, error=error, now=self.now()):
            _log.warning("task.failed", task=self.lease.task_id, details=details)


def _where(error: Exception) -> dict[str, str]:
    """Return an error's kind and place, not its message: that may quote the prompt."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return {"error": type(error).__name__, "at": place}
