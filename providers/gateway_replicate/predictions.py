"""The provider: creates a prediction and polls it at the URL from Replicate."""

from collections.abc import Mapping
from typing import Any

import attrs

from gateway import (
    Attachment,
    ContentPolicy,
    Endpoint,
    GenerationRequest,
    Handle,
    HandleLost,
    Job,
    JobFailed,
    Link,
    Outbound,
    Pending,
    Result,
    ResultUnusable,
    SubmitUncertain,
    Traits,
    Transient,
)
from gateway.vendors import Model, as_object, as_text, job_urls, json_object, media_type
from gateway_replicate.models import request_body
from gateway_replicate.refusals import check_poll, check_submit, prediction_error

# The shortest deadline that Replicate accepts.
_MIN_DEADLINE_S = 5


@attrs.define
class Predictions:
    """Submits by `POST /v1/models/{model}/predictions`, or `/v1/predictions` for a version."""

    outbound: Outbound
    models: Mapping[str, Model] = attrs.field(kw_only=True)
    """By slug."""
    traits: Traits = attrs.field(factory=Traits, kw_only=True)
    name: str = "replicate"

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse a picture that the model would not accept, or would bill by its size."""
        limits = self.models[endpoint.slug].edits
        if limits is not None and request.attachment is not None:
            limits.check(request.attachment)

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Create one prediction; Replicate stops it at the end of the attempt.

        The picture of an edit is uploaded first, which is free.
        """
        model = job.endpoint.model
        sent = "" if request.attachment is None else await self._upload(request.attachment)
        order = request_body(self.models[job.endpoint.slug], request, sent)
        asked: dict[str, Any] = {"input": order}
        where = f"/v1/models/{model}/predictions"
        if ":" in model:
            where, asked["version"] = "/v1/predictions", model
        deadline_s = max(int(job.endpoint.timeout_s), _MIN_DEADLINE_S)
        answer = await self.outbound.request(
            "POST", where, json=asked, headers={"Cancel-After": f"{deadline_s}s"}
        )
        body = as_object(await answer.submit_json())
        check_submit(answer, body)
        urls = job_urls(as_object(body.get("urls")), poll="get", cancel="cancel")
        if not as_text(body.get("id")) or "poll" not in urls:
            raise SubmitUncertain("Replicate accepted the job without returning its URL.")
        return Handle(id=body["id"], urls=urls)

    async def _upload(self, picture: Attachment) -> str:
        """Upload as replicate 1.0.7 does; return the URL."""
        # The buyer's file name is not sent.
        file = (f"picture{picture.extension}", picture.data, media_type(picture))
        answer = await self.outbound.request(
            "POST", "/v1/files", files={"content": file}, bills=False
        )
        body = json_object(answer)
        check_submit(answer, body)
        address = as_text(as_object(body.get("urls")).get("get"))
        if not address:
            raise Transient("Replicate accepted the picture without returning its URL.")
        return address

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get the prediction."""
        answer = await self.outbound.request("GET", handle.urls["poll"])
        prediction = json_object(answer)
        check_poll(answer, prediction)
        status = as_text(prediction.get("status"))
        if not status:
            raise Transient("Replicate's response has no status.")
        if status == "failed":
            raise prediction_error(prediction)
        if status == "canceled":
            # Stopped while running; Replicate bills the time until then.
            raise ResultUnusable("The provider stopped before the picture was done.")
        if status == "aborted":
            # Stopped before running; Replicate bills nothing.
            raise JobFailed("Replicate's prediction was aborted.")
        if status == "succeeded":
            return Result(outputs=(_picture(prediction),))
        return Pending(note=status)

    async def cancel(self, handle: Handle) -> None:
        """Ask Replicate to stop a prediction; Replicate bills its running time."""
        if "cancel" not in handle.urls:
            raise Transient("Replicate gave no address to cancel the prediction at.")
        answer = await self.outbound.request("POST", handle.urls["cancel"], bills=False)
        check_poll(answer, json_object(answer))

    async def health(self) -> None:
        """Get the token's account; Replicate has no request for the remaining credit."""
        answer = await self.outbound.request("GET", "/v1/account")
        answer.check()

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def _picture(prediction: dict[str, Any]) -> Link:
    """Return the first picture: an output is a URL or a list of URLs."""
    output = prediction.get("output")
    first = output[0] if isinstance(output, list) and output else output
    if as_text(first):
        return Link(url=as_text(first), media_type="image/png")
    # Replicate removes outputs after an hour.
    if prediction.get("data_removed") is True:
        raise HandleLost("Replicate has removed the picture.")
    raise ContentPolicy("The provider returned no picture for this prompt.")
