"""One lane: works on one lease to its end, whatever the provider does."""

import asyncio
import contextlib

import attrs
import structlog

from gateway.contracts import Lease
from gateway.domain import MAX_ATTEMPTS, Endpoint, Handle, Link, Result
from gateway.errors import (
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    LinkDead,
    NotFound,
    ResultUnusable,
)
from gateway.plugins.calls import call_plugin
from gateway.plugins.catalog import Registered
from gateway.redaction import hide_prompt
from gateway.tasks.delivery import Delivery, check_shape
from gateway.tasks.job import AttemptJob, LeaseLost
from gateway.tasks.outcome import Outcome
from gateway.tasks.polling import JobPoller
from gateway.tasks.resources import Resources, WriteFailed
from gateway.vendors.sent import recorded

LEASE_S = 60.0  # extended while the provider works; what a dead lane's task waits for
_BEAT_S = 1.0  # between two looks at progress that is to be shown
_EXTEND_S = 20.0  # between two extensions
_VERDICTS = (JobFailed, ContentPolicy, InvalidInput, HandleLost, LeaseLost)  # end a job, too
_log = structlog.get_logger()


@attrs.define
class Attempt:
    """Generates once under a lease, and writes down what came of it (T5)."""

    resources: Resources
    lease: Lease
    is_waiting: bool = attrs.field(default=False, init=False)  # for a job; loses nothing by a stop
    until: float = attrs.field(init=False)  # when the lease ends, as last written down
    _job: AttemptJob | None = attrs.field(default=None, init=False)
    _running: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    @until.default
    def _leased_until(self) -> float:
        return self.lease.until

    async def run(self) -> None:
        """Work to the end; a lane told to stop gives its lease back at no cost."""
        self._running = asyncio.current_task()
        hide_prompt(self.lease.request.prompt)
        heartbeat = asyncio.create_task(self._keep(), name=f"lease-{self.lease.task_id}")
        try:
            await self._work()
        except asyncio.CancelledError:
            await self._give_back()
            raise
        except LeaseLost:
            _log.warning("worker.lease_lost", task=self.lease.task_id)
        except Exception:  # noqa: BLE001 - a lane's edge: its lease runs out
            _log.exception("worker.lane_failed", task=self.lease.task_id)
        finally:
            heartbeat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await heartbeat

    async def _give_back(self) -> None:
        try:
            await self.resources.queue.give_back(self.lease)
        except Exception:  # noqa: BLE001 - a lane's edge: its lease runs out
            _log.exception("worker.not_given_back", task=self.lease.task_id)

    async def _keep(self) -> None:
        """Prolong the lease from time to time, and at once where there is progress to show."""
        waited_s = 0.0
        while True:
            await asyncio.sleep(_BEAT_S)
            waited_s += _BEAT_S
            is_told = self._job is not None and self._job.is_told
            if not is_told and waited_s < _EXTEND_S:
                continue
            waited_s = 0.0
            try:
                await self.prolong()
            except Exception:  # noqa: BLE001 - the next one may work; a lease lasts three of them
                _log.exception("worker.extend_failed", task=self.lease.task_id)

    async def prolong(self) -> None:
        """Prolong the lease, and write progress down; a lane that lost it stops."""
        shown, note = self._job.take_told() if self._job is not None else (None, None)
        until = self.resources.now() + LEASE_S
        kept = await self.resources.queue.extend(self.lease, until=until, progress=shown, note=note)
        self.until = until
        if not kept and self._running is not None:
            self._running.cancel()

    async def _work(self) -> None:
        """Look at what the lease says was begun, then generate or say why not.

        Until the first `await` all is counted at the provider, so that no other lane slips in.
        """
        outcome, lease = Outcome(self.resources, self.lease), self.lease
        registered = self._registered()
        is_begun = lease.handle is not None or lease.sent_at is not None
        is_idempotent = registered is not None and registered.upstream.traits.idempotent_submit
        if is_begun and (registered is None or (lease.handle is None and not is_idempotent)):
            await outcome.uncertain()  # sent by a process that died before it wrote down the answer
        elif lease.attempt > MAX_ATTEMPTS:  # the last one died with its process
            await outcome.give_up()
        elif registered is None:
            await outcome.fail("provider_error", "The endpoint is not on sale any more.")
        elif not is_begun and registered.upstream.wait_s > 0:
            await outcome.rest(registered.upstream)
        else:
            with registered.upstream.pace.slot():
                await self._attempt(registered, outcome)

    def _registered(self) -> Registered | None:
        """Return what was bought; a begun job is finished, although its endpoint is off by now."""
        catalog, slug = self.resources.catalog, self.lease.slug
        with contextlib.suppress(NotFound):
            return catalog[slug]
        if self.lease.handle is None:
            return None
        return next((one for one in catalog.everything() if one.endpoint.slug == slug), None)

    async def _attempt(self, registered: Registered, outcome: Outcome) -> None:
        upstream = registered.upstream
        if self.lease.handle is None:
            upstream.pace.submitted()
        try:
            await self._generate(registered)
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            await outcome.of(error, upstream, self._job)
        else:
            upstream.circuit.succeeded()

    async def _generate(self, registered: Registered) -> None:
        """Submit, or take up what was begun; bring the result home."""
        sent_at = self.lease.sent_at
        self._job = job = AttemptJob(
            lease=self.lease,
            endpoint=registered.endpoint,
            queue=self.resources.queue,
            sent_at=self.resources.now() if sent_at is None else sent_at,
            is_marked=sent_at is not None,
            handle=self.lease.handle,
        )
        begun = self.lease.handle or await self._submit(registered, job)
        delivery = Delivery(self.resources, self.lease)
        if isinstance(begun, Handle):
            watch = JobPoller(
                upstream=registered.upstream,
                handle=begun,
                job=job,
                deadline=job.sent_at + registered.endpoint.timeout_s,
                now=self.resources.now,
            )
            result = await self._finished(watch, delivery, registered.endpoint)
        else:
            job.is_made = True
            result = await self._sellable(begun, delivery, registered.endpoint)
        await delivery.keep(result, registered.endpoint)

    async def _submit(self, registered: Registered, job: AttemptJob) -> Result | Handle:
        """Submit once, behind a durable mark; returns the handle as soon as it is durable too."""
        upstream = registered.upstream
        if not upstream.traits.idempotent_submit:
            await self._mark(job)
        try:
            with recorded() as sent:
                async with asyncio.timeout(registered.endpoint.timeout_s):
                    begun = await call_plugin(upstream.provider.submit, self.lease.request, job)
        except Exception as error:
            job.has_sent = sent.is_billable
            if job.handle is None or isinstance(error, _VERDICTS):
                raise
            return job.handle  # it was begun, and then something broke: asked for, not sent again
        return await _saved(begun, job) if isinstance(begun, Handle) else begun

    async def _mark(self, job: AttemptJob) -> None:
        """Mark the submit; where no disk takes the mark, nothing is sent and the lease runs out."""
        try:
            await job.mark()
        except LeaseLost:
            raise
        except Exception as error:
            _log.exception("worker.not_marked", task=self.lease.task_id)
            raise LeaseLost from error

    async def _finished(self, watch: JobPoller, delivery: Delivery, endpoint: Endpoint) -> Result:
        """Wait for a job without taking a place; a link that has died may be given afresh."""
        while True:
            self.is_waiting = True
            async with self.resources.slots.left():
                result = await watch.result()
            self.is_waiting, watch.job.is_made = False, True
            try:
                return await self._sellable(result, delivery, endpoint)
            except LinkDead as error:
                watch.ask_again(error)

    async def _sellable(self, result: Result, delivery: Delivery, endpoint: Endpoint) -> Result:
        """Return the result as it is sold; a link that leads to something else counts as dead."""
        fetched = await self._fetched(result, delivery)
        try:
            return await delivery.checked(fetched, endpoint)
        except ResultUnusable as error:
            if _has_links(result):
                raise LinkDead(str(error)) from error
            raise

    async def _fetched(self, result: Result, delivery: Delivery) -> Result:
        """Bring everything here; a vendor whose links hang takes no place from the others' work.

        The turn is given on only with a place in hand, so no more than that many results wait.
        """
        check_shape(result)
        if not _has_links(result):
            return await delivery.fetched(result)
        async with contextlib.AsyncExitStack() as turn, self.resources.slots.left():
            await turn.enter_async_context(self.resources.fetching)
            return await delivery.fetched(result)


def _has_links(result: Result) -> bool:
    return any(isinstance(output, Link) for output in result.outputs)


async def _saved(begun: Handle, job: AttemptJob) -> Handle:
    """Make a handle durable; where no disk takes it, it is polled all the same."""
    if begun != job.handle:
        with contextlib.suppress(WriteFailed):
            await job.save(begun)
    return job.handle or begun
