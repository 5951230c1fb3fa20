"""The provider: one request returns one picture, without jobs."""

from typing import Any

import attrs

from gateway import (
    Answer,
    Attachment,
    ContentPolicy,
    Endpoint,
    GenerationRequest,
    InvalidInput,
    Job,
    Link,
    Outbound,
    Output,
    Result,
    Traits,
)
from gateway.vendors import media_type
from gateway_openai.optional_fields import find_refused
from gateway_openai.refusals import check
from gateway_openai.sizes import SIZES
from gateway_openai.usage import cost_micros

# A large picture takes two minutes.
TIMEOUT_S = 240.0
_PROBE_S = 15.0
_FORMATS = {"png": "png", "jpg": "jpeg", "webp": "webp"}
_NO_ROUTE = (404, 405)
# sd-server reads steps, sizes and numbers of pictures from a prompt with this tag, so that one
# price would buy any amount of work.
_SD_SERVER_OPTIONS = "<sd_cpp_extra_args>"


@attrs.define
class Painter:
    """Submits by `POST {base}/images/generations`, or `…/images/edits` for a buyer's picture.

    The gateway itself checks the result.
    """

    outbound: Outbound
    quality: str | None = attrs.field(kw_only=True)
    response_format: str | None = attrs.field(kw_only=True)
    """None for OpenAI's own models, which reject the field."""
    is_openai: bool = attrs.field(default=False, kw_only=True)
    """Whether OpenAI's token prices apply."""
    traits: Traits = attrs.field(default=Traits(), kw_only=True)
    name: str = "openai"
    timeout_s: float = TIMEOUT_S
    # The optional fields that the server rejects, by path.
    _refused: dict[str, frozenset[str]] = attrs.field(factory=dict, init=False)

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:  # noqa: ARG002 - Provider
        """Refuse a prompt that sets the options of an operator's own server."""
        if not self.is_openai and _SD_SERVER_OPTIONS in request.prompt:
            raise InvalidInput(f"A prompt may not hold {_SD_SERVER_OPTIONS}.")

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Request one picture.

        Raises `SubmitUncertain` if a picture may have been generated but cannot be obtained.
        """
        answer, body = await self._ask(request, job.endpoint.model)
        check(answer, body)
        kind = f"image/{self._asked_format(request)}"
        cost = cost_micros(job.endpoint.model, body) if self.is_openai else None
        return Result(outputs=(await _picture(body, kind),), cost_micros=cost)

    async def _ask(self, request: GenerationRequest, model: str) -> tuple[Answer, Any]:
        """Repeat the request without fields that the server rejects by name.

        Nothing was generated then. The fields are remembered once the request has succeeded without
        them.
        """
        order, sent = self._request_body(request, model), request.attachment
        path = "/images/generations" if sent is None else "/images/edits"
        refused = set(self._refused.get(path, ()))
        while True:
            asked = {name: value for name, value in order.items() if name not in refused}
            body_of = {"json": asked} if sent is None else {"files": _form(asked, sent)}
            answer = await self.outbound.request("POST", path, timeout_s=self.timeout_s, **body_of)
            body = await answer.submit_json()
            field = find_refused(answer.status, body, asked)
            if field is None:
                break
            refused.add(field)
        if answer.status in range(200, 300):
            self._refused[path] = frozenset(refused)
        return answer, body

    async def health(self) -> None:
        """List the models, which is free; a server without that list counts as up."""
        answer = await self.outbound.request("GET", "/models", timeout_s=_PROBE_S)
        if answer.status not in _NO_ROUTE:
            answer.check()

    def _request_body(self, request: GenerationRequest, model: str) -> dict[str, Any]:
        # Edits without a ratio keep the picture's own.
        ratio = request.aspect_ratio or ("1:1" if request.attachment is None else None)
        order = {
            "model": model,
            "prompt": request.prompt,
            "n": 1,
            "size": SIZES[ratio, request.resolution or "1K"] if ratio is not None else "auto",
            "output_format": self._asked_format(request),
            "quality": self.quality,
            "response_format": self.response_format,
        }
        return {name: value for name, value in order.items() if value is not None}

    def _asked_format(self, request: GenerationRequest) -> str:
        # Operators' servers do not support every format: sd-server edits to no WebP, LocalAI makes
        # PNG only. The gateway converts the result, without a second loss.
        return _FORMATS[request.output_format or "png"] if self.is_openai else "png"

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def _form(order: dict[str, Any], sent: Attachment) -> dict[str, tuple[str, bytes, str]]:
    # Without a name, this is a form field and not a file.
    fields = {name: ("", str(value).encode(), "text/plain") for name, value in order.items()}
    # The buyer's file name may identify the buyer.
    return fields | {"image": (f"picture{sent.extension}", sent.data, media_type(sent))}


async def _picture(body: Any, kind: str) -> Output | Link:
    """Return the first picture; raises `ContentPolicy` if a filter removed it."""
    found = body.get("data") if isinstance(body, dict) else None
    for entry in found if isinstance(found, list) else []:
        if not isinstance(entry, dict):
            continue
        encoded, url = entry.get("b64_json"), entry.get("url")
        if isinstance(encoded, str) and encoded:
            return Output(data=await Answer.decoded(encoded), media_type=kind)
        if isinstance(url, str) and url:
            return Link(url=url, media_type=kind)
    raise ContentPolicy("The provider returned no picture for this prompt.")
