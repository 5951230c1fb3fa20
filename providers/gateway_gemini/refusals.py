"""Maps the Gemini API's errors to the gateway's."""

import re
from collections.abc import Iterator
from typing import Any

from gateway import (
    AccountProblem,
    Answer,
    ContentPolicy,
    InvalidInput,
    NotAccepted,
    RateLimited,
    ResultUnusable,
)
from gateway.errors import ProviderError
from gateway.vendors import as_object, as_text
from gateway_gemini.answers import Generation

_ACCOUNT = ("FAILED_PRECONDITION", "PERMISSION_DENIED", "UNAUTHENTICATED", "NOT_FOUND")
# Fields set by the adapter, not the buyer.
_ADAPTER_FIELDS = ("generation_config", "generationconfig", "model")
# Messages without details that blame such a field, or the key, begin with one of these.
_CHOICE_MESSAGES = ("aspect ratio", "image size")
_KEY_MESSAGE = "api key"
# According to ai.google.dev/gemini-api/docs/billing, a request that fails with 500 is not charged.
# A proxy's 500 does not have the name INTERNAL.
_NOT_CHARGED = (500, "INTERNAL")
# ai.google.dev/gemini-api/docs/troubleshooting: temporarily overloaded or down.
_UNAVAILABLE = 503
# A 503 that comes after minutes of work (googleapis/python-genai#1808).
_BROKEN_OFF = "deadline expired"
_SPENT = re.compile(r"prepayment|credits are depleted|spending cap|limit: 0(?![\d.])")
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
# google-genai 3.4.0 documents PUP_LIMITED_DISABLED as "account limited or disabled".
_LIMITED = "PUP_"
# Finish reasons that neither a filter nor the account causes.
_UNFINISHED = ("MAX_TOKENS", "MALFORMED_RESPONSE", "OTHER", "IMAGE_OTHER")
_NAME = re.compile(r"[A-Z][A-Z_]{1,39}")


def check(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that a response means, if any."""
    error = as_object(body.get("error"))
    status = as_text(error.get("status"))
    if status in _ACCOUNT:
        text = f"The provider answers {answer.status} {status}."
        raise AccountProblem(text, scope="model" if status == "NOT_FOUND" else "vendor")
    if status == "INVALID_ARGUMENT":
        _check_argument(error)
    if status == "RESOURCE_EXHAUSTED":
        _check_quota(error)
    if (answer.status, status) == _NOT_CHARGED:
        raise NotAccepted("The provider failed, and charges nothing for it.")
    if answer.status == _UNAVAILABLE:
        _check_overload(answer, error)
    answer.check()


def no_picture(generation: Generation) -> ProviderError:
    """Return the error of a success without a picture, with the API's reason."""
    feedback = generation.promptFeedback
    blocked = (feedback and feedback.blockReason) or ""
    ended = [candidate.finishReason or "" for candidate in generation.candidates or ()]
    reason = next(filter(_NAME.fullmatch, (blocked, *ended)), "it gave no reason")
    if reason.startswith(_LIMITED):
        return AccountProblem(f"The provider limits the account: {reason}.")
    if reason in _UNFINISHED and reason != blocked:
        # Google bills the tokens of such a response, so it is not requested again.
        return ResultUnusable(f"The provider ended without a picture: {reason}.")
    return ContentPolicy(f"The provider returned no picture: {reason}.")


def _entries(value: object) -> list[dict[str, Any]]:
    return [as_object(entry) for entry in value] if isinstance(value, list) else []


def _check_argument(error: dict[str, Any]) -> None:
    """Raise the error: a wrong key or setting, or bad input."""
    for detail in _details(error, "ErrorInfo"):
        if as_text(detail.get("reason")).startswith("API_KEY_"):
            raise AccountProblem("The provider does not take the API key.")
    for violation in _violations(error, "BadRequest", "fieldViolations"):
        if as_text(violation.get("field")).lower().startswith(_ADAPTER_FIELDS):
            raise _refused_field(as_text(violation.get("field")).lower())
    message = as_text(error.get("message")).lower()
    if message.startswith(_KEY_MESSAGE):
        raise AccountProblem("The provider does not take the API key.")
    if message.startswith(_CHOICE_MESSAGES):
        raise _refused_field("generation_config.image_config")
    raise InvalidInput("The provider cannot work with this input.")


def _refused_field(field: str) -> AccountProblem:
    """Map a refused field: ratio and size are the buyer's choices."""
    if field == "model" or "modalities" in field:
        return AccountProblem("The model does not take our request.", scope="model")
    text = "The model does not take our ratio or size: change the settings."
    return AccountProblem(text, scope="choice")


def _check_quota(error: dict[str, Any]) -> None:
    """Raise `RateLimited` with the API's retry delay, if waiting helps.

    Raises `AccountProblem` for an exhausted daily quota or credit. The API often wrongly suggests
    to wait a few seconds then.
    """
    for violation in _violations(error, "QuotaFailure", "violations"):
        is_daily = "PerDay" in as_text(violation.get("quotaId"))
        if is_daily or as_text(violation.get("quotaValue")) == "0":
            raise AccountProblem("The provider's quota of the day is used up, or is zero.")
    if _SPENT.search(as_text(error.get("message")).lower()):
        raise AccountProblem("The provider's credit or quota is used up.")
    if (wait_s := _asked_delay(error)) is not None:
        raise RateLimited("The provider asks to wait.", retry_after_s=wait_s)


def _check_overload(answer: Answer, error: dict[str, Any]) -> None:
    """Raise `NotAccepted` for an overload, unless the model had begun."""
    if _BROKEN_OFF in as_text(error.get("message")).lower():
        return
    if (wait_s := _asked_delay(error)) is not None:
        raise NotAccepted("The provider is overloaded.", retry_after_s=wait_s)
    answer.check(not_begun=(_UNAVAILABLE,))


def _asked_delay(error: dict[str, Any]) -> float | None:
    for detail in _details(error, "RetryInfo"):
        wait = _SECONDS.fullmatch(as_text(detail.get("retryDelay")))
        if wait is not None:
            return float(wait[1])
    return None


def _details(error: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    for detail in _entries(error.get("details")):
        if as_text(detail.get("@type")).endswith(f"google.rpc.{kind}"):
            yield detail


def _violations(error: dict[str, Any], kind: str, name: str) -> Iterator[dict[str, Any]]:
    for detail in _details(error, kind):
        yield from _entries(detail.get(name))
