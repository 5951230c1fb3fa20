"""Fixtures: a gateway that sells what the examples buy, and a program run beside it."""

import asyncio
import os
import re
import sys
from pathlib import Path

import attrs
import pytest

from gateway import hookimpl
from tests.conftest import ScriptedPlugin

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
# A loaded machine takes its time to import the EVM's libraries, and to start Node.
_PATIENCE_S = 240


@attrs.frozen(kw_only=True)
class Ran:
    """A program that has ended."""

    code: int
    said: str
    complained: str


class Sandbox:
    """Sells pictures under the slug of the examples, without drawing them."""

    __name__ = "sandbox-plugin"

    def __init__(self, provider) -> None:
        self._plugin = ScriptedPlugin(provider)

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        def rename(endpoint, provider) -> None:
            if endpoint.slug == "picture":
                register(attrs.evolve(endpoint, slug="sandbox-image"), provider)

        self._plugin.register_endpoints(rename, settings)


@pytest.fixture
def on_sale(provider) -> list:
    return [Sandbox(provider)]


@pytest.fixture
def variables(site, chain, payer) -> dict[str, str]:
    """What the examples read from the environment."""
    key = "0x" + bytes(payer.account.key).hex()
    return {"GATEWAY": site.url, "RPC": chain.rpc_url, "BUYER_KEY": key}


def environment(**more: str) -> dict[str, str]:
    """Return ours without settings and proxies."""
    left_out = re.compile(r"GATEWAY_.*|(https?|all)_proxy", re.IGNORECASE)
    kept = {name: value for name, value in os.environ.items() if not left_out.fullmatch(name)}
    return {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": "1", **more}


async def start(
    *command: str | Path, folder: Path, stdin: int = asyncio.subprocess.DEVNULL, **more: str
) -> asyncio.subprocess.Process:
    """Start a program beside the gateway of this process."""
    return await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=folder,
        env=environment(**more),
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def run(*command: str | Path, folder: Path, **more: str) -> Ran:
    """Run a program to its end."""
    return await end(await start(*command, folder=folder, **more))


async def end(process: asyncio.subprocess.Process) -> Ran:
    """Wait for a program's end; a program that takes too long is killed."""
    try:
        said, complained = await asyncio.wait_for(process.communicate(), _PATIENCE_S)
    finally:
        # It still runs where the time is over, or the test has cancelled this.
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ran(code=process.returncode, said=said.decode(), complained=complained.decode())
