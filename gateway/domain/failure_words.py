"""Why a task failed, in a buyer's words, by the code in its `details`."""

REASONS = {
    "provider_error": "The provider failed, not your request.",
    "content_policy": "The provider's rules forbid this content: change the request.",
    "invalid_input": "The provider cannot make such a request.",
    "timed_out": "It took too long.",
    "uncertain_submit": "It may have been made, so it was not ordered a second time.",
}


def failure_in_words(details: str | None) -> str:
    """Return the reason in words; empty for a code that this version does not know."""
    return REASONS.get(details or "", "")
