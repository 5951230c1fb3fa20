"""A plugin for measuring: an endpoint whose provider answers at once, so only the gateway costs."""

from collections.abc import Callable

from gateway import Endpoint, GenerationRequest, Job, Provider, Result, Settings, hookimpl, usdc

INSTANT = Endpoint(
    slug="instant",
    title="Nothing, at once",
    description="Answers with one word.",
    model="none",
    provider="bench",
    capability="document-parsing",
    price_units=usdc("0.02"),
)


class InstantProvider:
    """Implements `gateway.Provider`."""

    name = "bench"

    async def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse nothing."""

    async def submit(self, request: GenerationRequest, job: Job) -> Result:  # noqa: ARG002 - Provider
        """Answer with one word."""
        return Result(text="done")


@hookimpl
def register_endpoints(
    register: Callable[[Endpoint, Provider], None],
    settings: Settings,  # noqa: ARG001 - the hook's
) -> None:
    """Put the instant endpoint on sale."""
    register(INSTANT, InstantProvider())
