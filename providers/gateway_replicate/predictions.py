"""The provider: creates a prediction and polls it at the address that Replicate gave."""

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

# The shortest deadline that Replicate takes.
_LEAST_DEADLINE_S = 5


@attrs.define
class Predictions:
    """Submits by `POST /v1/models/{model}/predictions`, or `/v1/predictions` for a version."""

    outbound: Outbound
    models: Mapping[str, Model] = attrs.field(kw_only=True)
    """The models on sale, by slug."""
    traits: Traits = attrs.field(factory=Traits, kw_only=True)
    name: str = "replicate"

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse a picture that the model would not take, or would bill by its size."""
        limits = self.models[endpoint.slug].edits
        if limits is not None and request.attachment is not None:
            limits.check(request.attachment)

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Create one prediction, once; Replicate stops it at the end of the attempt.

        The picture of an edit is uploaded before, which is free.
        """
        model = job.endpoint.model
        sent = "" if request.attachment is None else await self._upload(request.attachment)
        order = request_body(self.models[job.endpoint.slug], request, sent)
        asked: dict[str, Any] = {"input": order}
        where = f"/v1/models/{model}/predictions"
        if ":" in model:
            where, asked["version"] = "/v1/predictions", model
        deadline_s = max(int(job.endpoint.timeout_s), _LEAST_DEADLINE_S)
        answer = await self.outbound.request(
            "POST", where, json=asked, headers={"Cancel-After": f"{deadline_s}s"}
        )
        body = as_object(await answer.submit_json())
        check_submit(answer, body)
        urls = job_urls(as_object(body.get("urls")), poll="get", cancel="cancel")
        if not as_text(body.get("id")) or "poll" not in urls:
            raise SubmitUncertain("Replicate took the job and did not say where to ask for it.")
        return Handle(id=body["id"], urls=urls)

    async def _upload(self, picture: Attachment) -> str:
        """Upload a picture as replicate 1.0.7 does; return the address that Replicate reads."""
        # The buyer's own name of the file is not sent.
        file = (f"picture{picture.extension}", picture.data, media_type(picture))
        answer = await self.outbound.request(
            "POST", "/v1/files", files={"content": file}, bills=False
        )
        body = json_object(answer)
        check_submit(answer, body)
        address = as_text(as_object(body.get("urls")).get("get"))
        if not address:
            raise Transient("Replicate took the picture and did not say its address.")
        return address

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:  # noqa: ARG002
        """Get the prediction."""
        answer = await self.outbound.request("GET", handle.urls["poll"])
        prediction = json_object(answer)
        check_poll(answer, prediction)
        status = as_text(prediction.get("status"))
        if not status:
            raise Transient("Replicate's answer names no status.")
        if status == "failed":
            raise prediction_error(prediction)
        if status == "canceled":
            # It was stopped while it ran, and Replicate bills the time until then.
            raise ResultUnusable("The provider stopped before the picture was done.")
        if status == "aborted":
            # It was stopped before it ran, and Replicate bills nothing.
            raise JobFailed("Replicate's prediction was aborted.")
        if status == "succeeded":
            return Result(outputs=(_picture(prediction),))
        return Pending(note=status)

    async def cancel(self, handle: Handle) -> None:
        """Ask Replicate to stop a prediction; Replicate bills the time that it ran."""
        if "cancel" not in handle.urls:
            raise Transient("Replicate gave no address to cancel the prediction at.")
        answer = await self.outbound.request("POST", handle.urls["cancel"], bills=False)
        check_poll(answer, json_object(answer))

    async def health(self) -> None:
        """Ask for the token's account; Replicate has no request for the remaining credit."""
        answer = await self.outbound.request("GET", "/v1/account")
        answer.check()

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def _picture(prediction: dict[str, Any]) -> Link:
    """Return the first picture of an output, which is an address or a list of addresses."""
    output = prediction.get("output")
    first = output[0] if isinstance(output, list) and output else output
    if as_text(first):
        return Link(url=as_text(first), media_type="image/png")
    # Replicate removes outputs an hour after the end.
    if prediction.get("data_removed") is True:
        raise HandleLost("Replicate has removed the picture.")
    raise ContentPolicy("The provider returned no picture for this prompt.")
