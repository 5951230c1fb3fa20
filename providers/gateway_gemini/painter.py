"""The provider: one request returns one picture. The API has no jobs, so there is no `poll`."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import attrs

from gateway import (
    Answer,
    ContentPolicy,
    Endpoint,
    GenerationRequest,
    Job,
    Outbound,
    Output,
    Result,
    Traits,
)
from gateway.vendors import as_object, as_text, json_object
from gateway_gemini.refusals import check, entries, refusal

# The time-out of one request.
TIMEOUT_S = 220.0
_PROBE_S = 15.0


@attrs.define
class Painter:
    """Submits to one model by `generateContent`; the gateway itself checks the picture."""

    outbound: Outbound
    model: str = attrs.field(kw_only=True)
    """The model that `health` asks about."""
    traits: Traits = attrs.field(default=Traits(), kw_only=True)
    name: str = "gemini"
    timeout_s: float = TIMEOUT_S

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Ask for one picture.

        Raises `SubmitUncertain` if a picture was made, or may have been, and cannot be reached.
        """
        answer = await self.outbound.request(
            "POST",
            f"{_path(job.endpoint.model)}:generateContent",
            json=_request_body(request, job.endpoint),
            timeout_s=self.timeout_s,
        )
        body = as_object(await answer.submit_json())
        check(answer, body)
        for picture in _pictures(body):
            data = await Answer.decoded(as_text(picture["data"]))
            media_type = as_text(picture.get("mimeType")) or "image/png"
            return Result(outputs=(Output(data=data, media_type=media_type),))
        raise ContentPolicy(f"The provider returned no picture: {refusal(body)}.")

    async def health(self) -> None:
        """Ask for the model's description, which is free and fails for a wrong key or model."""
        answer = await self.outbound.request("GET", _path(self.model), timeout_s=_PROBE_S)
        check(answer, json_object(answer))

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def _path(model: str) -> str:
    return f"/v1beta/models/{quote(model, safe='')}"


def _request_body(request: GenerationRequest, endpoint: Endpoint) -> dict[str, Any]:
    """Return the request; it names a size only for a model that has several."""
    picture = {"aspectRatio": request.aspect_ratio}
    if len(endpoint.resolution.values) > 1:
        picture["imageSize"] = request.resolution
    return {
        "contents": [{"role": "user", "parts": [{"text": request.prompt}]}],
        "generationConfig": {
            "responseModalities": ["IMAGE"],
            "imageConfig": {name: value for name, value in picture.items() if value is not None},
        },
    }


def _pictures(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the pictures of an answer, without the drafts in its thoughts."""
    for candidate in entries(body.get("candidates")):
        for part in entries(as_object(candidate.get("content")).get("parts")):
            picture = as_object(part.get("inlineData"))
            if as_text(picture.get("data")) and not part.get("thought"):
                yield picture
