"""What an attempt that brought nothing means for its task: failed, later, or once more."""

import random

import attrs
import structlog

from gateway.contracts import Lease
from gateway.domain import MAX_ATTEMPTS
from gateway.errors import (
    AccountProblem,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    LinkDead,
    RateLimited,
    ResultUnusable,
    SubmitUncertain,
)
from gateway.plugins.calls import place_in
from gateway.plugins.upstream import Upstream
from gateway.tasks.billing import as_billed
from gateway.tasks.job import AttemptJob, within
from gateway.tasks.polling import JobTimedOut
from gateway.tasks.resources import Resources, WriteFailed

PATIENCE_S = 1800.0  # that a paid task waits for a provider that is off sale
_BACKOFF_CAP_S = 60.0
_WAIT_S = (1.0, 3600.0)  # least and most that a provider's "too many requests" is waited for
_LONG_WAIT_S = 600.0  # a wait that nobody should pay into
_WAITED_TOO_LONG_S = 7200.0  # since a task's first attempt
_QUOTE_CHARS = 16  # of a prompt or file name, in an error: such a sentence is not logged
_GAVE_UP = "The provider failed after all retries."
_OFF_SALE = "The provider does not serve this gateway now."
_UNCERTAIN = "The provider was asked, and did not say what became of it."
_log = structlog.get_logger()


@attrs.define
class Outcome:
    """Ends or delays one lease."""

    resources: Resources
    lease: Lease

    async def of(self, raised: Exception, upstream: Upstream, job: AttemptJob | None) -> None:  # noqa: C901 - one row an error
        """Write down what an error means; the rows of docs/providers.md, in their order."""
        is_idempotent = upstream.traits.idempotent_submit
        error = as_billed(raised, upstream.traits, job)
        match error:
            case InvalidInput():
                upstream.circuit.succeeded()
                await self.fail("invalid_input", upstream.error_text(error))
            case ContentPolicy():
                upstream.circuit.succeeded()
                await self.fail("content_policy", upstream.error_text(error))
            case AccountProblem():
                upstream.circuit.trip(upstream.error_text(error))
                await self.fail("provider_error", _OFF_SALE)
            case RateLimited():
                await self._wait(getattr(error, "retry_after_s", None), upstream)
            case HandleLost() if not is_idempotent:
                self._count(raised, upstream)
                await self.fail("uncertain_submit", "The provider has lost the job.")
            case JobTimedOut():
                self._count(raised, upstream)
                await self.fail("timed_out", "The provider took too long.")
            case ResultUnusable() if not is_idempotent or isinstance(error, LinkDead):
                self._count(raised, upstream)
                await self.fail("provider_error", upstream.error_text(error))
            case WriteFailed():
                await self.fail("provider_error", "The result was made, but could not be kept.")
            case SubmitUncertain() if not is_idempotent:
                self._count(raised, upstream)
                await self.uncertain()
            case ResultUnusable():
                self._count(raised, upstream)
                await self._retry("provider_error", upstream.error_text(error))
            case TimeoutError():
                self._count(raised, upstream)
                await self._retry("timed_out", "The provider took too long.")
            case _:
                self._count(raised, upstream)
                await self._retry("provider_error", _GAVE_UP)

    async def give_up(self) -> None:
        """Fail: there is no attempt left."""
        await self.fail("provider_error", _GAVE_UP)

    async def uncertain(self) -> None:
        """Fail: something was sent, and what became of it cannot be asked."""
        await self.fail("uncertain_submit", _UNCERTAIN)

    async def rest(self, upstream: Upstream) -> None:
        """Go back to the queue; fail where the provider has been off sale for too long."""
        if upstream.circuit.open_s > PATIENCE_S:
            await self.fail("provider_error", _OFF_SALE)
        else:
            await self.resources.queue.give_back(self.lease)

    async def _wait(self, asked_s: object, upstream: Upstream) -> None:
        """Come back when the provider said, and let nobody else ask it before."""
        wait_s = within(asked_s, *_WAIT_S)
        upstream.pace.pause(wait_s)
        if wait_s > _LONG_WAIT_S:
            upstream.circuit.trip(f"It asks to wait for {wait_s:.0f} s.", pause_s=wait_s)
        if self.resources.now() + wait_s - self.lease.started_at > _WAITED_TOO_LONG_S:
            await self.fail("provider_error", "The provider had no time for us for too long.")
        else:
            await self._later(wait_s, costs_attempt=False)

    async def _retry(self, details: str, error: str) -> None:
        """Try again later, or fail where this was the last attempt."""
        if self.lease.attempt >= MAX_ATTEMPTS:
            await self.fail(details, error)
            return
        delay = min(self.resources.backoff_s * 2 ** (self.lease.attempt - 1), _BACKOFF_CAP_S)
        await self._later(delay * random.uniform(0.5, 1.0), costs_attempt=True)  # noqa: S311 - jitter

    async def _later(self, delay_s: float, *, costs_attempt: bool) -> None:
        due_at = self.resources.now() + delay_s
        await self.resources.queue.retry(self.lease, due_at=due_at, costs_attempt=costs_attempt)
        _log.info("task.later", task=self.lease.task_id, delay_s=round(delay_s, 1))

    async def fail(self, details: str, error: str) -> None:
        """End the task, and owe its payment back."""
        now = self.resources.now()
        if await self.resources.queue.fail(self.lease, details=details, error=error, now=now):
            _log.warning("task.failed", task=self.lease.task_id, details=details)

    def _count(self, error: Exception, upstream: Upstream) -> None:
        """Count against the provider; log its own line and sentence, unless it quotes a prompt."""
        kind = type(error).__name__
        upstream.circuit.failed(kind, self.lease.task_id)
        _log.warning(
            "task.attempt_failed",
            task=self.lease.task_id,
            plugin=upstream.plugin,
            error=kind,
            said=self._said(upstream.error_text(error)),
            at=place_in(error, type(upstream.provider).__module__),
        )

    def _said(self, told: str) -> str:
        """Return an error's sentence for the log; nothing where it quotes what the buyer sent."""
        request = self.lease.request
        name = request.attachment.name if request.attachment is not None else ""
        for text in filter(None, (request.prompt, name)):
            if text[:_QUOTE_CHARS] in told or repr(text)[1 : _QUOTE_CHARS + 1] in told:
                return ""
        return told
