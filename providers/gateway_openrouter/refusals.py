"""Maps OpenRouter's errors to the gateway's.

The body is `{"error": {"code", "message", "metadata"}}`; `code` is the status. The message of the
vendor behind OpenRouter is in `metadata.raw`.
"""

from typing import Any

import attrs

from gateway import AccountProblem, Answer, ContentPolicy, SubmitUncertain
from gateway.vendors import as_object, as_text

_BAD_REQUEST = 400
_FORBIDDEN = 403
_NOT_FOUND = 404
# openrouter.ai/docs/api/errors: no provider is available, or all are overloaded. A 502 may follow
# work: the provider's answer was invalid.
_BUSY = (503, 529)
# OpenRouter's own moderation adds these to a 403; any other 403 concerns the key.
_FLAGS = ("reasons", "flagged_input")
# Phrases with which the vendors behind OpenRouter refuse content.
_POLICY = ("moderation", "content policy", "content filter", "safety", "flagged", "prohibited")
# Problems with fields that the adapter fills in. Only OpenRouter's own message is searched: the
# vendor's may repeat the prompt, and a prompt must not take a model off sale.
_ADAPTER_FIELDS = ("unsupported parameter",)
# Fields that depend on the buyer's choices, or that may concern the buyer's picture.
_CHOSEN = ("aspect ratio", "resolution", "quality")
_MAX_OWN_CHARS = 200
# The searched part of an error's text.
_MAX_CHARS = 2_000


def check(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that a response means, if any."""
    error = as_object(body.get("error"))
    if not error:
        answer.check(not_begun=_BUSY)
        return
    # After a model has started, the status may be 200 with an error in the body.
    code = error.get("code")
    is_late = answer.status in range(200, 300)
    status = code if is_late and isinstance(code, int) else answer.status
    _check_error(status, error)
    if status in range(200, 300):
        raise SubmitUncertain("OpenRouter reported success and an error.")
    # An error in a 200 may follow work.
    attrs.evolve(answer, status=status).check(not_begun=() if is_late else _BUSY)


def _check_error(status: int, error: dict[str, Any]) -> None:
    metadata = as_object(error.get("metadata"))
    own = _plain(as_text(error.get("message")))
    text = own + _plain(as_text(metadata.get("raw")))
    is_flagged = status == _FORBIDDEN and any(map(metadata.get, _FLAGS))
    is_refused = status == _BAD_REQUEST and any(word in text for word in _POLICY)
    if is_flagged or is_refused:
        raise ContentPolicy("The provider's filter refused the prompt or its picture.")
    if status == _NOT_FOUND:
        raise AccountProblem("OpenRouter does not serve this model (any more).", scope="model")
    message = "The model does not take our ratio, resolution or quality: change the settings."
    if status == _BAD_REQUEST and any(word in own[:_MAX_OWN_CHARS] for word in _CHOSEN):
        raise AccountProblem(message, scope="choice")
    if status == _BAD_REQUEST and any(word in own[:_MAX_OWN_CHARS] for word in _ADAPTER_FIELDS):
        raise AccountProblem(message, scope="model")


def _plain(text: str) -> str:
    return text[:_MAX_CHARS].lower().replace("_", " ")
