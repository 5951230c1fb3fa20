"""Maps Replicate's errors to the gateway's."""

import re
from typing import Any

from gateway import (
    AccountProblem,
    Answer,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    RateLimited,
)
from gateway.errors import ProviderError
from gateway.vendors import as_object, as_text

_NOT_FOUND = 404
_UNPROCESSABLE = 422
_TOO_MANY = 429
# Matches "Your rate limit resets in ~30s."
_RESETS = re.compile(r"resets in ~?([0-9]{1,6})s")
# Fields with the buyer's own content, or without a name.
_BUYERS = re.compile(r"(input\.(prompt|input_images)\b.*)?")
# Fields set by the adapter from the buyer's choices.
_CHOSEN = re.compile(r"input\.(aspect_ratio|resolution|width|height|output_format)\b.*")
# E005 is the filter's code.
_POLICY = ("E005", "sensitive", "nsfw", "content policy", "moderation")


def check_submit(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that a submit's response means, if any."""
    if answer.status == _UNPROCESSABLE:
        raise _unprocessable_error(body)
    _check(answer, body)


def check_poll(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that a poll's response means, if any."""
    if answer.status == _NOT_FOUND:
        raise HandleLost("Replicate does not know its own prediction.")
    if answer.status != _TOO_MANY:
        answer.check_poll()
    _check(answer, body)


def prediction_error(prediction: dict[str, Any]) -> ProviderError:
    """Return the error that a prediction with status `failed` ended with."""
    message = as_text(prediction.get("error")).lower()
    if any(word.lower() in message for word in _POLICY):
        return ContentPolicy("The provider's filter refused the prompt or its picture.")
    return JobFailed("Replicate's prediction failed.")


def _check(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error of a status; the body's text may have the time to wait."""
    waiting = _RESETS.search(as_text(body.get("detail")))
    if answer.status == _TOO_MANY and waiting and answer.retry_after_s is None:
        raise RateLimited("Replicate asks to wait.", retry_after_s=float(waiting[1]))
    answer.check()


def _unprocessable_error(body: dict[str, Any]) -> ProviderError:
    """Map a 422: the adapter fills in all fields except the buyer's content."""
    invalid = body.get("invalid_fields")
    entries = invalid if isinstance(invalid, list) else []
    names = [as_text(as_object(entry).get("field")) for entry in entries]
    ours = [name for name in names if not _BUYERS.fullmatch(name)]
    if ours:
        message = f"Replicate's model does not take our {ours[0][:60]}."
        is_choice = all(map(_CHOSEN.fullmatch, ours))
        return AccountProblem(message, scope="choice" if is_choice else "model")
    if "version" in as_text(body.get("title")).lower():
        message = "Replicate does not know the model's version, or keeps it private."
        return AccountProblem(message, scope="model")
    return InvalidInput("The provider cannot work with this input.")
