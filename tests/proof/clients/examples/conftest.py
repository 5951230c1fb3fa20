"""Fixtures: a gateway that sells to the examples, and a program run beside it."""

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from gateway import hookimpl
from tests.conftest import ScriptedPlugin
from tests.proof.clients.places import default_cache

EXAMPLES = Path(__file__).parents[4] / "docs" / "examples"
# Importing the EVM's libraries and starting Node is slow on a busy machine.
_PATIENCE_S = 240
_INSTALL_S = 600
_MANIFESTS = ("package.json", "package-lock.json")


@attrs.frozen(kw_only=True)
class Ran:
    """A finished program."""

    code: int
    said: str
    complained: str


class Sandbox:
    """Sells pictures under the examples' slug, without drawing them."""

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
    """The environment variables of the examples."""
    key = "0x" + bytes(payer.account.key).hex()
    return {"GATEWAY": site.url, "RPC": chain.rpc_url, "BUYER_KEY": key}


@pytest.fixture(scope="session")
def node_modules():
    """The examples' packages, installed once and kept in the user's cache."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    locked = hashlib.sha256((EXAMPLES / "package-lock.json").read_bytes()).hexdigest()
    folder = default_cache() / f"examples-{locked[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    # Several test processes may install at the same time.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "installed").exists():
            _install(folder)
            (folder / "installed").touch()
    return folder / "node_modules"


def _install(folder) -> None:
    for name in _MANIFESTS:
        shutil.copyfile(EXAMPLES / name, folder / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_INSTALL_S, check=False
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["it did not say why"])[0]
        pytest.skip(f"the packages cannot be installed ({why})")


@pytest.fixture
def script(node_modules, tmp_path):
    """Returns a copy of an example that finds its packages."""
    (tmp_path / "node_modules").symlink_to(node_modules)

    def copied(name):
        shutil.copyfile(EXAMPLES / name, tmp_path / name)
        return tmp_path / name

    return copied


def environment(**more: str) -> dict[str, str]:
    """Return our environment without settings and proxies."""
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
    return await end(await start(*command, folder=folder, **more))


async def end(process: asyncio.subprocess.Process) -> Ran:
    """Wait until a program exits; kill it after the timeout."""
    try:
        output, complained = await asyncio.wait_for(process.communicate(), _PATIENCE_S)
    finally:
        # It is still running after the timeout, or if the test was cancelled.
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ran(code=process.returncode, said=output.decode(), complained=complained.decode())
