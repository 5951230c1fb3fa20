"""A plugin for measurements: its provider returns at once, so that only the gateway is measured."""

from collections.abc import Callable, Iterable

import attrs

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

    def validate(self, request: GenerationRequest, endpoint: Endpoint) -> None:
        """Refuse nothing."""

    async def submit(self, request: GenerationRequest, job: Job) -> Result:  # noqa: ARG002 - Provider
        """Return one word."""
        return Result(text="done")


Register = Callable[[Endpoint, Provider], None]


@hookimpl
def register_endpoints(register: Register, settings: Settings) -> None:  # noqa: ARG001 - the hook's
    """Put the instant endpoint on sale."""
    register(INSTANT, InstantProvider())


def selling(numbers: Iterable[int]) -> Callable[[Register, Settings], None]:
    """Return the hook of a plugin that sells one endpoint per number."""
    endpoints = [attrs.evolve(INSTANT, slug=f"instant-{number}") for number in numbers]

    @hookimpl
    def register_endpoints(register: Register, settings: Settings) -> None:  # noqa: ARG001
        for endpoint in endpoints:
            register(endpoint, InstantProvider())

    return register_endpoints
