"""The catalogue at the end: providers close what they keep open."""

import asyncio

import attrs

from gateway.catalog import Catalog
from gateway.testing.store_facts import ENDPOINT
from tests.conftest import ScriptedProvider, running


class Closing(ScriptedProvider):
    """A provider that keeps something open."""

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


async def test_every_provider_is_closed_once_whatever_the_others_do(monkeypatch):
    monkeypatch.setattr("gateway.upstream._CLOSE_S", 0.05)
    closed, catalog = [], Catalog({})
    bad = [kind(closed) for kind in (Failing, Leaving, Hanging)]
    providers = [*bad, Closing(closed), ClosingPlainly(closed), ScriptedProvider()]
    for number, provider in enumerate([*providers, providers[3]]):
        catalog.register(attrs.evolve(ENDPOINT, slug=f"picture-{number}"), provider, "test")
    await catalog.close()
    assert closed == ["async", "plain"]


async def test_the_app_closes_providers_when_it_stops(settings):
    closed = []
    async with running(settings, Closing(closed)):
        assert closed == []
    assert closed == ["async"]
