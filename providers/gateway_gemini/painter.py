"""The provider: one request returns one picture, without jobs."""

from typing import Any
from urllib.parse import quote

import attrs

from gateway import (
    Answer,
    Endpoint,
    GenerationRequest,
    InvalidInput,
    Job,
    Outbound,
    Output,
    Result,
    SubmitUncertain,
    Traits,
)
from gateway.vendors import as_object, base64_text, json_object, media_type, read_json
from gateway_gemini.answers import Generation, first_picture
from gateway_gemini.refusals import check, no_picture
from gateway_gemini.usage import cost_micros

TIMEOUT_S = 220.0
_PROBE_S = 15.0


@attrs.define
class Painter:
    """Submits to one model by `generateContent`; the gateway itself checks the picture."""

    outbound: Outbound
    model: str = attrs.field(kw_only=True)
    """The model that `health` checks."""
    version: str = attrs.field(default="v1beta", kw_only=True)
    """The API version in URLs."""
    traits: Traits = attrs.field(default=Traits(), kw_only=True)
    name: str = "gemini"
    timeout_s: float = TIMEOUT_S

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse a picture that is larger than Google accepts in a request."""
        limit = endpoint.max_picture_bytes
        if request.attachment is not None and len(request.attachment.data) > limit:
            raise InvalidInput(f"The picture is larger than {limit / 10**6:g} MB, the most here.")

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Request one picture, or an edit of the buyer's.

        Raises `SubmitUncertain` if a picture may have been generated but cannot be obtained.
        """
        answer = await self.outbound.request(
            "POST",
            f"{self._path(job.endpoint.model)}:generateContent",
            json=await _request_body(request, job.endpoint),
            timeout_s=self.timeout_s,
        )
        generation = await _read_generation(answer)
        picture = first_picture(generation)
        if picture is None:
            raise no_picture(generation)
        data = await Answer.decoded(picture.data)
        output = Output(data=data, media_type=picture.media_type or "image/png")
        cost = cost_micros(job.endpoint.model, generation.usageMetadata)
        return Result(outputs=(output,), cost_micros=cost)

    async def health(self) -> None:
        """Get the model's description, which is free and fails for a wrong key or model."""
        answer = await self.outbound.request("GET", self._path(self.model), timeout_s=_PROBE_S)
        check(answer, json_object(answer))

    def _path(self, model: str) -> str:
        return f"/{self.version}/models/{quote(model, safe='')}"

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


async def _read_generation(answer: Answer) -> Generation:
    """Parse a response; raises `SubmitUncertain` for an undocumented shape."""
    if answer.status not in range(200, 300):
        check(answer, as_object(await answer.submit_json()))
    generation = await read_json(answer, Generation)
    if generation is None:
        raise SubmitUncertain("The response reports success, but is not as documented.")
    check(answer, {"error": generation.error})
    return generation


async def _request_body(request: GenerationRequest, endpoint: Endpoint) -> dict[str, Any]:
    """Build the request; only models with several sizes take one."""
    parts: list[dict[str, Any]] = [{"text": request.prompt}]
    if (sent := request.attachment) is not None:
        data = await base64_text(sent)
        parts.append({"inlineData": {"mimeType": media_type(sent), "data": data}})
    picture = {"aspectRatio": request.aspect_ratio}
    if len(endpoint.resolution.values) > 1:
        picture["imageSize"] = request.resolution
    return {
        "contents": [{"role": "user", "parts": parts}],
        "generationConfig": {
            "responseModalities": ["IMAGE"],
            "imageConfig": {name: value for name, value in picture.items() if value is not None},
        },
    }
