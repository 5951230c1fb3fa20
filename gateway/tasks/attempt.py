"""One attempt at a task, under one lease."""

import asyncio
import contextlib

import attrs
import structlog

from gateway.catalog.earlier import offers_choices
from gateway.catalog.notes import begin_notes, recorded
from gateway.catalog.registered import Registered
from gateway.contracts import Lease
from gateway.domain import Endpoint, Handle, Result
from gateway.domain.failure_reasons import FailureReason
from gateway.errors import (
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    LinkDead,
    NotAsOrdered,
    NotFound,
    ResultUnusable,
    Resuming,
)
from gateway.sandbox.memory_reservation import notify_of_waits
from gateway.tasks.delivery import Delivery, check_shape, has_links
from gateway.tasks.job import AttemptJob, LeaseLost
from gateway.tasks.outcome import Outcome
from gateway.tasks.polling import JobPoller
from gateway.tasks.resources import Resources, WriteFailed
from gateway.telemetry import signals
from gateway.telemetry.redaction import hide_prompt
from gateway.telemetry.spans import About

# Errors of a submit that end the attempt even if the plugin saved a handle.
_VERDICTS = (JobFailed, ContentPolicy, InvalidInput, HandleLost, LeaseLost)
_log = structlog.get_logger()


@attrs.define(eq=False, repr=False)
class Attempt:
    """Generates once, and stores the result or the failure."""

    resources: Resources
    lease: Lease
    # Whether it only waits for a vendor's job, so a stop loses no work.
    is_waiting: bool = attrs.field(default=False, init=False)
    # Whether no other attempt may start beside it, because the gateway died during an earlier one.
    is_alone: bool = attrs.field(init=False)
    # Whether it has run for `lone_s`: it is unlikely to end the process, and no attempt waits for
    # its end.
    is_trusted: bool = attrs.field(default=False, init=False)
    # The end of the lease, in Unix seconds, as last stored.
    until: float = attrs.field(init=False)
    _job: AttemptJob | None = attrs.field(default=None, init=False)
    _running: asyncio.Task[None] | None = attrs.field(default=None, init=False)
    _heartbeat: asyncio.Task[None] | None = attrs.field(default=None, init=False)

    @until.default
    def _leased_until(self) -> float:
        return self.lease.until

    @is_alone.default
    def _begins_alone(self) -> bool:
        return self.lease.lone_runs > 0 and self.lease.handle is None

    async def run(self) -> None:
        """Run to the end. If cancelled, give the lease back, which costs no attempt."""
        self._running = asyncio.current_task()
        registered = self._find_registered()
        facts = self._list_facts(registered)
        structlog.contextvars.bind_contextvars(**facts)
        begin_notes()
        hide_prompt(self.lease.request.prompt)
        # No task yet: with a fast provider, most attempts end before their first heartbeat.
        timer = asyncio.get_running_loop().call_later(
            self.resources.timing.heartbeat_s, self._start_heartbeat
        )
        try:
            with self._span(facts):
                await self._work(registered)
        except asyncio.CancelledError:
            await self._give_back()
            raise
        except LeaseLost:
            _log.warning("worker.lease_lost", task=self.lease.task_id)
            await self._end_unwritten()
        except Exception:  # noqa: BLE001 - an attempt's edge
            _log.exception("worker.attempt_failed", task=self.lease.task_id)
            await self._end_unwritten()
        finally:
            timer.cancel()
            await self._stop_heartbeat()

    def _start_heartbeat(self) -> None:
        self._heartbeat = asyncio.create_task(
            self._keep_lease(), name=f"lease-{self.lease.task_id}"
        )

    async def _stop_heartbeat(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._heartbeat

    def _list_facts(self, registered: Registered | None) -> About:
        """Return the log fields of the attempt, which are also attributes of its span."""
        lease = self.lease
        known: dict[str, str | int | None] = {
            "task": lease.task_id,
            "slug": lease.bought,
            "payment": lease.payment_id,
            "provider": registered.endpoint.provider if registered is not None else None,
            "request": lease.request_id,
        }
        return {name: value for name, value in known.items() if value is not None}

    def _span(self, facts: About) -> contextlib.AbstractContextManager[None]:
        spans = self.resources.spans
        if not spans.openers:
            return contextlib.nullcontext()
        return spans.around("attempt", {**facts, "attempt": self.lease.attempt})

    async def _give_back(self) -> None:
        try:
            await self.resources.queue.give_back(self.lease, stopped_at=self.resources.now())
        except Exception:  # noqa: BLE001 - an attempt's edge: its lease expires
            _log.exception("worker.not_given_back", task=self.lease.task_id)

    async def _end_unwritten(self) -> None:
        """Count an attempt whose end could not be written, and end its lease, if it still has it.

        An expired lease would count as a restart, though the process lives. A job is only polled
        again, which costs no attempt, so its lease may expire.
        """
        job = self._job
        if self.lease.handle is not None or (job is not None and job.handle is not None):
            return
        is_marked = job is not None and job.is_marked
        try:
            await Outcome(self.resources, self.lease).end_unwritten(is_marked=is_marked)
        except Exception:  # noqa: BLE001 - an attempt's edge: its lease expires
            _log.exception("worker.not_given_back", task=self.lease.task_id)

    async def _keep_lease(self) -> None:
        """Extend the lease regularly, and at each heartbeat that has progress to store."""
        timing = self.resources.timing
        waited_s, lone_s = timing.heartbeat_s, timing.heartbeat_s
        while True:
            if lone_s >= timing.lone_s:
                self.is_trusted = True
                await self._leave_alone()
            has_progress = self._job is not None and self._job.has_unwritten_progress
            if has_progress or waited_s >= timing.extend_s:
                waited_s = 0.0
                try:
                    await self.prolong()
                except Exception:  # noqa: BLE001 - the next one may work before the lease ends
                    _log.exception("worker.extend_failed", task=self.lease.task_id)
            await asyncio.sleep(timing.heartbeat_s)
            waited_s += timing.heartbeat_s
            lone_s += timing.heartbeat_s

    async def _leave_alone(self) -> None:
        """Let others run beside this attempt: it only polls a job, or has worked long enough."""
        if not self.is_alone:
            return
        self.is_alone = False
        try:
            await self.resources.queue.leave_alone(self.lease)
        except Exception:  # noqa: BLE001 - then a death counts against this task
            _log.exception("worker.extend_failed", task=self.lease.task_id)
        self.resources.slots.on_free()

    async def prolong(self) -> None:
        """Extend the lease and store progress; cancel the attempt if the lease was lost."""
        job = self._job
        fraction, note = job.take_progress() if job is not None else (None, None)
        now, lease_s = self.resources.now(), self.resources.timing.lease_s
        try:
            is_kept = await self.resources.queue.extend(
                self.lease, lease_s=lease_s, now=now, progress=fraction, note=note
            )
        except Exception:
            if job is not None:
                job.return_progress(fraction, note)
            raise
        self.until = now + lease_s
        if not is_kept and self._running is not None:
            self._running.cancel()

    async def _work(self, registered: Registered | None) -> None:
        """Resume the job of an earlier attempt, or generate, or fail the task.

        Takes the provider's slot before the first await, so no other attempt takes it in between.
        """
        lease = self.lease
        provider = registered.upstream.provider.name if registered is not None else None
        outcome = Outcome(self.resources, lease, provider)
        is_submitted = lease.handle is not None or lease.sent_at is not None
        is_idempotent = registered is not None and registered.upstream.traits.idempotent_submit
        if is_submitted and (registered is None or (lease.handle is None and not is_idempotent)):
            # The process died between the submit and storing the vendor's response.
            await outcome.fail_uncertain()
        elif outcome.is_hopeless:
            await outcome.fail_hopeless()
        elif registered is None:
            await outcome.fail(
                FailureReason.PROVIDER_ERROR, "The endpoint is not on sale any more."
            )
        elif lease.handle is None and not offers_choices(registered.endpoint, lease.request):
            await outcome.fail(
                FailureReason.PROVIDER_ERROR, "The endpoint has changed, and no longer makes this."
            )
        elif not is_submitted and registered.wait_s > 0:
            await outcome.wait_for_provider(registered)
        else:
            with registered.upstream.slot(), registered.circuit.working():
                await self._generate(registered, outcome)

    def _find_registered(self) -> Registered | None:
        """Return the endpoint that was bought, or None if it is not on sale.

        A job that has begun is finished even if the operator has disabled the endpoint, and every
        task of an endpoint that a reload has removed, but not if nothing here checks its result.
        """
        catalog, slug = self.resources.catalog, self.lease.slug
        if slug not in catalog.runnable_slugs():
            return None
        with contextlib.suppress(NotFound):
            return catalog[slug]
        found = catalog.find(slug)
        has_begun = self.lease.handle is not None
        return found if found is not None and (has_begun or found.is_removed) else None

    async def _generate(self, registered: Registered, outcome: Outcome) -> None:
        upstream = registered.upstream
        if self.lease.handle is None:
            upstream.pace.submitted()
        try:
            await self._make_and_store(registered)
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            await outcome.record(error, registered, self._job)
        else:
            registered.succeeded()
            signals.attempt_ended.send(provider=upstream.provider.name, result="completed")

    async def _make_and_store(self, registered: Registered) -> None:
        """Submit, or resume the job of an earlier attempt; fetch, check and store the result."""
        sent_at = self.lease.sent_at
        self._job = AttemptJob(
            lease=self.lease,
            endpoint=registered.endpoint,
            resources=self.resources,
            sent_at=self.resources.now() if sent_at is None else sent_at,
            is_marked=sent_at is not None,
            handle=self.lease.handle,
        )
        with notify_of_waits(self._job.note_wait):
            await self._make(registered, self._job)

    async def _make(self, registered: Registered, job: AttemptJob) -> None:
        submitted = self.lease.handle or await self._submit(registered, job)
        delivery = Delivery(self.resources, self.lease)
        if isinstance(submitted, Handle):
            # A poll ends no process. Its vendor may be away for long, which holds up no other task.
            await self._leave_alone()
            poller = JobPoller(registered=registered, handle=submitted, job=job)
            result = await self._wait_for_job(poller, delivery, registered.endpoint)
        else:
            job.has_result = True
            result = await self._fetch_and_check(submitted, delivery, registered.endpoint)
        await delivery.store(result, registered)

    async def _submit(self, registered: Registered, job: AttemptJob) -> Result | Handle:
        """Submit once, after a durable mark; store the handle before returning it."""
        # On a connection from before a standstill, a request that is billed may get no answer.
        with contextlib.suppress(Resuming):
            await self.resources.standstills.wait()
        upstream = registered.upstream
        if not upstream.traits.idempotent_submit:
            await self._mark_submit(job)
        try:
            with recorded() as sent:
                async with asyncio.timeout(registered.endpoint.timeout_s) as job.limit:
                    submitted = await upstream.call(
                        upstream.provider.submit, self.lease.request, job
                    )
        except Exception as error:
            job.has_sent = sent.is_billable
            if job.handle is None or isinstance(error, _VERDICTS):
                raise
            # The plugin saved a handle before it failed: poll the job, do not submit again.
            return job.handle
        finally:
            job.limit = None
        return await _save_handle(submitted, job) if isinstance(submitted, Handle) else submitted

    async def _mark_submit(self, job: AttemptJob) -> None:
        """Mark the submit. If that fails, send nothing and let the lease expire."""
        try:
            await job.mark()
        except LeaseLost:
            raise
        except Exception as error:
            _log.exception("worker.not_marked", task=self.lease.task_id)
            raise LeaseLost from error

    async def _wait_for_job(
        self, poller: JobPoller, delivery: Delivery, endpoint: Endpoint
    ) -> Result:
        """Wait for a job without holding a slot; if a link is dead, poll for a new one."""
        while True:
            self.is_waiting = True
            async with self.resources.slots.released():
                result = await poller.wait_for_result()
            self.is_waiting, poller.job.has_result = False, True
            try:
                return await self._fetch_and_check(result, delivery, endpoint)
            except LinkDead as error:
                poller.count_dead_link(error)

    async def _fetch_and_check(
        self, result: Result, delivery: Delivery, endpoint: Endpoint
    ) -> Result:
        """Return the checked result. A link to an unusable output counts as dead.

        A whole picture that was not ordered does not: a fresh link leads to the same one.
        """
        fetched = await self._fetch(result, delivery)
        try:
            return await delivery.check(fetched, endpoint)
        except NotAsOrdered:
            raise
        except ResultUnusable as error:
            if has_links(result):
                raise LinkDead(str(error)) from error
            raise

    async def _fetch(self, result: Result, delivery: Delivery) -> Result:
        """Download all links without holding a slot, so a slow vendor delays no other task.

        Keeps its turn to download until it has a slot again, which limits the results that wait in
        memory for a slot.
        """
        check_shape(result)
        if not has_links(result):
            return await delivery.fetch(result)
        async with contextlib.AsyncExitStack() as turn, self.resources.slots.released():
            await turn.enter_async_context(self.resources.fetching)
            return await delivery.fetch(result)


async def _save_handle(submitted: Handle, job: AttemptJob) -> Handle:
    """Store a handle. If that fails, the job is polled anyway."""
    if submitted != job.handle:
        with contextlib.suppress(WriteFailed):
            await job.save(submitted)
    return job.handle or submitted
