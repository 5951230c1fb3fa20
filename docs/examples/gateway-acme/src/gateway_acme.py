"""Pictures by the vendor Acme, made in jobs, for the Generation Gateway.

On sale once `GATEWAY_ACME_API_KEY` is set.
"""

from collections.abc import Callable
from typing import Any

import attrs
import typed_settings as ts

from gateway import (
    AccountProblem,
    Answer,
    Choice,
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
    PriceStep,
    Provider,
    Result,
    Settings,
    SubmitUncertain,
    Traits,
    Transient,
    hookimpl,
    secret,
    setting,
    usdc,
)

PIXELS = {"1K": 1024, "4K": 4096}
# A 4K picture costs this multiple of the price.
DEAR = 4


@attrs.frozen(kw_only=True)
class AcmeSettings:
    """The operator's settings."""

    api_key: ts.SecretStr = secret("Key of Acme. It puts `acme-picture` on sale.")
    base_url: str = setting("https://api.acme.example", "Address of the API.")
    price: str = setting("0.05", "USDC for one picture at 1K.")
    max_concurrency: int = setting(4, "Jobs at once.")


@hookimpl
def register_settings(register: Callable[[str, type], None]) -> None:
    """Define the settings: `GATEWAY_ACME_API_KEY` and so on."""
    register("acme", AcmeSettings)


@hookimpl
def register_endpoints(register: Callable[[Endpoint, Provider], None], settings: Settings) -> None:
    """Put the endpoint on sale if there is a key."""
    mine = settings.section("acme", AcmeSettings)
    if not str(mine.api_key):
        return
    price = usdc(mine.price)
    at_4k = PriceStep(price_units=DEAR * price, resolution="4K")
    endpoint = Endpoint(
        slug="acme-picture",
        title="A picture by Acme",
        description="Makes a picture from a description in words.",
        model="acme-1",
        provider="acme",
        capability="text-to-image",
        price_units=price,
        price_steps=(at_4k,),
        aspect_ratio=Choice(values=("1:1", "16:9", "9:16"), default="1:1"),
        output_format=Choice(values=("png", "jpg", "webp"), default="png"),
        resolution=Choice(values=tuple(PIXELS), default="1K"),
    )
    outbound = Outbound(
        mine.base_url,
        headers={"X-Acme-Key": str(mine.api_key)},
        # Requests for jobs carry the key, so only these hosts are allowed.
        hosts=("*.acme.example",),
    )
    register(endpoint, Painter(outbound, Traits(max_concurrency=mine.max_concurrency or None)))


@attrs.define
class Painter:
    """Starts a job with `POST /v1/jobs`, and polls it at the URL in Acme's response."""

    outbound: Outbound
    traits: Traits
    name: str = "acme"

    async def submit(self, request: GenerationRequest, job: Job) -> Handle:
        """Start one job; the gateway stores its handle before it polls."""
        answer = await self.outbound.request(
            "POST",
            "/v1/jobs",
            json={
                "model": job.endpoint.model,
                "prompt": request.prompt,
                "ratio": request.aspect_ratio,
                "pixels": PIXELS[request.resolution or "1K"],
            },
        )
        body = await answer.submit_json()
        check(answer, body)
        if not isinstance(body, dict) or not {"job", "status_url"} <= body.keys():
            raise SubmitUncertain("Acme accepted the job but returned no status URL.")
        return Handle(id=body["job"], urls={"status": body["status_url"]})

    async def poll(self, handle: Handle, job: Job) -> Pending | Result:
        """Poll a job once. The gateway schedules the polls."""
        answer = await self.outbound.request("GET", handle.urls["status"])
        if answer.status == 404:
            raise HandleLost("Acme does not know its own job.")
        answer.check()
        state = answer.json()
        match state.get("state"):
            case "done":
                return result(state)
            case "refused":
                raise ContentPolicy("Acme refuses this prompt.")
            case "failed":
                raise JobFailed("Acme's job failed.")
            case "queued" | "running":
                return Pending(progress=state.get("progress"), poll_after_s=2.0)
        raise Transient("Acme's answer names no known state.")

    async def cancel(self, handle: Handle) -> None:
        """Stop a job that takes too long."""
        answer = await self.outbound.request("DELETE", handle.urls["status"])
        answer.check()

    async def health(self) -> None:
        """Read the remaining credit. This request is free."""
        answer = await self.outbound.request("GET", "/v1/account", timeout_s=10.0)
        check(answer, answer.json())

    async def close(self) -> None:
        """Close the connections."""
        await self.outbound.close()


def check(answer: Answer, body: Any) -> None:
    """Raise the error that a response means; return for a success."""
    error = body.get("error") if isinstance(body, dict) else None
    if error == "refused":
        raise ContentPolicy("Acme refuses this prompt.")
    # Acme sends this error with a 429, but waiting does not help.
    if error == "no_credit":
        raise AccountProblem("Acme has no credit left.")
    answer.check()


def result(state: dict[str, Any]) -> Result:
    """Return the picture as a link, which the gateway fetches, with its cost."""
    if not state.get("picture"):
        raise ContentPolicy("Acme returned no picture for this prompt.")
    picture = Link(url=state["picture"], media_type="image/png")
    return Result(outputs=(picture,), cost_micros=state.get("cost_micros"))
