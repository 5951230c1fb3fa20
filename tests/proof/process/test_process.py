"""The real process: `gateway serve` killed, stopped, misconfigured, and its log."""

import contextlib
import http.client
import json
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.store import SqliteStore
from gateway.tasks.outcome import MAX_LONE_RUNS
from tests.conftest import WALLET, Payer, one_server
from tests.proof.process.gateway_process import PATIENCE_S, PLUGIN, PROMPT, RPC_MARKER, until

# -- kill -9


@one_server
def test_after_kill_9_every_paid_task_ends(served, chain):
    served.start()
    payers = [Payer(chain) for _ in range(3)]
    headers = [payer.header() for payer in payers]
    ids = [served.bought(header) for header in headers]
    until(lambda: len(served.calls()) == 1)
    assert sorted(served.task(task_id)["status"] for task_id in ids) == [
        "processing",
        "queued",
        "queued",
    ]
    served.kill()
    served.let_go()
    served.start()
    for task_id, header in zip(ids, headers, strict=True):
        assert served.task(task_id, wait_s=20)["status"] == "completed"
        assert served.bought(header) == task_id
    assert chain.usdc_balance(WALLET) == 60_000


@one_server
def test_after_kill_9_an_unsettled_payment_settles_once(served, chain):
    served.start()
    served.let_go()
    served.bought(Payer(chain).header())  # everything is imported
    chain.set_automine(False)
    header = Payer(chain).header()
    sending = http.client.HTTPConnection("127.0.0.1", served.port, timeout=25)
    with contextlib.closing(sending):
        about = {"Content-Type": "application/json", "X-PAYMENT": header}
        sending.request("POST", "/api/x402/slow", json.dumps({"prompt": PROMPT}), about)
        until(lambda: chain.node.pool.waiting)
        served.kill()
    chain.set_automine(True)
    served.start()
    task = served.task(served.bought(header), wait_s=20)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == 40_000


@one_server
def test_a_task_that_kills_every_process_is_owed_back(served, chain):
    served.start()
    (served.folder / "die").touch()
    with contextlib.suppress(OSError, http.client.HTTPException):
        served.bought(header := Payer(chain).header())
    # The first death may be the fault of another task that ran beside it.
    deaths = 1 + MAX_LONE_RUNS
    for death in range(1, deaths + 1):
        until(lambda: served.process.poll() is not None)
        assert len(served.calls()) == death
        if death < deaths:
            served.process = served._run()
    served.start()
    task = served.task(served.bought(header), wait_s=20)
    assert (task["status"], task["refund"]["state"]) == ("failed", "refund_due")
    assert len(served.calls()) == deaths


# -- SIGTERM


@one_server
def test_sigterm_at_once_is_an_orderly_end(served):
    served.is_forked = False
    served.start()
    (line,) = until(lambda: served.events("started"))
    assert (line["network"], line["endpoints"]) == ("base", ["document-parser", "slow"])
    assert line["wallet"].startswith("0x")
    assert line["version"]
    served.stop()
    assert served.process.wait(PATIENCE_S) == 0
    for event in ("started", "draining", "stopped"):
        assert len(served.events(event)) == 1
    assert "Traceback" not in served.log_text()


# -- an operator's mistakes


def sentence(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    assert len(lines) == 1, said
    assert lines[0].startswith("gateway: ")
    return lines[0]


@one_server
def test_a_busy_port_is_one_sentence(served):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", served.port))
        other.listen()
        code, output = served.fails()
    assert code == 1
    assert f"127.0.0.1:{served.port} is in use" in sentence(output)


@one_server
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GATEWAY_WALLET", ""),
        ("GATEWAY_WALLET", "0x123"),
        ("GATEWAY_SETTLEMENT_KEY", ""),
        ("GATEWAY_SETTLEMENT_KEY", "0x" + "0" * 64),
        ("GATEWAY_RPC_URLS", "ftp://x"),
        ("GATEWAY_DATA_DIR", "/dev/null/data"),
    ],
    ids=["no wallet", "half a wallet", "no key", "key zero", "no RPC", "no folder"],
)
def test_a_wrong_setting_is_one_sentence(served, name, value):
    served.environment[name] = value
    code, output = served.fails()
    assert code == 1
    assert name in sentence(output)


@one_server
async def test_a_start_that_fails_inside_the_app_is_one_sentence(served):
    async with SqliteStore(served.folder / "data" / "gateway.db") as store:
        await store.meta("network", lambda: "base")
    served.environment["GATEWAY_NETWORK"] = "base-sepolia"
    code, output = served.fails()
    assert code == 1
    assert "belongs to network base, but GATEWAY_NETWORK is base-sepolia" in sentence(output)


# -- output and signals


def test_the_log_holds_no_prompt_no_proof_no_key_and_no_rpc_url(served, chain, key):
    served.start()
    (served.folder / "complain").touch()
    served.let_go()
    payer = Payer(chain)
    header = payer.header()
    task_id = served.bought(header)
    assert served.task(task_id, wait_s=20)["status"] == "completed"
    served.buy("MARKER-HEADER")
    served.request("POST", "/api/x402/slow", {"prompt": 5}, {"X-PAYMENT": "MARKER-HEADER"})
    with contextlib.suppress(OSError):
        served.request("POST", f"/api/x402/{PROMPT}?x={PROMPT}", {"prompt": PROMPT})
    chain.stop()
    served.buy(Payer(chain).header())
    served.stop()
    served.process.wait(PATIENCE_S)
    output = served.log.read_text()
    assert "task.completed" in output
    secrets = {
        "prompt": PROMPT,
        "header": "MARKER-HEADER",
        "payment": header[:40],
        "signature": payer.payload()["payload"]["signature"][:20],
        "key": key.removeprefix("0x"),
        "RPC": RPC_MARKER,
        "password": "correct horse",
    }
    assert [name for name, secret in secrets.items() if secret in output] == []


@one_server
def test_third_parties_plugins_are_loaded_and_those_that_fail_are_left_out(served, chain):
    """One fails on import, and one has a slug that another sells."""
    served.install("broken_provider", "import nothing_of_this_name\n")
    served.install("z_provider", PLUGIN)
    command = [sys.executable, "-m", "gateway", "plugins", "--json"]
    done = subprocess.run(
        command, cwd=served.folder, env=served.environment, capture_output=True, check=True
    )
    listed = {row["plugin"]: row for row in json.loads(done.stdout)}
    assert listed["slow_provider"]["from"] == "slow-provider 1.0"
    assert listed["slow_provider"]["endpoints"] == "slow"
    assert listed["broken_provider"]["note"].startswith("not loaded: ModuleNotFoundError")
    served.start()
    served.let_go()
    assert served.task(served.bought(Payer(chain).header()), wait_s=20)["status"] == "completed"
    left_out = {line["plugin"]: line for line in served.events("plugin.left_out")}
    assert left_out.keys() == {"broken_provider", "z_provider"}
    assert left_out["broken_provider"]["source"] == "broken-provider 1.0"
    assert "nothing_of_this_name" in left_out["broken_provider"]["error"]
    assert "slow_provider (slow-provider 1.0)" in left_out["z_provider"]["error"]
    assert "z_provider (z-provider 1.0)" in left_out["z_provider"]["error"]


CLINGING = """
import asyncio
import structlog
from gateway import Part, hookimpl

async def cling():
    structlog.get_logger().info("begun")
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@hookimpl
def register_parts(register, gateway):
    register(Part(name="endless", run=cling))
"""


@one_server
def test_a_plugin_that_does_not_end_does_not_keep_the_process(served):
    served.install("clinging", CLINGING)
    served.start()
    until(lambda: served.events("begun"))
    served.stop()
    assert served.process.wait(timeout=PATIENCE_S) == 0
    (line,) = served.events("stop.tasks_left")
    assert line["tasks"] == ["endless run"]


# -- blocked event loop


@one_server
def test_a_plugin_that_blocks_is_named_in_the_log_while_it_blocks(served, chain):
    served.start()
    served.let_go()
    block = served.folder / "block"
    block.touch()
    header = Payer(chain).header()
    with ThreadPoolExecutor() as threads:
        buying = threads.submit(served.bought, header)
        try:
            until(lambda: served.events("loop.blocked"))
        finally:
            block.unlink()
        buying.result()
    (line,) = [line for line in served.events("loop.blocked") if line["plugin"] == "slow_provider"]
    assert "slow_provider.py" in line["frames"][-1]
    assert line["frames"][-1].endswith(" Slow.submit")
    until(lambda: served.events("loop.released"))
    assert served.task(served.bought(header), wait_s=20)["status"] == "completed"
    assert PROMPT not in served.log.read_text()
