"""The Python programs of docs/examples, run unchanged against a gateway on a real port."""

import json
import re
import subprocess
import sys
from datetime import UTC, datetime

import httpx
import pytest

from gateway import ContentPolicy
from tests.conftest import PNG, WALLET
from tests.proof.clients.examples.conftest import EXAMPLES, environment, run

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.mark.parametrize("example", ["buy.py", "direct_with_proof.py"])
async def test_it_buys_and_saves(variables, chain, provider, tmp_path, example):
    ran = await run(sys.executable, EXAMPLES / example, "é", folder=tmp_path, **variables)
    assert ran.code == 0, ran.complained
    assert "\ncompleted paid by 0x" in ran.said
    assert (tmp_path / "bought.png").read_bytes() == PNG
    assert [request.prompt for request in provider.requests] == ["é"]
    assert chain.usdc_balance(WALLET) == 20_000


@pytest.mark.full
@pytest.mark.parametrize("example", ["buy.py", "direct_with_proof.py"])
async def test_it_pays_no_more_than_its_limit(variables, chain, tmp_path, example):
    written = (EXAMPLES / example).read_text()
    (tmp_path / example).write_text(written.replace("= 100_000", "= 19_999"))
    ran = await run(sys.executable, tmp_path / example, folder=tmp_path, **variables)
    assert (ran.code, chain.usdc_balance(WALLET)) == (1, 0)


@pytest.mark.full
async def test_it_buys_over_mcp(variables, chain, tmp_path):
    pytest.importorskip("gateway_mcp", reason="this gateway does not speak MCP")
    pytest.importorskip("mcp")
    ran = await run(sys.executable, EXAMPLES / "mcp_buy.py", folder=tmp_path, **variables)
    assert ran.code == 0, ran.complained
    assert ran.said.startswith("completed paid by 0x")
    assert (tmp_path / "bought.png").read_bytes() == PNG
    assert chain.usdc_balance(WALLET) == 20_000


@pytest.fixture
def run_readme(variables, tmp_path):
    """Returns a function that runs the snippet of the README."""
    text = (EXAMPLES.parents[1] / "README.md").read_text()
    (snippet,) = (
        each
        for each in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if "x402_requests" in each
    )
    known = f"GATEWAY, BUYER_KEY = {variables['GATEWAY']!r}, {variables['BUYER_KEY']!r}\n"
    return lambda: run(sys.executable, "-c", known + snippet, folder=tmp_path)


async def test_the_readmes_snippet_buys(run_readme, chain):
    ran = await run_readme()
    assert ran.code == 0, ran.complained
    assert ran.said.startswith("http")
    assert chain.usdc_balance(WALLET) == 20_000


@pytest.mark.full
async def test_the_readmes_snippet_prints_why_a_generation_failed(run_readme, provider):
    provider.script = [ContentPolicy("No boats.")]
    ran = await run_readme()
    assert ran.code == 0, ran.complained
    assert "No boats." in ran.said


@pytest.mark.full
async def test_the_readmes_snippet_prints_why_it_was_not_paid(run_readme, chain, payer):
    chain.transfer_usdc(payer.account.key, "0x" + "12" * 20, 100_000_000)
    ran = await run_readme()
    assert ran.code == 1
    assert "insufficient_balance" in ran.complained
    assert "Traceback" not in ran.complained


@pytest.fixture
def receiver(tmp_path):
    """The webhook receiver on a free port; yields its URL and process."""
    pytest.importorskip("standardwebhooks")
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"task-1": SECRET}))
    with subprocess.Popen(
        [sys.executable, EXAMPLES / "webhook_receiver.py"],
        stdout=subprocess.PIPE,
        env=environment(PORT="0", SECRETS=str(secrets)),
        text=True,
    ) as process:
        yield process.stdout.readline().split()[-1], process
        process.terminate()


def test_the_receiver_prints_a_signed_event_once(receiver):
    check_receiver(*receiver)


def check_receiver(address, process):
    """Send a signed event twice, and some unsigned ones; check the output."""
    event = signed("1_task-1")
    assert send(address, *event).status_code == 204
    assert send(address, *event).status_code == 204
    for body, headers in forged():
        assert send(address, body, headers).status_code == 401, (body, headers)
    assert send(address, *signed("2_task-1", kind="refund.sent")).status_code == 204
    assert process.stdout.readline() == "task.completed task-1 completed\n"
    assert process.stdout.readline() == "refund.sent task-1 completed\n"


def send(address, body, headers):
    return httpx.post(address, content=body, headers=headers, timeout=60)


def signed(number, kind="task.completed"):
    """Return the body and the headers of an event, as a gateway sends it."""
    from standardwebhooks import Webhook

    now = datetime.now(UTC)
    data = {"taskId": number.partition("_")[2], "status": "completed", "done": True}
    body = json.dumps({"type": kind, "timestamp": now.isoformat(), "data": data})
    headers = {
        "webhook-id": number,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET).sign(number, now, body),
        "content-type": "application/json",
    }
    return body.encode(), headers


def forged():
    body, headers = signed("3_task-1")
    yield body.replace(b"completed", b"cancelled"), headers
    yield body, headers | {"webhook-id": "4_task-1"}
    yield body, headers | {"webhook-timestamp": "1"}
    yield body, headers | {"webhook-signature": "v1,??"}
    yield body, {}
    yield signed("5_another-task")
    yield body, headers | {"webhook-id": "__proto__"}
    yield b"[", headers
    yield b"[]", headers
