"""The provider: one request returns one picture, without jobs."""

import math
from collections.abc import Mapping
from typing import Any

import attrs

from gateway import (
    AccountProblem,
    Answer,
    ContentPolicy,
    Endpoint,
    GenerationRequest,
    Job,
    Outbound,
    Output,
    Result,
    SubmitUncertain,
    Traits,
)
from gateway.vendors import Model, as_object, as_text, json_object
from gateway_openrouter.models import request_body
from gateway_openrouter.refusals import check

# A large picture takes two minutes.
TIMEOUT_S = 240.0
_PROBE_S = 15.0
# A larger cost is an error that would distort the books.
_MAX_USD = 1_000


@attrs.define
class Painter:
    """Submits by `POST {base}/images`; the gateway itself checks the picture."""

    outbound: Outbound
    models: Mapping[str, Model] = attrs.field(kw_only=True)
    """By slug."""
    traits: Traits = attrs.field(factory=Traits, kw_only=True)
    name: str = "openrouter"
    timeout_s: float = TIMEOUT_S

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse a picture that the model would not accept."""
        limits = self.models[endpoint.slug].edits
        if limits is not None and request.attachment is not None:
            limits.check(request.attachment)

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Request one picture, or an edit of the buyer's; the result has the billed cost.

        Raises `SubmitUncertain` if a picture may have been generated but cannot be obtained.
        """
        model = self.models[job.endpoint.slug]
        answer = await self.outbound.request(
            "POST",
            "/images",
            json=await request_body(model, job.endpoint.model, request),
            timeout_s=self.timeout_s,
        )
        parsed = await answer.submit_json()
        body = as_object(parsed)
        check(answer, body)
        if body is not parsed:
            raise SubmitUncertain("OpenRouter reported success, but not as documented.")
        return Result(outputs=(await _picture(body),), cost_micros=cost_micros(body))

    async def health(self) -> None:
        """Get the key's remaining limit, which is free.

        The account's credit needs an administrator's key, so an exhausted account shows only at the
        next submit.
        """
        answer = await self.outbound.request("GET", "/key", timeout_s=_PROBE_S)
        body = json_object(answer)
        check(answer, body)
        left = as_object(body.get("data")).get("limit_remaining")
        if isinstance(left, int | float) and left <= 0:
            raise AccountProblem("The limit of OpenRouter's key is spent.")

    async def close(self) -> None:
        """Close all connections."""
        await self.outbound.close()


def cost_micros(body: dict[str, Any]) -> int | None:
    """Return a picture's cost in 10⁻⁶ US dollars, rounded up, or None.

    With the operator's own vendor key at OpenRouter, `cost` is only OpenRouter's fee, and the
    vendor's bill is a separate field.
    """
    usage = as_object(body.get("usage"))
    parts = [usage.get("cost")]
    if usage.get("is_byok") is True:
        parts.append(as_object(usage.get("cost_details")).get("upstream_inference_cost"))
    dollars = 0.0
    for part in parts:
        if not isinstance(part, int | float) or isinstance(part, bool) or not 0 <= part < _MAX_USD:
            return None
        dollars += part
    # Rounding at the ninth digit removes binary fractions.
    return math.ceil(round(dollars * 1_000_000, 3))


async def _picture(body: dict[str, Any]) -> Output:
    """Return the first picture; raises `ContentPolicy` if a filter removed it."""
    found = body.get("data")
    for entry in map(as_object, found if isinstance(found, list) else []):
        if encoded := as_text(entry.get("b64_json")):
            media_type = as_text(entry.get("media_type")) or "image/png"
            return Output(data=await Answer.decoded(encoded), media_type=media_type)
    raise ContentPolicy("The provider returned no picture for this prompt.")
