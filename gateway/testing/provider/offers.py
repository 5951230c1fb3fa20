"""Scenes of the provider contract: what is on sale, and for how much."""

import itertools
from typing import Any, cast

from gateway.contracts import Chain, PluginContext, Quote
from gateway.domain import (
    DOCUMENT_PARSING,
    TEXT_TO_IMAGE,
    Choice,
    Endpoint,
    GenerationRequest,
)
from gateway.settings import Settings
from gateway.testing.provider.stage import Stage, loaded, problem_in


class OfferScenes:
    """A plugin's endpoints, before anybody buys."""

    plugin: Any

    async def test_a_gateway_starts_before_the_operator_has_set_it_up(self) -> None:
        try:
            manager = loaded(self.plugin)
            manager.catalog(Settings())
            problem = problem_in(manager, self.plugin)
        except Exception as error:  # noqa: BLE001 - whatever the hook raises
            problem = f"{type(error).__name__}: {error}"
        assert problem is None, (
            f"A hook raised {problem} Without its settings a plugin registers nothing, and every "
            "other one goes on selling."
        )

    async def test_what_it_sells_is_something_that_buyers_know(self, stage: Stage) -> None:
        for endpoint in offered(stage):
            where = f"Endpoint {endpoint.slug!r}"
            assert endpoint.capability in (TEXT_TO_IMAGE, DOCUMENT_PARSING), (
                f"{where}: capability is {TEXT_TO_IMAGE!r} or {DOCUMENT_PARSING!r}."
            )
            assert endpoint.capability != TEXT_TO_IMAGE or endpoint.output_format.values, (
                f"{where}: offer output formats: Choice(values=('png', 'jpg', 'webp'), "
                "default='png'); the gateway converts."
            )

    async def test_the_402_quotes_a_price_for_every_request(self, stage: Stage) -> None:
        context = PluginContext(
            settings=stage.settings,
            chain=cast(Chain, None),  # a challenge asks no chain
            journal=stage.store,
            now=stage.clock,
        )
        verifier = loaded(stage.plugin).authorization_verifier(context)
        for endpoint in offered(stage):
            for request in requests_of(endpoint):
                price = endpoint.price_of(request)
                quote = Quote(
                    endpoint=endpoint,
                    price_units=price,
                    wallet=stage.settings.wallet,
                    network=stage.settings.chain,
                    resource_url=f"https://gateway.example/api/x402/{endpoint.slug}",
                )
                quoted = verifier.challenge(quote, None, 2).body["accepts"][0]["amount"]
                assert price > 0, f"{endpoint.slug!r} is free for {request}."
                assert quoted == str(price), f"The 402 says {quoted}, the price is {price}."

    async def test_its_key_shows_nowhere(self, stage: Stage, secrets: tuple[str, ...]) -> None:
        shown = f"{stage.sold!r} {stage.sold.upstream.provider} {stage.settings!r}"
        for secret in secrets:
            assert secret not in shown, (
                "Printing the provider shows its key. Give the key to `gateway.Outbound`, which "
                "does not print its headers, and keep it in no field of your own, or in one with "
                "repr=False."
            )


def offered(stage: Stage) -> list[Endpoint]:
    """Return the plugin's endpoints."""
    name = stage.sold.upstream.plugin
    return [one.endpoint for one in stage.catalog.everything() if one.upstream.plugin == name]


def requests_of(endpoint: Endpoint) -> list[GenerationRequest]:
    """Return one request for each combination of what an endpoint offers."""
    return [
        GenerationRequest(
            prompt="a boat",
            aspect_ratio=ratio,
            output_format=kind,
            resolution=resolution,
            pages=pages,
        )
        for ratio, kind, resolution, pages in itertools.product(
            _values(endpoint.aspect_ratio),
            _values(endpoint.output_format),
            _values(endpoint.resolution),
            (1, endpoint.max_pages or 1),
        )
    ]


def _values(choice: Choice) -> tuple[str | None, ...]:
    return choice.values or (None,)
