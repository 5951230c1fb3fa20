"""The provider: submits a job to fal's queue and polls it at the URLs from fal."""

from collections.abc import Mapping
from typing import Any

import attrs

from gateway import (
    ContentPolicy,
    Endpoint,
    GenerationRequest,
    Handle,
    Job,
    Link,
    Outbound,
    Pending,
    Result,
    SubmitUncertain,
    Traits,
    Transient,
)
from gateway.vendors import Model, as_number, as_object, as_text, job_urls, json_object
from gateway_fal.models import request_body
from gateway_fal.refusals import check_outcome, check_status, check_submit

# fal has no state for failures: the response of a completed job may be an error.
_COMPLETED = "COMPLETED"
_BAD_REQUEST = 400
_NOT_FOUND = 404
# Lists with a boolean for each picture; the lcm and lora models use the second name.
_FLAGS = ("has_nsfw_concepts", "nsfw_content_detected")
# Timeout of one request; the last poll makes two.
_POLL_S = 25.0


@attrs.define
class Queue:
    """Submits by `POST {base}/{model}`; a poll gets the status and, finally, the response."""

    outbound: Outbound
    platform: Outbound = attrs.field(kw_only=True)
    models: Mapping[str, Model] = attrs.field(kw_only=True)
    """By slug."""
    traits: Traits = attrs.field(factory=Traits, kw_only=True)
    name: str = "fal"

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse a picture that the model would not accept, or would bill by its size."""
        limits = self.models[endpoint.slug].edits
        if limits is not None and request.attachment is not None:
            limits.check(request.attachment)

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Submit one job, with fal's own ten retries disabled."""
        headers = {
            "x-fal-no-retry": "1",
            # The maximum wait for the start: a job that has not started by then never does. A job
            # that has started is generated and billed; `cancel` asks fal to stop it at the
            # attempt's end.
            "x-fal-request-timeout": str(int(job.endpoint.timeout_s)),
        }
        asked = await request_body(self.models[job.endpoint.slug], request)
        answer = await self.outbound.request(
            "POST", f"/{job.endpoint.model}", json=asked, headers=headers
        )
        body = as_object(await answer.submit_json())
        check_submit(answer, body)
        urls = job_urls(body, status="status_url", response="response_url", cancel="cancel_url")
        if not as_text(body.get("request_id")) or not urls.keys() >= {"status", "response"}:
            raise SubmitUncertain("fal accepted the job without returning its URL.")
        return Handle(id=body["request_id"], urls=urls)

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get the status of a job, and its response if the job has ended."""
        answer = await self.outbound.request("GET", handle.urls["status"], timeout_s=_POLL_S)
        check_status(answer)
        status = json_object(answer)
        if status.get("status") != _COMPLETED:
            return _pending(status)
        answer = await self.outbound.request("GET", handle.urls["response"], timeout_s=_POLL_S)
        body = json_object(answer)
        check_outcome(answer, body, status)
        return Result(outputs=(_picture(body),))

    async def cancel(self, handle: Handle) -> None:
        """Ask fal to stop a job; fal may still finish and bill a running job."""
        if "cancel" not in handle.urls:
            raise Transient("fal gave no address to cancel the job at.")
        answer = await self.outbound.request("PUT", handle.urls["cancel"], bills=False)
        is_over = json_object(answer).get("status") == "ALREADY_COMPLETED"
        if not (answer.status == _BAD_REQUEST and is_over):
            check_status(answer)

    async def health(self) -> None:
        """Get a model's price, which needs a valid key; the balance needs an admin key."""
        model = next(iter(self.models.values()))
        answer = await self.platform.request("GET", f"/v1/models/pricing?endpoint_id={model.id}")
        # A 404 means that fal accepted the key and has retired this model; others are on sale.
        if answer.status != _NOT_FOUND:
            answer.check()

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()
        await self.platform.close()


def _pending(status: dict[str, Any]) -> Pending:
    """Describe an unfinished job; an unknown state does not end it."""
    state = as_text(status.get("status"))
    if not state:
        raise Transient("fal's response has no status.")
    place = as_number(status.get("queue_position"))
    if state == "IN_QUEUE" and place is not None:
        return Pending(note=f"{place:.0f} before it in fal's queue")
    return Pending(note=state)


def _picture(body: dict[str, Any]) -> Link:
    """Raise `ContentPolicy` for a flagged or missing picture."""
    found = body.get("images")
    images = found if isinstance(found, list) else [body.get("image")]
    first = as_object(images[0]) if images else {}
    if any(isinstance(body.get(name), list) and True in body[name] for name in _FLAGS):
        raise ContentPolicy("The provider's filter blacked the picture out.")
    if not as_text(first.get("url")):
        raise ContentPolicy("The provider returned no picture for this prompt.")
    return Link(url=first["url"], media_type=as_text(first.get("content_type")) or "image/png")
