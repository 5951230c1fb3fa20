"""The SDK is imported at the first message, so a gateway without agents saves its memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
BUY = """
import asyncio, json, sys, tempfile
from pathlib import Path

from gateway_demo.chain import PlayChain
from gateway.settings import Settings
from tests.conftest import WALLET, Payer, ScriptedProvider, new_account, running

OURS = ("mcp", "mcp_types", "starlette", "sse_starlette", "jsonschema", "opentelemetry")
CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

def loaded():
    return [name for name in OURS if name in sys.modules]

async def buy(chain, folder):
    key = new_account()
    chain.fund(key.address, eth_wei=10**18, usdc_units=0)
    settings = Settings(
        base_url="http://gateway.test", wallet=WALLET, rpc_urls=(chain.rpc_url,), rpc_timeout=60.0,
        data_dir=Path(folder), settlement_key=key.key.hex(), min_free_disk_mb=0,
    )
    async with running(settings, ScriptedProvider()) as gateway:
        paid = {"X-PAYMENT": Payer(chain).header()}
        body = {"prompt": "a boat"}
        answer = await gateway.client.post("/api/x402/picture", json=body, headers=paid)
        task = await gateway.wait((await answer.get_json())["taskId"])
        await gateway.client.get("/llms.txt")
        await gateway.services.lifecycle.warmed.wait()
        before = loaded()
        answer = await gateway.client.post("/mcp", json=CALL)
        assert (await answer.get_json())["result"] == {}
        Path(sys.argv[1]).write_text(json.dumps([task["status"], before, loaded()]))

with PlayChain() as chain, tempfile.TemporaryDirectory() as folder:
    asyncio.run(buy(chain, folder))
"""


@pytest.mark.full
def test_a_start_and_a_purchase_over_http_import_nothing_of_the_sdk(tmp_path):
    paths = [ROOT, ROOT / "providers", ROOT / "plugins"]
    code = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}\n{BUY}"
    # A file, because the gateway logs to stdout until it stops.
    found = tmp_path / "found.json"
    command = [sys.executable, "-c", code, str(found)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    status, before, after = json.loads(found.read_text())
    assert status == "completed"
    assert before == []
    assert {"mcp", "mcp_types", "starlette"} <= set(after)
