"""An agent of each era of the protocol."""

import asyncio
from collections.abc import Iterator

import pytest

from gateway import Output, Result
from tests.conftest import PNG
from tests.plugins.gateway_mcp.app.agent import LEGACY, MODERN, Agent


@pytest.fixture(params=[MODERN, LEGACY])
def agent(gateway, request) -> Agent:
    """An agent of the gateway, in one era after the other."""
    return Agent(gateway, request.param)


@pytest.fixture
def modern(gateway) -> Agent:
    return Agent(gateway, MODERN)


@pytest.fixture
def blocked(provider) -> Iterator[asyncio.Event]:
    """Block the next picture until the test sets the event."""
    go = asyncio.Event()

    async def wait(request, job):
        await go.wait()
        return Result(outputs=(Output(data=PNG, media_type="image/png", width=1, height=1),))

    provider.script.append(wait)
    yield go
    go.set()
