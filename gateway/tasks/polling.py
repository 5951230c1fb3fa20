"""Asks a provider for a job until it is done; nothing that fails here ever submits."""

import asyncio

import attrs
import structlog

from gateway.contracts import Cancelling, Clock, Polling
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
from gateway.plugins.calls import call_plugin, place_in
from gateway.plugins.upstream import Upstream
from gateway.tasks.delivery import check_shape
from gateway.tasks.job import AttemptJob, LeaseLost, within

_POLL_TIMEOUT_S = 60.0  # of one poll
_CANCEL_TIMEOUT_S = 30.0
_PAUSES_S = (1.0, 10.0)  # the first, and the longest where the API names none
_ASKED_S = (0.2, 60.0)  # within which an API's own wish counts
_MAX_ODDITIES = 20  # in a row that no provider may raise or return: about three minutes
_MAX_DEAD_LINKS = 3  # in all, before a result counts as out of reach
_ENDS = (JobFailed, ContentPolicy, InvalidInput, HandleLost, LeaseLost, ResultUnusable)
_log = structlog.get_logger()


class JobTimedOut(Exception):
    """A job took too long, and may still be made and billed."""


@attrs.define(kw_only=True)
class JobPoller:
    """Waits for one job."""

    upstream: Upstream
    handle: Handle
    job: AttemptJob
    deadline: float  # Unix seconds
    now: Clock
    _oddities: int = attrs.field(default=0, init=False)
    _dead_links: list[LinkDead] = attrs.field(factory=list, init=False)
    _pause_s: float = attrs.field(factory=lambda: _PAUSES_S[0], init=False)

    async def result(self) -> Result:
        """Return what the job made.

        Raises what the API says about the job, and `JobTimedOut`; `TimeoutError` where it took too
        long and was stopped for certain.
        """
        while True:
            answer = await self._asked()
            if isinstance(answer, Result):
                return answer
            left_s = self.deadline - self.now()
            if left_s <= 0 and self._dead_links:
                raise self._dead_links[-1]
            if left_s <= 0:
                await self._give_up()
            await asyncio.sleep(min(answer, left_s))

    async def _asked(self) -> Result | float:
        """Return the result, or the seconds until the next poll."""
        try:
            async with asyncio.timeout(_POLL_TIMEOUT_S):
                answer = await call_plugin(self._poll)
            if not isinstance(answer, Result):
                return self._pause(answer)
            check_shape(answer)
        except LinkDead as error:  # of a provider that fetches the result itself
            self.ask_again(error)
        except _ENDS:
            raise
        except RateLimited as error:
            return within(getattr(error, "retry_after_s", None), self._longer(), _ASKED_S[1])
        except AccountProblem as error:
            self.upstream.circuit.trip(self.upstream.error_text(error))
        except (Transient, SubmitUncertain, TimeoutError, OSError):
            pass  # the API is away for a moment; the job is not
        except Exception as error:
            self._oddities += 1
            self._tell(error)
            if self._oddities >= _MAX_ODDITIES:
                raise HandleLost("The provider cannot read its own job.") from error
        else:
            return answer
        return self._longer()

    def ask_again(self, error: LinkDead) -> None:
        """Count a dead link; raises it where the job has been asked for enough fresh ones."""
        self._dead_links.append(error)
        if len(self._dead_links) >= _MAX_DEAD_LINKS:
            raise error

    def _tell(self, error: Exception) -> None:
        """Log the plugin's own line; what it says may quote a buyer."""
        _log.warning(
            "job.odd_answer",
            task=self.job.task_id,
            plugin=self.upstream.plugin,
            error=type(error).__name__,
            at=place_in(error, type(self.upstream.provider).__module__),
        )

    async def _poll(self) -> Pending | Result:
        provider = self.upstream.provider
        if not isinstance(provider, Polling):
            raise HandleLost("The provider returned a handle and has no poll.")
        return await provider.poll(self.handle, self.job)

    def _pause(self, answer: Pending) -> float:
        if not isinstance(answer, Pending):
            raise TypeError("poll returned neither a result nor Pending")
        self._oddities = 0
        self.job.show(answer.progress, answer.note)
        if answer.poll_after_s is not None:
            return within(answer.poll_after_s, *_ASKED_S)
        return self._longer()

    def _longer(self) -> float:
        """Return the pause to make now; the next one is longer."""
        pause_s, self._pause_s = self._pause_s, min(self._pause_s * 1.5, _PAUSES_S[1])
        return pause_s

    async def _give_up(self) -> None:
        """Stop a job that takes too long; where that is certain, it may be submitted anew."""
        provider = self.upstream.provider
        if isinstance(provider, Cancelling):
            try:
                async with asyncio.timeout(_CANCEL_TIMEOUT_S):
                    await call_plugin(provider.cancel, self.handle)
            except Exception as error:  # noqa: BLE001 - a plugin may raise anything
                _log.warning("job.not_stopped", task=self.job.task_id, error=type(error).__name__)
                raise JobTimedOut from None
            if self.upstream.traits.cancellable:
                raise TimeoutError
        raise JobTimedOut
