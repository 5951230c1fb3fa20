"""The provider: starts a task and polls it at the URL from the API."""

from collections.abc import Mapping
from typing import Any

import attrs

from gateway import (
    AccountProblem,
    Answer,
    ContentPolicy,
    Endpoint,
    GenerationRequest,
    Handle,
    HandleLost,
    InvalidInput,
    Job,
    JobFailed,
    Link,
    Outbound,
    Pending,
    RateLimited,
    Result,
    SubmitUncertain,
    Traits,
    Transient,
)
from gateway.vendors import (
    Model,
    as_number,
    as_object,
    as_text,
    blamed_fields,
    job_urls,
    json_object,
)
from gateway_bfl.models import request_body

_MODERATED = ("Request Moderated", "Content Moderated")
_FAILED = ("Error", "Failed")
_LOST = "Task not found"
_NOT_FOUND = 404
_TOO_MANY = 429
# help.bfl.ai/articles/2916279050: a high load; a 500 is an unexpected error, so it may follow work.
_BUSY = (503,)
# Fields set by the adapter from the buyer's choices.
_ADAPTER_FIELDS = {"width", "height", "output_format", "aspect_ratio", "resolution"}
# One credit, which is a cent, in 10⁻⁶ US dollars.
_CREDIT_MICROS = 10_000


@attrs.define
class Tasks:
    """Submits by `POST {base}/v1/{model}`; a task cannot be cancelled."""

    outbound: Outbound
    models: Mapping[str, Model] = attrs.field(kw_only=True)
    """By slug."""
    traits: Traits = attrs.field(factory=Traits, kw_only=True)
    name: str = "bfl"

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse a picture that the model would not accept, or would bill by its size."""
        limits = self.models[endpoint.slug].edits
        if limits is not None and request.attachment is not None:
            limits.check(request.attachment)

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Start one task: for a picture, or for an edit of the buyer's."""
        asked = await request_body(self.models[job.endpoint.slug], request)
        answer = await self.outbound.request("POST", f"/v1/{job.endpoint.model}", json=asked)
        body = as_object(await answer.submit_json())
        _check(answer, body)
        urls = job_urls(body, poll="polling_url")
        if not as_text(body.get("id")) or "poll" not in urls:
            raise SubmitUncertain("The provider accepted the job without returning its URL.")
        # Not every poll's response repeats the cost.
        cost = as_number(body.get("cost"))
        facts = {} if cost is None else {"cost": str(cost)}
        return Handle(id=body["id"], urls=urls, facts=facts)

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get the task; its picture can be downloaded for ten minutes."""
        answer = await self.outbound.request("GET", handle.urls["poll"])
        task = json_object(answer)
        status = as_text(task.get("status"))
        if status == _LOST or answer.status == _NOT_FOUND:
            raise HandleLost("The provider does not know its own task.")
        if answer.status != _TOO_MANY:
            answer.check_poll()
        _check(answer, task)
        if not status:
            raise Transient("The provider's response has no status.")
        if status in _MODERATED:
            raise ContentPolicy("The provider's filter refused the prompt or its picture.")
        if status in _FAILED:
            raise _task_error(task)
        if status == "Ready":
            return Result(outputs=(_picture(task),), cost_micros=_cost_micros(task, handle))
        return Pending(progress=as_number(task.get("progress")), note=status)

    async def health(self) -> None:
        """Check that the account has credits left."""
        answer = await self.outbound.request("GET", "/v1/credits")
        body = json_object(answer)
        _check(answer, body)
        left = as_number(body.get("credits"))
        if left is not None and left <= 0:
            raise AccountProblem("Black Forest Labs has no credits left.")

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def _check(answer: Answer, body: dict[str, Any]) -> None:
    """Raise the error of a status; the body may have the time to wait."""
    for name in sorted(_ADAPTER_FIELDS & blamed_fields(body)):
        raise AccountProblem(
            f"The model does not take our {name}: change the settings.", scope="choice"
        )
    wait_s = as_number(body.get("retry_after"))
    if answer.status == _TOO_MANY and wait_s is not None and answer.retry_after_s is None:
        raise RateLimited("The provider asks to wait.", retry_after_s=wait_s)
    answer.check(not_begun=_BUSY)


def _task_error(task: dict[str, Any]) -> ContentPolicy | InvalidInput | JobFailed:
    """Map a task's error, whose reason is in `error` or in `details`."""
    reason = as_text(task.get("error")) or as_text(as_object(task.get("details")).get("error"))
    if reason == "content_policy_violation":
        return ContentPolicy("The provider's filter refused the prompt or its picture.")
    if reason == "validation_error":
        return InvalidInput("The provider cannot work with this input.")
    return JobFailed("Black Forest Labs' task failed.")


def _picture(task: dict[str, Any]) -> Link:
    url = as_text(as_object(task.get("result")).get("sample"))
    if not url:
        raise ContentPolicy("The provider returned no picture for this prompt.")
    return Link(url=url, media_type="image/png")


def _cost_micros(task: dict[str, Any], handle: Handle) -> int | None:
    """Return the task's cost, else that of the submit."""
    credits_spent = as_number(task.get("cost"))
    if credits_spent is None and "cost" in handle.facts:
        credits_spent = float(handle.facts["cost"])
    return None if credits_spent is None else round(credits_spent * _CREDIT_MICROS)
