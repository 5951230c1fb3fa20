"""Fixtures: a gateway on a real port."""

import asyncio
import contextlib
import socket

import attrs
import httpx
import pytest

from gateway.app import create_app
from gateway.web.front.current import EXTENSION
from gateway.web.server.serve import listen, run_of
from tests.conftest import ScriptedPlugin

# Starting the sandbox and web3 is slow on a busy machine.
_PATIENCE_S = 120


@attrs.frozen
class Site:
    url: str
    services: object


@pytest.fixture(params=["hypercorn", pytest.param("uvicorn", marks=pytest.mark.full)])
def http_server(request) -> str:
    """Test on one server, or on both where their responses may differ."""
    return request.param


@pytest.fixture
def on_sale(provider) -> list:
    """The gateway's plugins."""
    return [ScriptedPlugin(provider)]


@pytest.fixture
async def site(settings, on_sale, http_server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    settings = attrs.evolve(settings, base_url=f"http://{bind}", bind=bind, server=http_server)
    app = create_app(settings, plugins=on_sale)
    stop = asyncio.Event()
    server = asyncio.create_task(run_of(settings)(app, listen(bind), stop))
    await _answers(settings.base_url)
    yield Site(settings.base_url, app.extensions[EXTENSION])
    stop.set()
    await server


async def _answers(url: str) -> None:
    async with httpx.AsyncClient() as client, asyncio.timeout(_PATIENCE_S):
        while True:
            with contextlib.suppress(httpx.TransportError):
                if (await client.get(f"{url}/api/ready")).is_success:
                    return
            await asyncio.sleep(0.02)
