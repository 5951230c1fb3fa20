"""What fal's errors mean: for the buyer, the operator or the job, or that a retry may help.

A model's own errors are a list under `detail`, each with a `type`; those of the platform have an
`error_type` (fal.ai/docs: "Model Errors", "Request Error Types").
"""

from typing import Any

from gateway import AccountProblem, Answer, ContentPolicy, HandleLost, InvalidInput, JobFailed
from gateway.vendors import as_object, as_text, blamed_fields

_POLICY = {"content_policy_violation", "no_media_generated"}
_FAILED = {
    "internal_server_error",
    "generation_timeout",
    "downstream_service_error",
    "downstream_service_unavailable",
}
# Fields that the adapter fills in, not the buyer.
_ADAPTER_FIELDS = {"aspect_ratio", "image_size", "resolution", "output_format"}
_NOT_FOUND = 404
_NOT_THE_JOBS = (401, 403, _NOT_FOUND, 429)


def check_submit(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that a submit's answer stands for; do nothing for a job that was begun."""
    _check_details(body)
    answer.check()


def check_status(answer: Answer) -> None:
    """Raise the error that a poll's answer stands for; do nothing for a success."""
    if answer.status == _NOT_FOUND:
        raise HandleLost("fal does not know its own job.")
    answer.check_poll()


def check_outcome(answer: Answer, body: dict[str, Any], status: dict[str, Any]) -> None:
    """Raise the error of a job that `status` calls completed; do nothing for a result.

    An error that has one of fal's marks is the end of the job, and polling again would not change
    it.
    """
    if answer.status in range(200, 300):
        return
    _check_details(body)
    kind = as_text(body.get("error_type")) or as_text(status.get("error_type"))
    kind = kind or answer.headers.get("x-fal-error-type", "")
    if kind == "bad_request":
        raise InvalidInput("The provider cannot work with this input.")
    is_the_jobs = bool(kind or status.get("error")) or "x-fal-retryable" in answer.headers
    if is_the_jobs and answer.status not in _NOT_THE_JOBS:
        raise JobFailed(f"fal's job ended with status {answer.status}.")
    check_status(answer)


def _check_details(body: dict[str, Any]) -> None:
    details = body.get("detail")
    if not isinstance(details, list):
        return
    kinds = {as_text(as_object(entry).get("type")) for entry in details} - {""}
    if kinds & _POLICY:
        raise ContentPolicy("The provider's filter refused the prompt or its picture.")
    if kinds & _FAILED:
        raise JobFailed("fal's model failed.")
    for name in sorted(_ADAPTER_FIELDS & blamed_fields(body)):
        raise AccountProblem(f"fal's model does not take our {name}: change the settings.")
    if kinds:
        raise InvalidInput("The provider cannot work with this input.")
