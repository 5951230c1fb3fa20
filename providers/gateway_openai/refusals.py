"""What an error of an OpenAI-compatible API means: the buyer's, the operator's, or the moment's."""

from typing import Any

from gateway import AccountProblem, Answer, ContentPolicy

_POLICY = ("moderation_blocked", "content_policy_violation", "content_filter")
_ACCOUNT = (  # told apart from the 429 and 400 they come with: waiting does not help
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "account_deactivated",
    "invalid_api_key",
    "model_not_found",
    "unknown_parameter",
)
_OURS = ("model", "size", "output_format", "response_format", "n")  # the buyer sets none of them
_BAD_REQUEST = 400


def check(answer: Answer, body: Any) -> None:
    """Raise what an answer stands for; nothing for one that should hold a picture."""
    error = body.get("error") if isinstance(body, dict) else None
    if isinstance(error, dict):
        _check_error(answer.status, error)
    answer.check()


def _check_error(status: int, error: dict[str, Any]) -> None:
    marks = {error.get("code"), error.get("type")} - {None} if _is_plain(error) else set()
    if marks.intersection(_POLICY):
        raise ContentPolicy("The provider's filter refused the prompt or its picture.")
    for mark in marks.intersection(_ACCOUNT):
        raise AccountProblem(f"The provider answers {status} {mark}.")
    if status == _BAD_REQUEST and error.get("param") in _OURS:
        raise AccountProblem(f"The model does not take our {error['param']}: change the settings.")


def _is_plain(error: dict[str, Any]) -> bool:
    return all(isinstance(error.get(name), str | int | None) for name in ("code", "type"))
