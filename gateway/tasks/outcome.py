"""Decides what happens after a failed attempt: fail the task, delay it, or retry."""

import random
from functools import partial, reduce

import attrs
import structlog

from gateway.catalog.fallbacks import fill_defaults
from gateway.catalog.registered import Registered
from gateway.catalog.upstream import Upstream
from gateway.contracts import Lease
from gateway.domain import MAX_ATTEMPTS, Endpoint, GenerationRequest, Traits
from gateway.domain.failure_reasons import FailureReason
from gateway.errors import (
    AccountProblem,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    LinkDead,
    NotAccepted,
    NotAsOrdered,
    RateLimited,
    ResultUnusable,
    StoreUnavailable,
    SubmitUncertain,
    Transient,
)
from gateway.tasks.failure import Failure, describe_failure
from gateway.tasks.job import AttemptJob, clamp
from gateway.tasks.polling import JobTimedOut
from gateway.tasks.resources import Resources, WriteFailed
from gateway.tasks.shortage import has_begun
from gateway.telemetry import signals

# Enough for a status, a code and 200 characters of the vendor's message.
_MAX_REASON_CHARS = 300
_GAVE_UP = "The provider failed after all retries."
_KILLED = "The gateway stopped each time it worked on this request. A refund is due."
# Deaths of the gateway in one task's lone attempts after which the task is to blame, and in any of
# its attempts. The second is higher because the cause may be another task, or the machine.
MAX_LONE_RUNS = 2
MAX_RESTARTS = 10
# Buyers do not see an account's problem, only that their request is not the cause.
_OFF_SALE = (
    "The provider does not serve this gateway's account now. Nothing was made; a refund is due."
)
_NO_MODEL = "The provider does not serve this model now. Nothing was made; a refund is due."
_NOT_THIS_CHOICE = (
    "The provider's model does not take this ratio, resolution, format or file. "
    "Nothing was made; a refund is due."
)
# Choices of a buyer other than the prompt: fields of the request and of the endpoint.
_CHOICES = ("aspect_ratio", "resolution", "output_format")
_UNWRITTEN = "The gateway could not finish its work on this request. A refund is due."
_NOT_KEPT = "The gateway stopped, or could not write, before the vendor's answer was kept."
_AWAY = "The provider has not worked for too long. Nothing was made; a refund is due."
_TOO_SHORT = "The gateway could not work for too long. Nothing was made; a refund is due."
_UNCERTAIN = "The provider did not say whether it has accepted the request."
_UNUSABLE = "The result was made, but is not what the endpoint sells."
# Errors for which vendors bill nothing.
_REFUSALS = (AccountProblem, ContentPolicy, InvalidInput, JobFailed, NotAccepted, RateLimited)
# Errors after which the task is submitted again only if a submit bills nothing.
_ENDS = (HandleLost, JobTimedOut, ResultUnusable, WriteFailed)
# Errors that do not count as failures here. Some change the circuit in another way.
_NO_FAILURES = (AccountProblem, ContentPolicy, InvalidInput, RateLimited, WriteFailed)
# A job that kills its server is lost each time, together with other buyers' jobs.
_MAX_LOST = 3
_log = structlog.get_logger()


@attrs.define(eq=False, repr=False)
class Outcome:
    """Ends or delays the task of one lease."""

    resources: Resources
    lease: Lease
    # The provider's name; None if the endpoint is no longer registered.
    provider: str | None = None
    # Why the attempt failed, for the operator.
    _reason: str | None = attrs.field(default=None, init=False)

    async def record(
        self, raised: Exception, registered: Registered, job: AttemptJob | None
    ) -> None:
        """Act on an error of the attempt."""
        upstream = registered.upstream
        failure = describe_failure(raised, upstream, self.lease.request)
        _log.warning(
            "task.attempt_failed",
            task=self.lease.task_id,
            plugin=upstream.plugin,
            **failure.fields(),
        )
        self._reason = failure.summary
        error = decisive_error(raised, upstream.traits, job)
        if self._is_buyer_error(error, registered):
            error = InvalidInput(_NOT_THIS_CHOICE)
        lacked = self.resources.shortages.note(raised, self.lease.task_id)
        if lacked is None and not isinstance(error, _NO_FAILURES):
            # An error that replaced another was not the vendor's response.
            is_of_model = error is raised and _is_of_model(error)
            circuit = registered.circuit if is_of_model else upstream.circuit
            is_once = isinstance(error, ResultUnusable)
            circuit.failed(failure.summary, self.lease.task_id, is_once=is_once)
        signals.attempt_ended.send(provider=upstream.provider.name, result=_name_error(error))
        if lacked is not None and _may_wait(error, job):
            await self._wait_for_machine()
            return
        await self._act_on(error, failure, registered)

    async def _act_on(self, error: Exception, failure: Failure, registered: Registered) -> None:  # noqa: C901 - one case an error
        """Fail or delay the task. docs/providers.md has a table of the cases."""
        upstream = registered.upstream
        is_idempotent = upstream.traits.idempotent_submit
        match error:
            case InvalidInput():
                registered.succeeded()
                await self.fail(FailureReason.INVALID_INPUT, upstream.error_text(error))
            case ContentPolicy():
                registered.succeeded()
                await self.fail(FailureReason.CONTENT_POLICY, upstream.error_text(error))
            case AccountProblem():
                pause_s = self.resources.timing.account_pause_s
                registered.note_account_problem(error, failure.summary, pause_s=pause_s)
                sentence = _OFF_SALE if error.scope == "vendor" else _NO_MODEL
                await self.fail(FailureReason.PROVIDER_ERROR, sentence)
            case RateLimited() | NotAccepted(retry_after_s=float() | int()):
                await self._wait_as_asked(error, upstream)
            case HandleLost() if not is_idempotent:
                await self.fail(FailureReason.UNCERTAIN_SUBMIT, "The provider has lost the job.")
            case JobTimedOut():
                await self.fail(FailureReason.TIMED_OUT, "The provider took too long.")
            case ResultUnusable() if not _is_free_again(error, is_idempotent=is_idempotent):
                await self.fail(FailureReason.PROVIDER_ERROR, upstream.error_text(error))
            case WriteFailed():
                await self.fail(
                    FailureReason.PROVIDER_ERROR, "The result was made, but could not be kept."
                )
            case SubmitUncertain() if not is_idempotent:
                await self.fail_uncertain()
            case ResultUnusable():
                await self._retry(FailureReason.PROVIDER_ERROR, upstream.error_text(error))
            case TimeoutError():
                await self._retry(FailureReason.TIMED_OUT, "The provider took too long.")
            case _:
                most = _MAX_LOST if isinstance(error, HandleLost) else MAX_ATTEMPTS
                await self._retry(FailureReason.PROVIDER_ERROR, _GAVE_UP, most=most)

    def _is_buyer_error(self, error: Exception, registered: Registered) -> bool:
        """Whether the refusal may be due to this buyer's choices or file.

        Other buyers' requests may succeed, so the endpoint stays on sale.
        """
        if not isinstance(error, AccountProblem) or error.scope != "choice":
            return False
        request, plain = self.lease.request, self._plain_request(registered.endpoint)
        return request.attachment is not None or any(
            getattr(request, name) != getattr(plain, name) for name in _CHOICES
        )

    def _plain_request(self, maker: Endpoint) -> GenerationRequest:
        """Return a request with the defaults of the endpoint that was bought, then the maker's."""
        bought = self.resources.catalog.find(self.lease.bought)
        offers = (maker,) if bought is None else (bought.endpoint, maker)
        return reduce(fill_defaults, offers, GenerationRequest())

    @property
    def is_hopeless(self) -> bool:
        """Whether too many leases of the task expired, or were those of a process that died."""
        return self.lease.lone_runs > MAX_LONE_RUNS or self.lease.restarts > MAX_RESTARTS

    async def fail_hopeless(self) -> None:
        """Fail a task that seems to end the gateway's process."""
        times = self.lease.restarts
        self._reason = (
            f"The gateway stopped, or could not write, {times} times while it worked on this task."
        )
        await self.fail(FailureReason.PROVIDER_ERROR, _KILLED)

    async def end_unwritten(self, *, is_marked: bool) -> None:
        """Retry, or fail the task, after an attempt whose end could not be written.

        A marked submit is not sent again: the next attempt finds the mark.
        """
        self._reason = "The gateway could not write how the attempts ended."
        if self.lease.attempt < MAX_ATTEMPTS:
            await self.resources.queue.retry(
                self.lease,
                delay_s=self._backoff_s,
                now=self.resources.now(),
                costs_attempt=True,
                keeps_mark=True,
                details=FailureReason.PROVIDER_ERROR,
                reason=self._kept_reason,
            )
        elif is_marked:
            await self.fail_uncertain()
        else:
            await self.fail(FailureReason.PROVIDER_ERROR, _UNWRITTEN)

    async def fail_uncertain(self) -> None:
        """Fail a task whose submit was sent, but whose outcome cannot be found out."""
        self._reason = self._reason or _NOT_KEPT
        await self.fail(FailureReason.UNCERTAIN_SUBMIT, _UNCERTAIN)

    async def wait_for_provider(self, registered: Registered) -> None:
        """Give the lease back, or fail the task if the provider's outage lasts."""
        outage = registered.find_lasting_outage(self.resources.timing.max_outage_s)
        if outage is None:
            await self.resources.queue.give_back(self.lease)
            return
        self._reason = outage.problem
        of_account = _NO_MODEL if outage is registered.circuit else _OFF_SALE
        error = of_account if outage.is_account else _AWAY
        await self.fail(FailureReason.PROVIDER_ERROR, error)

    async def _wait_as_asked(self, error: Exception, upstream: Upstream) -> None:
        """Retry after the pause that the provider asked for. Until then no task submits to it."""
        timing = self.resources.timing
        wait_s = clamp(getattr(error, "retry_after_s", None), *timing.rate_limit_s)
        costs_attempt = isinstance(error, NotAccepted)
        upstream.pause_as_requested(wait_s, long_wait_s=timing.long_wait_s)
        if self.resources.now() + wait_s - self.lease.started_at > timing.max_waited_s:
            await self.fail(FailureReason.PROVIDER_ERROR, "The provider was too busy for too long.")
        elif costs_attempt and self.lease.attempt >= MAX_ATTEMPTS:
            await self.fail(FailureReason.PROVIDER_ERROR, _GAVE_UP)
        else:
            details = FailureReason.PROVIDER_ERROR if costs_attempt else None
            await self._reschedule(wait_s, costs_attempt=costs_attempt, details=details)

    async def _wait_for_machine(self) -> None:
        """Retry after a pause, because this machine was short. The vendor was not asked.

        A shortage that lasts costs attempts, and so do all of a task that is very old.
        """
        timing = self.resources.timing
        lasted_s = self.resources.shortages.find_age_s(self.lease.task_id)
        age_s = self.resources.now() - self.lease.started_at
        if lasted_s > timing.max_shortage_s or age_s > timing.max_waited_s:
            await self._retry(FailureReason.PROVIDER_ERROR, _TOO_SHORT)
        else:
            wait_s = min(max(timing.backoff_s, lasted_s / 2), timing.max_backoff_s)
            await self._reschedule(wait_s, costs_attempt=False)

    async def _retry(self, details: FailureReason, error: str, *, most: int = MAX_ATTEMPTS) -> None:
        """Retry later, or fail the task after its last attempt."""
        if self.lease.attempt >= most:
            await self.fail(details, error)
            return
        await self._reschedule(self._backoff_s, costs_attempt=True, details=details)

    @property
    def _backoff_s(self) -> float:
        timing = self.resources.timing
        doubled_s: float = timing.backoff_s * 2 ** (self.lease.attempt - 1)
        return min(doubled_s, timing.max_backoff_s) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter

    @property
    def _kept_reason(self) -> str | None:
        return None if self._reason is None else self._reason[:_MAX_REASON_CHARS]

    async def _reschedule(
        self, delay_s: float, *, costs_attempt: bool, details: FailureReason | None = None
    ) -> None:
        await self.resources.queue.retry(
            self.lease,
            delay_s=delay_s,
            now=self.resources.now(),
            costs_attempt=costs_attempt,
            details=details,
            reason=self._kept_reason,
        )
        _log.info("task.retry_scheduled", task=self.lease.task_id, delay_s=round(delay_s, 1))

    async def fail(self, details: FailureReason, error: str) -> None:
        """End the task; its payment becomes a refund due."""
        now = self.resources.now()
        write = partial(
            self.resources.queue.fail,
            self.lease,
            details=details,
            error=error,
            now=now,
            reason=(self._reason or error)[:_MAX_REASON_CHARS],
            provider=self.provider,
        )
        if await self.resources.retry_write(write, self.lease.task_id, on=StoreUnavailable):
            seconds = max(0.0, now - self.lease.started_at)
            signals.task_ended.send(slug=self.lease.bought, seconds=seconds)
            _log.warning("task.failed", task=self.lease.task_id, details=details)


def _is_free_again(error: ResultUnusable, *, is_idempotent: bool) -> bool:
    """Whether another result costs nothing. A dead link has been asked for again already."""
    is_free = isinstance(error, NotAsOrdered) and error.is_free
    return (is_free or is_idempotent) and not isinstance(error, LinkDead)


def _may_wait(error: Exception, job: AttemptJob | None) -> bool:
    """Whether a shortage ended an attempt before the vendor was asked.

    A file whose process was ended costs an attempt: it may be the cause of the shortage.
    """
    has_asked = job is None or job.has_sent or job.has_result or job.handle is not None
    return isinstance(error, Transient) and not has_asked and not has_begun(error)


def _is_of_model(error: Exception) -> bool:
    """Whether the failure is the model's: the vendor responded, but the job failed."""
    is_job = isinstance(error, (HandleLost, JobFailed, ResultUnusable))
    return is_job and not isinstance(error, LinkDead)


def _name_error(error: Exception) -> str:
    """Return the class of a gateway error, else `other`: plugins could add any number of names."""
    kind = type(error)
    is_known = kind.__module__.partition(".")[0] == "gateway" or kind is TimeoutError
    return kind.__name__ if is_known else "other"


def decisive_error(error: Exception, traits: Traits, job: AttemptJob | None) -> Exception:
    """Return the error to act on. Replaces an error that leaves it unknown what the vendor bills.

    After a result, the task is never generated again. Before one, it is submitted again only if
    the vendor refused, nothing was sent, or a submit bills nothing.
    """
    if job is None or traits.idempotent_submit or isinstance(error, _ENDS):
        return error
    if job.has_result:
        return error if isinstance(error, ContentPolicy) else ResultUnusable(_UNUSABLE)
    if isinstance(error, _REFUSALS):
        return error
    if job.handle is not None:
        # `JobPoller` raises TimeoutError only for a job that was certainly stopped.
        is_stopped = isinstance(error, TimeoutError)
        return error if is_stopped else HandleLost("The gateway failed while the job ran.")
    if isinstance(error, Transient) and not job.has_sent:
        return error
    return SubmitUncertain("The vendor may have accepted the request.")
