"""The real process: `gateway serve` killed, stopped, misconfigured, and what it logs."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from eth_account import Account

from tests.conftest import PNG, WALLET, Payer

ROOT = Path(__file__).parents[3]
PROMPT = "MARKER-PROMPT-a-boat"
RPC_MARKER = "MARKER-RPC-KEY"
PLUGIN = (
    f"PNG = {PNG!r}"
    '''
import asyncio, json, os, pathlib, time
from gateway import Endpoint, Output, Result, Traits, Transient, hookimpl, usdc

FOLDER = pathlib.Path(os.environ["SLOW_FOLDER"])

class Slow:
    """Waits until the test lets it: a file says so."""

    name = "slow"
    traits = Traits(idempotent_submit=True)  # else a kill while it submits ends the task

    async def submit(self, request, job):
        with (FOLDER / "calls").open("a") as calls:
            calls.write(f"{job.task_id} {job.attempt}\\n")
        if (FOLDER / "die").exists():
            os.kill(os.getpid(), 9)
        if (FOLDER / "complain").exists():
            (FOLDER / "complain").unlink()
            raise Transient(f"upstream refused the prompt {request.prompt!r}")
        while (FOLDER / "block").exists():
            time.sleep(0.02)
        while not (FOLDER / "go").exists():
            await asyncio.sleep(0.02)
        return Result(outputs=(Output(data=PNG, media_type="image/png"),))

@hookimpl
def register_endpoints(register, settings):
    register(
        Endpoint(slug="slow", title="Slow", description="Slow.", model="slow-1", provider="slow",
                 capability="text-to-image", price_units=usdc("0.02")),
        Slow(),
    )
'''
)


class Gateway:
    """`gateway serve` in a process of its own, restarted on the same port and folder."""

    def __init__(self, tmp_path, chain, key, **variables) -> None:
        self.folder = tmp_path
        self.port = free_port()
        self.log = tmp_path / "log"
        self.site = tmp_path / "site"
        self.install("slow_provider", PLUGIN)
        paths = [ROOT, ROOT / "providers", ROOT / "plugins", self.site]
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "SLOW_FOLDER": str(tmp_path),
            "GATEWAY_BASE_URL": f"http://127.0.0.1:{self.port}",
            "GATEWAY_BIND": f"127.0.0.1:{self.port}",
            "GATEWAY_WALLET": WALLET,
            "GATEWAY_RPC_URLS": f"{chain.rpc_url}/{RPC_MARKER}",
            "GATEWAY_DATA_DIR": str(tmp_path / "data"),
            "GATEWAY_SETTLEMENT_KEY": key,
            "GATEWAY_ADMIN_PASSWORD": "correct horse",
            "GATEWAY_LIMIT_X402": "1000/60s",
            "GATEWAY_LIMIT_DIRECT": "1000/60s",
            "GATEWAY_LIMIT_TASK": "1000/1s",
            "GATEWAY_MIN_FREE_DISK_MB": "0",
            "GATEWAY_WORKERS": "1",
            **variables,
        }
        self.process = None

    def install(self, module, source) -> None:
        about = self.site / f"{module}-1.0.dist-info"
        about.mkdir(parents=True)
        (self.site / f"{module}.py").write_text(source)
        name = module.replace("_", "-")
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[gateway]\n{module} = {module}\n")

    def patch(self, source) -> None:
        """Run some Python at the start of the process, before it imports the gateway's server."""
        (self.site / "sitecustomize.py").write_text(source)

    def start(self) -> None:
        self.process = self._run()
        until(self._is_up)

    def _run(self) -> subprocess.Popen:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "gateway", "serve"],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _is_up(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(OSError):
            return self.request("GET", "/api/health")[0] == 200
        return False

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def request(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=25)
        with contextlib.closing(connection):
            data = json.dumps(body).encode() if body is not None else None
            connection.request(
                method, path, data, {"Content-Type": "application/json", **(headers or {})}
            )
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def buy(self, header):
        body = {"prompt": PROMPT}
        return self.request("POST", "/api/x402/slow", body, {"X-PAYMENT": header})

    def bought(self, header) -> str:
        status, body = self.buy(header)
        assert status == 200, body
        return body["taskId"]

    def task(self, task_id, *, wait_s=0):
        return self.request("GET", f"/api/task/{task_id}?wait={wait_s}")[1]

    def let_go(self) -> None:
        (self.folder / "go").touch()

    def events(self, name) -> list[dict]:
        """Return the log's lines of one event."""
        lines = [line for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [said for line in lines if (said := json.loads(line))["event"] == name]

    def calls(self):
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def fails(self) -> tuple[int, str]:
        """Start it, expecting it to end at once; returns exit code and what it said."""
        process = self._run()
        try:
            code = process.wait(timeout=15)
        finally:
            process.kill()
            process.wait()
        return code, self.log.read_text()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def until(condition, *, patience_s=120):
    deadline = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
    return found


@pytest.fixture
def key(chain):
    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=0)
    return account.key.hex()


@pytest.fixture
def served(tmp_path, chain, key, http_server):
    gateway = Gateway(tmp_path, chain, key, GATEWAY_SERVER=http_server)
    yield gateway
    if gateway.process is not None:
        gateway.kill()


# -- kill -9


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


def test_a_task_that_kills_the_process_four_times_is_owed_back(served, chain):
    served.start()
    (served.folder / "die").touch()
    with contextlib.suppress(OSError, http.client.HTTPException):
        served.bought(header := Payer(chain).header())
    for attempt in range(1, 5):
        until(lambda: served.process.poll() is not None)
        assert len(served.calls()) == attempt
        if attempt < 4:
            served.process = served._run()
    served.start()
    task = served.task(served.bought(header), wait_s=20)
    assert (task["status"], task["refund"]["state"]) == ("failed", "refund_due")
    assert len(served.calls()) == 4


# -- SIGTERM


def test_sigterm_finishes_what_runs_and_sells_nothing_more(served, chain):
    served.start()
    header = Payer(chain).header()
    task_id = served.bought(header)
    until(served.calls)
    served.stop()
    until(lambda: served.buy(Payer(chain).header())[0] == 503)
    assert served.process.poll() is None  # the task still runs
    served.let_go()
    assert served.process.wait(timeout=20) == 0
    assert chain.usdc_balance(WALLET) == 20_000
    served.start()
    task = served.task(task_id)
    assert (task["status"], task["attempt"]) == ("completed", 1)


def test_sigterm_at_once_is_an_orderly_end(served):
    served.start()
    served.stop()
    assert served.process.wait(timeout=10) == 0
    assert "Traceback" not in served.log.read_text()


# -- what an operator got wrong


def sentence(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    assert len(lines) == 1, said
    assert lines[0].startswith("gateway: ")
    return lines[0]


def test_a_busy_port_is_one_sentence(served):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", served.port))
        other.listen()
        code, said = served.fails()
    assert code == 1
    assert f"127.0.0.1:{served.port} is in use" in sentence(said)


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
def test_a_wrong_setting_is_one_sentence(tmp_path, chain, key, name, value, http_server):
    wrong = {"GATEWAY_SERVER": http_server, name: value}
    code, said = Gateway(tmp_path, chain, key, **wrong).fails()
    assert code == 1
    assert name in sentence(said)


def test_a_start_that_fails_inside_the_app_is_one_sentence(served):
    served.start()
    served.stop()
    assert served.process.wait(60) == 0
    served.log.write_text("")
    served.environment["GATEWAY_NETWORK"] = "base-sepolia"
    code, said = served.fails()
    assert code == 1
    assert "is of network base, but GATEWAY_NETWORK is base-sepolia" in sentence(said)


# -- what it says and hears


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
    served.process.wait(timeout=20)
    said = served.log.read_text()
    assert "task.completed" in said
    secrets = {
        "prompt": PROMPT,
        "header": "MARKER-HEADER",
        "payment": header[:40],
        "signature": payer.payload()["payload"]["signature"][:20],
        "key": key.removeprefix("0x"),
        "RPC": RPC_MARKER,
        "password": "correct horse",
    }
    assert [name for name, secret in secrets.items() if secret in said] == []


def test_a_third_partys_plugin_is_loaded_by_its_entry_point(served):
    served.install("broken_provider", "import nothing_of_this_name\n")
    command = [sys.executable, "-m", "gateway", "plugins", "--json"]
    said = subprocess.run(
        command, cwd=served.folder, env=served.environment, capture_output=True, check=True
    )
    listed = {row["plugin"]: row for row in json.loads(said.stdout)}
    assert listed["slow_provider"]["from"] == "slow-provider 1.0"
    assert listed["slow_provider"]["endpoints"] == "slow"
    assert listed["broken_provider"]["note"].startswith("left out: ModuleNotFoundError")


def test_a_third_partys_plugin_that_fails_is_left_out_and_the_rest_sells(served, chain):
    served.install("broken_provider", "import nothing_of_this_name\n")
    served.start()
    served.let_go()
    assert served.task(served.bought(Payer(chain).header()), wait_s=20)["status"] == "completed"
    (line,) = served.events("plugin.left_out")
    assert (line["plugin"], line["source"]) == ("broken_provider", "broken-provider 1.0")
    assert "nothing_of_this_name" in line["error"]


def test_a_plugin_with_a_slug_that_another_sells_is_left_out_and_the_rest_sells(served, chain):
    served.install("z_provider", PLUGIN)
    served.start()
    served.let_go()
    assert served.task(served.bought(Payer(chain).header()), wait_s=20)["status"] == "completed"
    (line,) = served.events("plugin.left_out")
    assert line["plugin"] == "z_provider"
    assert "slow_provider (slow-provider 1.0)" in line["error"]
    assert "z_provider (z-provider 1.0)" in line["error"]


# -- who blocks


def test_a_plugin_that_blocks_is_named_in_the_log_while_it_blocks(served, chain):
    served.start()
    served.let_go()
    block = served.folder / "block"
    block.touch()
    header = Payer(chain).header()
    with ThreadPoolExecutor() as threads:
        buying = threads.submit(served.bought, header)
        try:
            until(lambda: served.events("loop.blocked"), patience_s=25)
        finally:
            block.unlink()
        buying.result()
    (line,) = [line for line in served.events("loop.blocked") if line["plugin"] == "slow_provider"]
    assert "slow_provider.py" in line["frames"][-1]
    assert line["frames"][-1].endswith(" Slow.submit")
    until(lambda: served.events("loop.released"))
    assert served.task(served.bought(header), wait_s=20)["status"] == "completed"
    assert PROMPT not in served.log.read_text()
