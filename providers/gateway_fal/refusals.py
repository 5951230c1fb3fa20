"""Maps fal's errors to the gateway's.

A model's own errors are a list under `detail`, each with a `type`; those of the platform have an
`error_type` (fal.ai/docs: "Model Errors", "Request Error Types").
"""

from typing import Any

from gateway import (
    AccountProblem,
    Answer,
    ContentPolicy,
    HandleLost,
    InvalidInput,
    JobFailed,
    Transient,
)
from gateway.vendors import as_object, as_text, blamed_fields

_POLICY = {"content_policy_violation", "no_media_generated"}
_FAILED = {
    "internal_server_error",
    "generation_timeout",
    "downstream_service_error",
    "downstream_service_unavailable",
}
# Fields set by the adapter from the buyer's choices.
_ADAPTER_FIELDS = {"aspect_ratio", "image_size", "resolution", "output_format"}
# docs.fal.ai/model-apis/model-endpoints/reliability: unavailable, and not billed.
_BUSY = (503,)
# docs.fal.ai/documentation/model-apis/request-errors: these come before a runner has begun. Others,
# such as `runner_disconnected`, may come during its work.
_NOT_BEGUN = {
    "startup_timeout",
    "runner_scheduling_failure",
    "runner_connection_refused",
    "runner_connection_timeout",
}
_NOT_FOUND = 404
_INPUT = (400, 413, 415, 422)
_BROKEN = 500
# fal's queue sends a 400 with this text if the response is requested before the job's end.
_TOO_EARLY = "in progress"
# Not every model keeps to the documented form (docs.fal.ai/errors): some send a sentence.
_POLICY_WORDS = ("policy", "safety", "nsfw", "moderat", "flagged", "sensitive", "prohibited")
# fal-client 1.0.3 treats an error with a request id as one of fal's own server, not a proxy's.
_MARKS = {"x-fal-request-id", "x-fal-retryable"}
_NOT_THE_JOBS = (401, 403, _NOT_FOUND, 429)


def check_submit(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error that a submit's response means, if any."""
    _check_details(body)
    kind = as_text(body.get("error_type")) or answer.headers.get("x-fal-error-type", "")
    if kind in _NOT_BEGUN:
        answer.check(not_begun=(answer.status,))
    answer.check(not_begun=() if kind else _BUSY)


def check_status(answer: Answer) -> None:
    """Raise the error that a poll's response means, if any."""
    if answer.status == _NOT_FOUND:
        raise HandleLost("fal does not know its own job.")
    answer.check_poll()


def check_outcome(answer: Answer, body: dict[str, Any], status: dict[str, Any]) -> None:
    """Raise the error of a job that `status` calls completed; return for a result.

    An error from the model is final: polling again would not change it.
    """
    if answer.status in range(200, 300):
        return
    _check_details(body)
    kind = as_text(body.get("error_type")) or as_text(status.get("error_type"))
    kind = kind or answer.headers.get("x-fal-error-type", "")
    if kind == "bad_request":
        raise InvalidInput("The provider cannot work with this input.")
    if not kind and answer.status in _INPUT and _is_from_the_model(answer, body):
        raise _refused_input(body)
    is_the_models = bool(kind or status.get("error")) or _is_from_the_model(answer, body)
    if is_the_models and answer.status not in _NOT_THE_JOBS:
        raise JobFailed(f"fal's job ended with status {answer.status}.")
    check_status(answer)


def _refused_input(body: dict[str, Any]) -> ContentPolicy | InvalidInput | Transient:
    """Map the error of a model that explains its refusal in a sentence."""
    detail = as_text(body.get("detail")).lower()
    if any(word in detail for word in _POLICY_WORDS):
        return ContentPolicy("The provider's filter refused the prompt or its picture.")
    if _TOO_EARLY in detail:
        return Transient("fal says that the job is still in progress.")
    return InvalidInput("The provider cannot work with this input.")


def _is_from_the_model(answer: Answer, body: dict[str, Any]) -> bool:
    """Whether an error is the model's, not the queue's or a proxy's."""
    is_reported = bool(body) and answer.status in (*_INPUT, _BROKEN)
    return is_reported or not _MARKS.isdisjoint(answer.headers)


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
        raise AccountProblem(
            f"fal's model does not take our {name}: change the settings.", scope="choice"
        )
    if kinds:
        raise InvalidInput("The provider cannot work with this input.")
