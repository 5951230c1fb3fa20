"""Why a task failed: the code in its `details`, and everything that follows from it."""

import enum


class FailureReason(enum.StrEnum):
    """The code of a failure."""

    PROVIDER_ERROR = "provider_error"
    CONTENT_POLICY = "content_policy"
    INVALID_INPUT = "invalid_input"
    TIMED_OUT = "timed_out"
    UNCERTAIN_SUBMIT = "uncertain_submit"

    @property
    def words(self) -> str:
        """The reason in a buyer's words."""
        return _WORDS[self]

    @property
    def counts(self) -> bool:
        """Whether it counts among the endpoint's failures: others say something of the prompt."""
        return self is not FailureReason.CONTENT_POLICY

    @property
    def leaves_job_open(self) -> bool:
        """Whether the vendor may still have made and billed the job."""
        return self in {FailureReason.TIMED_OUT, FailureReason.UNCERTAIN_SUBMIT}


_WORDS = {
    FailureReason.PROVIDER_ERROR: "The provider failed, not your request.",
    FailureReason.CONTENT_POLICY: "The provider's rules forbid this content: change the request.",
    FailureReason.INVALID_INPUT: "The provider cannot make such a request.",
    FailureReason.TIMED_OUT: "It took too long.",
    FailureReason.UNCERTAIN_SUBMIT: "It may have been made, so it was not ordered a second time.",
}


def failure_in_words(details: str | None) -> str:
    """Return the reason in words; empty for a code that this version does not know."""
    known = {reason.value: reason.words for reason in FailureReason}
    return known.get(details or "", "")
