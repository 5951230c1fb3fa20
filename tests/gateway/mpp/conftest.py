"""A gateway that also accepts the Machine Payments Protocol."""

import attrs
import pytest

from gateway import hookimpl
from tests.conftest import ScriptedPlugin, running
from tests.gateway.mpp.agent import Agent


class TwinPlugin(ScriptedPlugin):
    """Sells the picture again, for the same price, under another slug."""

    __name__ = "twin-plugin"

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        def register_twin(endpoint, provider):
            if endpoint.slug == "picture":
                register(attrs.evolve(endpoint, slug="twin"), provider)

        super().register_endpoints(register_twin, settings)


@pytest.fixture
def settings(settings):
    return settings.changed(mpp_enabled=True)


@pytest.fixture
async def gateway(settings, provider, clock):
    async with running(settings, provider, [TwinPlugin(provider)], now=clock) as gateway:
        yield gateway


@pytest.fixture
def agent(gateway, payer) -> Agent:
    return Agent(gateway, payer)
