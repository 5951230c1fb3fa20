"""What an error of the Gemini API means: the buyer's, the operator's, or the moment's."""

import re
from collections.abc import Iterator
from typing import Any

from gateway import AccountProblem, Answer, InvalidInput, NotAccepted, RateLimited
from gateway.vendors import as_object, as_text

_ACCOUNT = ("FAILED_PRECONDITION", "PERMISSION_DENIED", "UNAUTHENTICATED", "NOT_FOUND")
_OURS = ("generation_config", "generationconfig", "model")  # the buyer sets none of them
_OUR_WORDS = ("aspect ratio", "image size", "api key")  # how messages without details begin
# ai.google.dev/gemini-api/docs/billing: a request that fails with 500 is not charged. It says
# nothing about 503, and a proxy's 500 has no such name in it.
_NOT_CHARGED = (500, "INTERNAL")
_SPENT = re.compile(r"prepayment|credits are depleted|spending cap|limit: 0(?![\d.])")
_SECONDS = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")
_NAME = re.compile(r"[A-Z][A-Z_]{1,39}")


def check(answer: Answer, body: dict[str, Any]) -> None:
    """Raise what an answer stands for; nothing for one that should hold a picture."""
    error = as_object(body.get("error"))
    status = as_text(error.get("status"))
    if status in _ACCOUNT:
        raise AccountProblem(f"The provider answers {answer.status} {status}.")
    if status == "INVALID_ARGUMENT":
        _check_argument(error)
    if status == "RESOURCE_EXHAUSTED":
        _check_quota(error)
    if (answer.status, status) == _NOT_CHARGED:
        raise NotAccepted("The provider failed, and charges nothing for it.")
    answer.check()


def refusal(body: dict[str, Any]) -> str:
    """Return the API's name for why an answer holds no picture, such as IMAGE_SAFETY."""
    blocked = as_text(as_object(body.get("promptFeedback")).get("blockReason"))
    ended = [
        as_text(candidate.get("finishReason")) for candidate in entries(body.get("candidates"))
    ]
    return next(filter(_NAME.fullmatch, (blocked, *ended)), "it gave no reason")


def entries(value: object) -> list[dict[str, Any]]:
    """Return a list's objects; none for anything else."""
    return [as_object(entry) for entry in value] if isinstance(value, list) else []


def _check_argument(error: dict[str, Any]) -> None:
    """Raise `AccountProblem` for a wrong key, or for what the settings ask the model for."""
    for detail in _details(error, "ErrorInfo"):
        if as_text(detail.get("reason")).startswith("API_KEY_"):
            raise AccountProblem("The provider does not take the API key.")
    for violation in _violations(error, "BadRequest", "fieldViolations"):
        if as_text(violation.get("field")).lower().startswith(_OURS):
            raise AccountProblem("The model does not take our ratio or size: change the settings.")
    if as_text(error.get("message")).lower().startswith(_OUR_WORDS):
        raise AccountProblem("The provider does not take the API key, our ratio or our size.")
    raise InvalidInput("The provider cannot work with this input.")


def _check_quota(error: dict[str, Any]) -> None:
    """Raise `RateLimited` with the wait that the API names; what a wait does not cure is no pause.

    With a quota of a day, the wait it names is often a few seconds: it is wrong.
    """
    for violation in _violations(error, "QuotaFailure", "violations"):
        is_daily = "PerDay" in as_text(violation.get("quotaId"))
        if is_daily or as_text(violation.get("quotaValue")) == "0":
            raise AccountProblem("The provider's quota of the day is used up, or is zero.")
    if _SPENT.search(as_text(error.get("message")).lower()):
        raise AccountProblem("The provider's credit or quota is used up.")
    for detail in _details(error, "RetryInfo"):
        wait = _SECONDS.fullmatch(as_text(detail.get("retryDelay")))
        if wait is not None:
            raise RateLimited("The provider asks to wait.", retry_after_s=float(wait[1]))


def _details(error: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """Yield the details of one of google.rpc's types."""
    for detail in entries(error.get("details")):
        if as_text(detail.get("@type")).endswith(f"google.rpc.{kind}"):
            yield detail


def _violations(error: dict[str, Any], kind: str, name: str) -> Iterator[dict[str, Any]]:
    for detail in _details(error, kind):
        yield from entries(detail.get(name))
