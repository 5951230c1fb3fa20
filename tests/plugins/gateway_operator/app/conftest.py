"""Commands beside a gateway."""

import asyncio

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.settings import variable

_NAMES = ("base_url", "wallet", "data_dir", "settlement_key")


@pytest.fixture
def run(settings):
    """Run a command of the gateway in a thread."""
    variables = {variable(name): str(getattr(settings, name)) for name in _NAMES}
    env = variables | {"GATEWAY_RPC_URLS": ",".join(settings.rpc_urls)}

    async def command(*words):
        return await asyncio.to_thread(CliRunner().invoke, main, list(words), env=env)

    return command
