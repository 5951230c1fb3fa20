"""What OpenRouter's errors mean: for buyer or operator, or to retry later.

The body is `{"error": {"code", "message", "metadata"}}`; `code` is the status. What the vendor
behind OpenRouter said stands as text in `metadata.raw`.
"""

from typing import Any

from gateway import AccountProblem, Answer, ContentPolicy, SubmitUncertain
from gateway.vendors import as_object, as_text

_BAD_REQUEST = 400
_FORBIDDEN = 403
_NOT_FOUND = 404
# OpenRouter's own moderation names these beside a 403; any other 403 is the key's.
_FLAGS = ("reasons", "flagged_input")
# What the vendors behind OpenRouter call a refusal of content.
_POLICY = ("moderation", "content policy", "content filter", "safety", "flagged", "prohibited")
# Fields that the adapter fills in, not the buyer. They are looked for in OpenRouter's own words
# alone: what the vendor said may repeat the prompt, and a prompt must not take a model off sale.
_ADAPTER_FIELDS = ("unsupported parameter",)
# Those that depend on what the buyer chose, or that may be said of the picture that he sent.
_CHOSEN = ("aspect ratio", "resolution", "quality")
_MOST_OWN_CHARS = 200
# The most of an error's text that is searched.
_MOST_CHARS = 2_000


def check(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that an answer stands for; do nothing for one that should hold a picture."""
    error = as_object(body.get("error"))
    if not error:
        answer.check()
        return
    # Once a model has begun, the status may be 200 and the error stands in the body alone.
    code = error.get("code")
    is_late = answer.status in range(200, 300)
    status = code if is_late and isinstance(code, int) else answer.status
    _check_error(status, error)
    if status in range(200, 300):
        raise SubmitUncertain("OpenRouter answered with success and with an error.")
    Answer(
        status=status, headers=answer.headers, body=answer.body, may_be_billed=answer.may_be_billed
    ).check()


def _check_error(status: int, error: dict[str, Any]) -> None:
    metadata = as_object(error.get("metadata"))
    own = _plain(as_text(error.get("message")))
    told = own + _plain(as_text(metadata.get("raw")))
    is_flagged = status == _FORBIDDEN and any(map(metadata.get, _FLAGS))
    is_refused = status == _BAD_REQUEST and any(word in told for word in _POLICY)
    if is_flagged or is_refused:
        raise ContentPolicy("The provider's filter refused the prompt or its picture.")
    if status == _NOT_FOUND:
        raise AccountProblem("OpenRouter does not serve this model (any more).", scope="model")
    said = "The model does not take our ratio, resolution or quality: change the settings."
    if status == _BAD_REQUEST and any(word in own[:_MOST_OWN_CHARS] for word in _CHOSEN):
        raise AccountProblem(said, scope="choice")
    if status == _BAD_REQUEST and any(word in own[:_MOST_OWN_CHARS] for word in _ADAPTER_FIELDS):
        raise AccountProblem(said, scope="model")


def _plain(text: str) -> str:
    return text[:_MOST_CHARS].lower().replace("_", " ")
