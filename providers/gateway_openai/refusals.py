"""What an OpenAI-compatible API's errors mean: for buyer or operator, or to retry later."""

from typing import Any

from gateway import AccountProblem, Answer, ContentPolicy

_POLICY = ("moderation_blocked", "content_policy_violation", "content_filter")
# These come with a 429 or a 400, but neither waiting nor another input helps.
_ACCOUNT = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "account_deactivated",
    "invalid_api_key",
    "model_not_found",
    "unknown_parameter",
)
# Fields that the adapter fills in, not the buyer.
_ADAPTER_FIELDS = ("model", "size", "output_format", "response_format", "n")
_BAD_REQUEST = 400


def check(answer: Answer, body: Any) -> None:
    """Raise the error that an answer stands for; do nothing for one that should hold a picture."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        _check_error(answer.status, error)
    answer.check()


def _check_error(status: int, error: dict[str, Any]) -> None:
    codes = {error.get("code"), error.get("type")} - {None} if _is_plain(error) else set()
    if codes.intersection(_POLICY):
        raise ContentPolicy("The provider's filter refused the prompt or its picture.")
    for code in codes.intersection(_ACCOUNT):
        raise AccountProblem(f"The provider answers {status} {code}.")
    if status == _BAD_REQUEST and error.get("param") in _ADAPTER_FIELDS:
        raise AccountProblem(f"The model does not take our {error['param']}: change the settings.")


def _is_plain(error: dict[str, Any]) -> bool:
    return all(isinstance(error.get(name), str | int | None) for name in ("code", "type"))
