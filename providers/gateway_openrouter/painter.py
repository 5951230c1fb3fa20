"""The provider: one request returns one picture. The API has no jobs, so there is no `poll`."""

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

# The time-out of one request; a large picture takes two minutes.
TIMEOUT_S = 240.0
_PROBE_S = 15.0
# No picture costs so much; a larger number is a mistake that would spoil the books.
_MOST_USD = 1_000


@attrs.define
class Painter:
    """Submits by `POST {base}/images`; the gateway itself checks the picture."""

    outbound: Outbound
    models: Mapping[str, Model] = attrs.field(kw_only=True)
    """The models on sale, by slug."""
    traits: Traits = attrs.field(factory=Traits, kw_only=True)
    name: str = "openrouter"
    timeout_s: float = TIMEOUT_S

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse a picture that the model would not take."""
        limits = self.models[endpoint.slug].edits
        if limits is not None and request.attachment is not None:
            limits.check(request.attachment)

    async def submit(self, request: GenerationRequest, job: Job) -> Result:
        """Ask for one picture, or for an edit of the buyer's; the result names what was billed.

        Raises `SubmitUncertain` if a picture was made, or may have been, and cannot be reached.
        """
        model = self.models[job.endpoint.slug]
        answer = await self.outbound.request(
            "POST",
            "/images",
            json=await request_body(model, job.endpoint.model, request),
            timeout_s=self.timeout_s,
        )
        told = await answer.submit_json()
        body = as_object(told)
        check(answer, body)
        if body is not told:
            raise SubmitUncertain("OpenRouter answered with success, but not as documented.")
        return Result(outputs=(await _picture(body),), cost_micros=cost_micros(body))

    async def health(self) -> None:
        """Ask what the key may still spend, which is free.

        Only an administrator's key may ask for the account's credit, so a spent account shows with
        the next submit.
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
    """Return what a picture cost, in 10⁻⁶ US dollars and rounded up; None if no number is told.

    With a vendor's key that the operator has left at OpenRouter, `cost` is OpenRouter's fee alone,
    and the vendor's own bill stands beside it.
    """
    usage = as_object(body.get("usage"))
    parts = [usage.get("cost")]
    if usage.get("is_byok") is True:
        parts.append(as_object(usage.get("cost_details")).get("upstream_inference_cost"))
    dollars = 0.0
    for part in parts:
        if not isinstance(part, int | float) or isinstance(part, bool) or not 0 <= part < _MOST_USD:
            return None
        dollars += part
    # The ninth digit hides what binary fractions add.
    return math.ceil(round(dollars * 1_000_000, 3))


async def _picture(body: dict[str, Any]) -> Output:
    """Return the first picture of an answer.

    Raises `ContentPolicy` for an answer without a picture, because a filter removed it.
    """
    found = body.get("data")
    for entry in map(as_object, found if isinstance(found, list) else []):
        if encoded := as_text(entry.get("b64_json")):
            media_type = as_text(entry.get("media_type")) or "image/png"
            return Output(data=await Answer.decoded(encoded), media_type=media_type)
    raise ContentPolicy("The provider returned no picture for this prompt.")
