"""The programs for Node in docs/examples, run with the versions of their lock file."""

import json
import subprocess

import pytest

from tests.conftest import PNG, WALLET
from tests.proof.clients.examples.conftest import environment, run
from tests.proof.clients.examples.test_python_examples import SECRET, check_receiver


@pytest.mark.full
@pytest.mark.parametrize("example", ["buy.mjs", "direct_with_proof.mjs"])
async def test_it_buys_and_saves(script, variables, chain, provider, tmp_path, example):
    ran = await run("node", script(example), "é", folder=tmp_path, **variables)
    assert ran.code == 0, ran.complained
    assert "\ncompleted paid by 0x" in ran.said
    assert (tmp_path / "bought.png").read_bytes() == PNG
    assert [request.prompt for request in provider.requests] == ["é"]
    assert chain.usdc_balance(WALLET) == 20_000


@pytest.mark.full
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


@pytest.mark.full
async def test_it_buys_over_mcp(script, variables, chain, tmp_path):
    pytest.importorskip("gateway_mcp", reason="this gateway does not speak MCP")
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
