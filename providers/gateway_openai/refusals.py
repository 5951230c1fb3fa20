"""Maps the errors of an OpenAI-compatible API to the gateway's."""

from typing import Any, Literal

from gateway import AccountProblem, Answer, ContentPolicy
from gateway.vendors import as_object

_POLICY = ("moderation_blocked", "content_policy_violation", "content_filter")
# These come with a 429 or a 400, but neither waiting nor another input helps.
_ACCOUNT = (
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "project_spend_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_limit_user_error",
    "billing_not_active",
    "account_deactivated",
    "invalid_api_key",
    "model_not_found",
    "unknown_parameter",
)
# Those that concern only this model.
_MODEL = ("model_not_found", "unknown_parameter")
# Fields set by the adapter, not the buyer.
_ADAPTER_FIELDS = (
    "model",
    "size",
    "quality",
    "output_format",
    "response_format",
    "n",
    "moderation",
    "background",
)
# Those that depend on the buyer's choices.
_CHOSEN = ("size", "output_format")
# developers.openai.com/api/docs/guides/error-codes: the model is overloaded. At Ollama, the queue
# is full.
_BUSY = (503,)
_BAD_REQUEST = 400
_FORBIDDEN = 403
# A relay such as OpenRouter refuses content with a 403, and has the reasons in `metadata`.
_FLAGS = ("reasons", "flagged_input")


def check(answer: Answer, body: Any) -> None:
    """Raise the error that a response means, if any."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        _check_error(answer.status, error)
    answer.check(not_begun=_BUSY)


def _check_error(status: int, error: dict[str, Any]) -> None:
    codes = {error.get("code"), error.get("type")} - {None} if _is_plain(error) else set()
    is_flagged = status == _FORBIDDEN and any(map(as_object(error.get("metadata")).get, _FLAGS))
    if is_flagged or codes.intersection(_POLICY):
        raise ContentPolicy("The provider's filter refused the prompt or its picture.")
    for code in codes.intersection(_ACCOUNT):
        scope: Literal["vendor", "model"] = "model" if code in _MODEL else "vendor"
        raise AccountProblem(f"The provider answers {status} {code}.", scope=scope)
    if status == _BAD_REQUEST and error.get("param") in _ADAPTER_FIELDS:
        message = f"The model does not take our {error['param']}: change the settings."
        raise AccountProblem(message, scope="choice" if error["param"] in _CHOSEN else "model")


def _is_plain(error: dict[str, Any]) -> bool:
    return all(isinstance(error.get(name), str | int | None) for name in ("code", "type"))
