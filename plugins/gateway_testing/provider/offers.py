"""Scenes of the provider contract: endpoints and their prices."""

import itertools
from typing import Any, cast

from gateway.contracts import Chain, PluginContext, Quote
from gateway.domain import Choice, Endpoint, GenerationRequest
from gateway.domain.capabilities import DECLARED
from gateway.domain.description import missing_fields, way_to_require
from gateway.settings import Settings
from gateway_testing.provider.gateway_under_test import GatewayUnderTest, manager_with, problem_in


class OfferScenes:
    """A plugin's endpoints before a purchase."""

    plugin: Any

    async def test_a_gateway_starts_before_the_operator_has_set_it_up(self) -> None:
        try:
            manager = manager_with(self.plugin)
            manager.catalog(Settings())
            problem = problem_in(manager, self.plugin)
        except Exception as error:  # noqa: BLE001 - a hook may raise anything
            problem = f"{type(error).__name__}: {error}"
        assert problem is None, (
            f"A hook raised {problem} Without its settings a plugin registers nothing, and every "
            "other one goes on selling."
        )

    async def test_it_sells_what_agents_look_for(self, gateway: GatewayUnderTest) -> None:
        for endpoint in offered(gateway):
            where, named = f"Endpoint {endpoint.slug!r}", endpoint.capability
            assert endpoint.declared is not None or named in DECLARED, (
                f"{where}: agents do not search for the capability {named!r}. Use one of "
                f"{', '.join(DECLARED)}; or declare it by the hook register_capabilities."
            )
            missing = missing_fields(endpoint)
            assert not missing, f"{where}: {named} needs {way_to_require(missing)}."

    async def test_pictures_are_sold_in_the_formats_that_buyers_choose(
        self, gateway: GatewayUnderTest
    ) -> None:
        for endpoint in offered(gateway):
            where = f"Endpoint {endpoint.slug!r}"
            assert not endpoint.sells_pictures or endpoint.output_format.values, (
                f"{where}: offer output formats: Choice(values=('png', 'jpg', 'webp'), "
                "default='png'); the gateway converts."
            )

    async def test_the_402_quotes_a_price_for_every_request(
        self, gateway: GatewayUnderTest
    ) -> None:
        context = PluginContext(
            settings=gateway.settings,
            chain=cast(Chain, None),  # a challenge does not use the chain
            journal=gateway.store,
            now=gateway.clock,
        )
        verifier = manager_with(gateway.plugin).ways_to_pay(context)[0][0]
        for endpoint in offered(gateway):
            for request in requests_of(endpoint):
                price = endpoint.price_of(request)
                quote = Quote(
                    endpoint=endpoint,
                    price_units=price,
                    wallet=gateway.settings.wallet,
                    network=gateway.settings.chain,
                    resource_url=f"https://gateway.example/api/x402/{endpoint.slug}",
                )
                quoted = verifier.challenge(quote, None, 2).body["accepts"][0]["amount"]
                assert price > 0, (
                    f"{endpoint.slug!r} is free for {request}. Set price_units and price_steps."
                )
                assert quoted == str(price), f"The 402 asks for {quoted}, but the price is {price}."

    async def test_its_key_shows_nowhere(
        self, gateway: GatewayUnderTest, secrets: tuple[str, ...]
    ) -> None:
        shown = f"{gateway.sold!r} {gateway.sold.upstream.provider} {gateway.settings!r}"
        for secret in secrets:
            assert secret not in shown, (
                "Printing the provider shows its key. Give the key to `gateway.Outbound`, which "
                "does not print its headers, and keep it in no field of your own, or in one with "
                "repr=False."
            )


def offered(gateway: GatewayUnderTest) -> list[Endpoint]:
    """Return the plugin's endpoints."""
    name = gateway.sold.upstream.plugin
    return [one.endpoint for one in gateway.catalog.everything() if one.upstream.plugin == name]


def requests_of(endpoint: Endpoint) -> list[GenerationRequest]:
    """Return one request for each combination of an endpoint's choices."""
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
