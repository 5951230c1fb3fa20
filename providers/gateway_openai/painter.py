"""The provider: one request, one picture; the API has no jobs, so nothing can be asked later."""

import asyncio
import base64
from typing import Any

import attrs

from gateway import (
    ContentPolicy,
    Endpoint,
    GenerationRequest,
    Job,
    Outbound,
    Output,
    Result,
    SubmitUncertain,
    Transient,
)
from gateway_openai.refusals import check
from gateway_openai.sizes import SIZES

TIMEOUT_S = 240.0  # of one request; a large picture takes two minutes
_DOWNLOAD_S = 15.0
_DOWNLOADS = 3
_FORMATS = {"png": "png", "jpg": "jpeg", "webp": "webp"}


@attrs.define
class Painter:
    """Asks `POST {base}/images/generations`; the gateway itself looks at the picture."""

    outbound: Outbound
    is_openai: bool = attrs.field(kw_only=True)
    name: str = "openai"
    timeout_s: float = TIMEOUT_S
    pause_s: float = 1.0  # before a download is tried again

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Accept everything: what the API would refuse, only the API knows."""

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
        body = await asyncio.to_thread(_parsed, answer)  # a large picture is 45 MB of JSON
        check(answer, body)
        return Result(outputs=await self._outputs(body, request))

    def _order(self, request: GenerationRequest, model: str) -> dict[str, Any]:
        order: dict[str, Any] = {
            "model": model,
            "prompt": request.prompt,
            "n": 1,
            "size": SIZES[request.aspect_ratio or "1:1", request.resolution or "1K"],
            "output_format": _FORMATS[request.output_format or "png"],
        }
        if not self.is_openai:  # OpenAI's models refuse the field; other servers send links without
            order["response_format"] = "b64_json"
        return order

    async def _outputs(self, body: Any, request: GenerationRequest) -> tuple[Output, ...]:
        """Return the pictures of an answer; one without any means that a filter took them."""
        found = body.get("data") if isinstance(body, dict) else None
        outputs = []
        for entry in found if isinstance(found, list) else []:
            if isinstance(entry, dict) and (data := await self._bytes(entry)):
                media_type = f"image/{_FORMATS[request.output_format or 'png']}"
                outputs.append(Output(data=data, media_type=media_type))
        if not outputs:
            raise ContentPolicy("The provider returned no picture for this prompt.")
        return tuple(outputs[:1])  # one was asked for and paid

    async def _bytes(self, entry: dict[str, Any]) -> bytes | None:
        encoded, url = entry.get("b64_json"), entry.get("url")
        if isinstance(encoded, str) and encoded:
            return await asyncio.to_thread(_decoded, encoded)
        return await self._download(url) if isinstance(url, str) and url else None

    async def _download(self, url: str) -> bytes:
        """Fetch a picture that exists and was billed: asking for another would bill twice."""
        for attempt in range(_DOWNLOADS):
            if attempt:
                await asyncio.sleep(self.pause_s)
            try:
                return await self.outbound.download(url, timeout_s=_DOWNLOAD_S)
            except Transient as error:
                reason = str(error)
        raise SubmitUncertain(f"The picture was made, but: {reason}")

    async def close(self) -> None:
        """Hang up."""
        await self.outbound.close()


def _parsed(answer: Any) -> Any:
    """Return the JSON of an answer, None for an error without any."""
    try:
        return answer.json()
    except Transient:
        if answer.status in range(200, 300):
            raise SubmitUncertain("Answered with success, but not with JSON.") from None
        return None


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError:
        raise Transient("The provider's picture is not Base64.") from None
