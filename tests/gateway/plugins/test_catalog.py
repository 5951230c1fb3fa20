"""The catalogue: one price in all places; at shutdown providers close their resources."""

import asyncio

import attrs
import pytest

from gateway import SettingsError
from gateway.catalog.catalog import Catalog
from gateway.settings import EndpointOverride
from gateway_testing.facts import ENDPOINT
from tests.conftest import ScriptedProvider, running

# -- prices


async def _asked_for(gateway, **fields):
    """Return the offered price of a picture, in units."""
    answer = await gateway.client.post("/api/x402/picture", **fields)
    return int((await answer.get_json())["accepts"][0]["amount"])


async def test_the_price_of_a_request_that_names_nothing_is_the_price_shown(
    settings, provider, chain
):
    override = EndpointOverride(price="0.03", prices={"2K": "0.05"})
    settings = attrs.evolve(settings, endpoints={"picture": override})
    async with running(settings, provider) as gateway:
        body = await (await gateway.client.get("/.well-known/agent-manifest.json")).get_json()
        (shown,) = [one for one in body["availableEndpoints"] if one["slug"] == "picture"]
        assert shown["price"] == 0.03
        assert await _asked_for(gateway) == 30_000
        assert await _asked_for(gateway, json={"prompt": "x"}) == 30_000
        assert await _asked_for(gateway, json={"prompt": "x", "resolution": "2K"}) == 50_000


async def test_a_price_of_the_default_resolution_is_refused_at_the_start(settings, provider):
    override = EndpointOverride(prices={"1K": "0.05"})
    settings = attrs.evolve(settings, endpoints={"picture": override})
    with pytest.raises(SettingsError, match=r'prices\.1K: .* Write price = "\.\.\." instead'):
        async with running(settings, provider):
            pass


# -- closing


class Closing(ScriptedProvider):
    """A provider with open resources."""

    def __init__(self, closed: list) -> None:
        super().__init__()
        self.closed = closed

    async def close(self) -> None:
        self.closed.append("async")


class ClosingPlainly(Closing):
    def close(self) -> None:
        self.closed.append("plain")


class Failing(Closing):
    def close(self) -> None:
        raise OSError("disk trouble")


class Leaving(Closing):
    def close(self) -> None:
        raise SystemExit(1)


class Hanging(Closing):
    async def close(self) -> None:
        await asyncio.Event().wait()


async def test_every_provider_is_closed_once_whatever_the_others_do():
    closed, catalog = [], Catalog({})
    bad = [kind(closed) for kind in (Failing, Leaving, Hanging)]
    providers = [*bad, Closing(closed), ClosingPlainly(closed), ScriptedProvider()]
    for number, provider in enumerate([*providers, providers[3]]):
        catalog.register(attrs.evolve(ENDPOINT, slug=f"picture-{number}"), provider, "test")
    await catalog.close(timeout_s=0.05)
    assert closed == ["async", "plain"]


async def test_the_app_closes_providers_when_it_stops(settings):
    closed = []
    async with running(settings, Closing(closed)):
        assert closed == []
    assert closed == ["async"]
