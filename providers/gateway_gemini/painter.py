"""The provider: one request, one picture; the API has no jobs, so nothing can be asked later."""

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

TIMEOUT_S = 220.0  # of one request
_PROBE_S = 15.0


@attrs.define
class Painter:
    """Asks one model by `generateContent`; the gateway itself looks at the picture."""

    outbound: Outbound
    model: str = attrs.field(kw_only=True)  # whose health is asked for
    traits: Traits = attrs.field(default=Traits(), kw_only=True)
    name: str = "gemini"
    timeout_s: float = TIMEOUT_S

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Have one picture made.

        Raises `SubmitUncertain` where it was, or may have been, made and is out of reach.
        """
        answer = await self.outbound.request(
            "POST",
            f"{_path(job.endpoint.model)}:generateContent",
            json=_order(request, job.endpoint),
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
        """Ask what the model is: it costs nothing, and names a wrong key or a retired model."""
        answer = await self.outbound.request("GET", _path(self.model), timeout_s=_PROBE_S)
        check(answer, json_object(answer))

    async def close(self) -> None:
        """Hang up."""
        await self.outbound.close()


def _path(model: str) -> str:
    return f"/v1beta/models/{quote(model, safe='')}"


def _order(request: GenerationRequest, endpoint: Endpoint) -> dict[str, Any]:
    """Return the request; a model that makes one size only may refuse to be asked for a size."""
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
    """Yield the pictures of an answer; a thought's are drafts."""
    for candidate in entries(body.get("candidates")):
        for part in entries(as_object(candidate.get("content")).get("parts")):
            picture = as_object(part.get("inlineData"))
            if as_text(picture.get("data")) and not part.get("thought"):
                yield picture
