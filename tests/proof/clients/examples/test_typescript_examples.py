"""The programs for Node in docs/examples, run with the versions of their lock file."""

import fcntl
import hashlib
import json
import shutil
import subprocess

import pytest

from tests.conftest import PNG, WALLET
from tests.proof.clients.examples.conftest import EXAMPLES, environment, run
from tests.proof.clients.examples.test_python_examples import SECRET, check_receiver
from tests.proof.clients.places import default_cache

_INSTALL_S = 600
_MANIFESTS = ("package.json", "package-lock.json")


@pytest.fixture(scope="session")
def node_modules():
    """The examples' packages, installed once and kept in the user's cache."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    locked = hashlib.sha256((EXAMPLES / "package-lock.json").read_bytes()).hexdigest()
    folder = default_cache() / f"examples-{locked[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    # Several test processes may want to install.
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


@pytest.mark.parametrize("example", ["buy.mjs", "direct_with_proof.mjs"])
async def test_it_buys_and_saves(script, variables, chain, provider, tmp_path, example):
    ran = await run("node", script(example), "é", folder=tmp_path, **variables)
    assert ran.code == 0, ran.complained
    assert ran.said.startswith("completed paid by 0x")
    assert (tmp_path / "bought.png").read_bytes() == PNG
    assert [request.prompt for request in provider.requests] == ["é"]
    assert chain.usdc_balance(WALLET) == 20_000


@pytest.mark.parametrize(
    ("example", "limit", "lower"),
    [
        ("buy.mjs", '"$0.10"', '"$0.019"'),
        ("direct_with_proof.mjs", "100_000n", "19_999n"),
    ],
)
async def test_it_pays_no_more_than_its_limit(
    script, variables, chain, tmp_path, example, limit, lower
):
    path = script(example)
    written = path.read_text()
    assert limit in written
    path.write_text(written.replace(limit, lower))
    ran = await run("node", path, folder=tmp_path, **variables)
    assert (ran.code, chain.usdc_balance(WALLET)) == (1, 0)


async def test_it_buys_over_mcp(script, variables, chain, tmp_path):
    pytest.importorskip("gateway.web.mcp", reason="this gateway does not speak MCP")
    # The server's side.
    pytest.importorskip("mcp")
    ran = await run("node", script("mcp_buy.mjs"), folder=tmp_path, **variables)
    assert ran.code == 0, ran.complained
    assert ran.said.startswith("completed paid by 0x")
    assert (tmp_path / "bought.png").read_bytes() == PNG
    assert chain.usdc_balance(WALLET) == 20_000


def test_the_receiver_prints_a_signed_event_once(script, tmp_path):
    pytest.importorskip("standardwebhooks")
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"task-1": SECRET}))
    with subprocess.Popen(
        ["node", script("webhook_receiver.mjs")],
        stdout=subprocess.PIPE,
        env=environment(PORT="0", SECRETS=str(secrets)),
        text=True,
    ) as process:
        try:
            check_receiver(process.stdout.readline().split()[-1], process)
        finally:
            process.terminate()
