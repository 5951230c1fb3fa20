"""The provider: one request, one picture; the API has no jobs, so nothing can be asked later."""

from typing import Any

import attrs

from gateway import (
    Answer,
    ContentPolicy,
    GenerationRequest,
    Job,
    Link,
    Outbound,
    Output,
    Result,
    Traits,
)
from gateway_openai.refusals import check
from gateway_openai.sizes import SIZES

TIMEOUT_S = 240.0  # of one request; a large picture takes two minutes
_PROBE_S = 15.0
_FORMATS = {"png": "png", "jpg": "jpeg", "webp": "webp"}
_NO_ROUTE = (404, 405)


@attrs.define
class Painter:
    """Asks `POST {base}/images/generations`; the gateway itself looks at the picture."""

    outbound: Outbound
    quality: str | None = attrs.field(kw_only=True)
    response_format: str | None = attrs.field(kw_only=True)  # OpenAI's own models refuse the field
    traits: Traits = attrs.field(default=Traits(), kw_only=True)
    name: str = "openai"
    timeout_s: float = TIMEOUT_S

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Have one picture made.

        Raises `SubmitUncertain` where it was, or may have been, made and is out of reach.
        """
        answer = await self.outbound.request(
            "POST",
            "/images/generations",
            json=self._order(request, job.endpoint.model),
            timeout_s=self.timeout_s,
        )
        body = await answer.submit_json()
        check(answer, body)
        media_type = f"image/{_FORMATS[request.output_format or 'png']}"
        return Result(outputs=(await _picture(body, media_type),))

    async def health(self) -> None:
        """Ask which models there are: it costs nothing. A server without that list is up, too."""
        answer = await self.outbound.request("GET", "/models", timeout_s=_PROBE_S)
        if answer.status not in _NO_ROUTE:
            answer.check()

    def _order(self, request: GenerationRequest, model: str) -> dict[str, Any]:
        order = {
            "model": model,
            "prompt": request.prompt,
            "n": 1,
            "size": SIZES[request.aspect_ratio or "1:1", request.resolution or "1K"],
            "output_format": _FORMATS[request.output_format or "png"],
            "quality": self.quality,
            "response_format": self.response_format,
        }
        return {name: value for name, value in order.items() if value is not None}

    async def close(self) -> None:
        """Hang up."""
        await self.outbound.close()


async def _picture(body: Any, media_type: str) -> Output | Link:
    """Return the first picture of an answer: one was asked for and paid.

    An answer without any means that a filter took it.
    """
    found = body.get("data") if isinstance(body, dict) else None
    for entry in found if isinstance(found, list) else []:
        if not isinstance(entry, dict):
            continue
        encoded, url = entry.get("b64_json"), entry.get("url")
        if isinstance(encoded, str) and encoded:
            return Output(data=await Answer.decoded(encoded), media_type=media_type)
        if isinstance(url, str) and url:
            return Link(url=url, media_type=media_type)
    raise ContentPolicy("The provider returned no picture for this prompt.")
