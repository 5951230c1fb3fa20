"""Polls a vendor's job until it is done. Never submits again."""

import asyncio

import attrs
import structlog

from gateway.catalog.registered import Registered
from gateway.catalog.upstream import Upstream
from gateway.contracts import Cancelling, Polling
from gateway.domain import Handle, Pending, Result
from gateway.errors import (
    AccountProblem,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    LinkDead,
    RateLimited,
    ResultUnusable,
    SubmitUncertain,
    Transient,
)
from gateway.tasks.delivery import check_shape
from gateway.tasks.failure import Failure, describe_failure
from gateway.tasks.job import AttemptJob, LeaseLost, clamp
from gateway.tasks.timing import TaskTiming

# Invalid errors or values in a row before the job counts as lost: about three minutes.
_MAX_FAILED_POLLS = 20
# Dead links of one job before its result counts as unreachable.
MAX_DEAD_LINKS = 3
# Errors of a poll that end the job.
_VERDICTS = (JobFailed, ContentPolicy, InvalidInput, HandleLost, LeaseLost, ResultUnusable)
_log = structlog.get_logger()


class JobTimedOut(Exception):
    """A job took too long; the vendor may still finish and bill it."""


@attrs.define(kw_only=True, eq=False, repr=False)
class JobPoller:
    """Waits for one job."""

    registered: Registered
    handle: Handle
    job: AttemptJob
    _failed_polls: int = attrs.field(default=0, init=False)
    _dead_links: list[LinkDead] = attrs.field(factory=list, init=False)
    # Whether the vendor has answered the last poll that the job is not done.
    _is_pending: bool = attrs.field(default=False, init=False)
    # Until when failed polls are repeated after the job's time, in loop time.
    _late_until: float | None = attrs.field(default=None, init=False)
    _pause_s: float = attrs.field(init=False)

    @property
    def upstream(self) -> Upstream:
        """The job's provider."""
        return self.registered.upstream

    @property
    def timing(self) -> TaskTiming:
        """Timeouts and pauses."""
        return self.job.resources.timing

    @_pause_s.default
    def _first_pause_s(self) -> float:
        return self.timing.poll_pauses_s[0]

    async def wait_for_result(self) -> Result:
        """Return the result of the job.

        Raises the vendor's error. If the job takes too long, raises `TimeoutError` if it was
        certainly stopped, else `JobTimedOut`.
        """
        deadline = self.job.sent_at + self.registered.endpoint.timeout_s
        while True:
            answer = await self._poll()
            if isinstance(answer, Result):
                return answer
            left_s = deadline - self.job.resources.now()
            if left_s <= 0:
                left_s = self._find_late_s()
            if left_s <= 0 and self._dead_links:
                raise self._dead_links[-1]
            if left_s <= 0:
                await self._stop_job()
            await asyncio.sleep(min(answer, left_s))

    def _find_late_s(self) -> float:
        """Return for how long to poll on although the job's time is over.

        The vendor's answer that it is not done ends the wait. But this process may have stood still
        or been down until now, so a poll that fails proves nothing about a job that may be done.
        """
        if self._is_pending or self._dead_links:
            return 0.0
        now = asyncio.get_running_loop().time()
        if self._late_until is None:
            self._late_until = now + self.timing.late_polls_s
        return self._late_until - now

    async def _poll(self) -> Result | float:
        """Poll once; return the result, or the seconds until the next poll."""
        self._is_pending = False
        try:
            async with asyncio.timeout(self.timing.poll_timeout_s):
                answer = await self.upstream.call(self._poll_provider)
            if not isinstance(answer, Result):
                return self._read_pending(answer)
            check_shape(answer)
        except LinkDead as error:
            # The provider downloads results itself.
            self.count_dead_link(error)
        except _VERDICTS:
            raise
        except RateLimited as error:
            most_s = self.timing.poll_after_s[1]
            return clamp(getattr(error, "retry_after_s", None), self._next_pause_s(), most_s)
        except AccountProblem as error:
            self._note_account_problem(error)
        except (Transient, SubmitUncertain, TimeoutError, OSError):
            # The vendor's API is unavailable, which proves nothing about the job.
            pass
        except Exception as error:
            self._failed_polls += 1
            fields = self._describe(error).fields()
            plugin = self.upstream.plugin
            _log.warning("job.poll_failed", task=self.job.task_id, plugin=plugin, **fields)
            if self._failed_polls >= _MAX_FAILED_POLLS:
                raise HandleLost("The provider cannot read its own job.") from error
        else:
            return answer
        return self._next_pause_s()

    def _note_account_problem(self, error: AccountProblem) -> None:
        """Take vendor or model off sale. Raise an error about the request, which ends the job."""
        if error.scope == "choice":
            raise error
        summary = self._describe(error).summary
        self.registered.note_account_problem(error, summary, pause_s=0.0)

    def count_dead_link(self, error: LinkDead) -> None:
        """Count a dead link; raise it if the job has had too many."""
        self._dead_links.append(error)
        if len(self._dead_links) >= MAX_DEAD_LINKS:
            raise error

    def _describe(self, error: Exception) -> Failure:
        return describe_failure(error, self.upstream, self.job.lease.request)

    async def _poll_provider(self) -> Pending | Result:
        provider = self.upstream.provider
        if not isinstance(provider, Polling):
            raise HandleLost("The provider returned a handle and has no poll.")
        return await provider.poll(self.handle, self.job)

    def _read_pending(self, answer: Pending) -> float:
        """Show the progress of a pending job; return the seconds until the next poll."""
        if not isinstance(answer, Pending):
            raise TypeError("poll returned neither a result nor Pending")
        self._failed_polls, self._is_pending = 0, True
        self.job.show(answer.progress, answer.note)
        if answer.poll_after_s is not None:
            return clamp(answer.poll_after_s, *self.timing.poll_after_s)
        return self._next_pause_s()

    def _next_pause_s(self) -> float:
        """Return the pause before the next poll. It grows each time."""
        pause_s = self._pause_s
        self._pause_s = min(pause_s * 1.5, self.timing.poll_pauses_s[1])
        return pause_s

    async def _stop_job(self) -> None:
        """Cancel a job that takes too long.

        Raises `TimeoutError` if it was certainly stopped and may be submitted again, else
        `JobTimedOut`.
        """
        provider = self.upstream.provider
        if isinstance(provider, Cancelling):
            try:
                async with asyncio.timeout(self.timing.cancel_timeout_s):
                    await self.upstream.call(provider.cancel, self.handle)
            except Exception as error:  # noqa: BLE001 - a plugin may raise anything
                _log.warning("job.not_stopped", task=self.job.task_id, error=type(error).__name__)
                raise JobTimedOut from None
            if self.upstream.traits.resubmit_after_cancel:
                raise TimeoutError
        raise JobTimedOut
