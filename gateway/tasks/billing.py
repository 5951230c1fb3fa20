"""What an error says about the vendor's bill: only a clear "no" is submitted anew."""

from gateway.domain import Traits
from gateway.errors import (
    AccountProblem,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    NotAccepted,
    RateLimited,
    ResultUnusable,
    SubmitUncertain,
    Transient,
)
from gateway.tasks.job import AttemptJob
from gateway.tasks.polling import JobTimedOut
from gateway.tasks.resources import WriteFailed

_UNUSABLE = "The result was made, but is not what the endpoint sells."
_REFUSALS = (AccountProblem, ContentPolicy, InvalidInput, JobFailed, NotAccepted, RateLimited)
_ENDS = (HandleLost, JobTimedOut, ResultUnusable, WriteFailed)  # that submit nothing


def as_billed(error: Exception, traits: Traits, job: AttemptJob | None) -> Exception:
    """Return the error that counts for the task: one that says nothing about the bill is replaced.

    Whatever follows a result is no reason to have it made again. Before that, a submit is sent
    again only where the vendor has refused it, where nothing went out, or where it bills nothing.
    """
    if job is None or traits.idempotent_submit or isinstance(error, _ENDS):
        return error
    if job.is_made:
        return error if isinstance(error, ContentPolicy) else ResultUnusable(_UNUSABLE)
    if isinstance(error, _REFUSALS):
        return error
    if job.handle is not None:
        is_stopped = isinstance(error, TimeoutError)  # for certain: `JobPoller` says so
        return error if is_stopped else HandleLost("The gateway failed over the job.")
    if isinstance(error, Transient) and not job.has_sent:
        return error
    return SubmitUncertain("What was sent may have been taken.")
