"""A generation that fails on purpose, so that a visitor of the demo can watch its refund."""

import asyncio

import attrs

from gateway import Choice, Endpoint, GenerationRequest, InvalidInput, Job, Result, usdc

ENDPOINT = Endpoint(
    slug="fails-on-purpose",
    title="Fails on purpose (to watch its refund)",
    description=(
        "Takes the payment and fails, so that you can watch the gateway send it back. Sold for "
        "play money only."
    ),
    model="fails-v1",
    provider="sandbox",
    capability="text-to-image",
    price_units=usdc("0.01"),
    cost_micros=0,
    output_format=Choice(values=("png",), default="png"),
    timeout_s=30.0,
)
_ERROR = "This generation fails on purpose, so that you can watch its refund."


@attrs.define
class Failing:
    """Fails each request after `pause_s` seconds, which let a visitor see the task at work."""

    # Not the renderer's: its endpoints keep a state of their own.
    name: str = "sandbox-failing"
    pause_s: float = 1.0

    async def submit(self, request: GenerationRequest, job: Job) -> Result:  # noqa: ARG002 - by name
        """Raise `InvalidInput`, which no other attempt follows and which takes nothing off sale."""
        await asyncio.sleep(self.pause_s)
        raise InvalidInput(_ERROR)
