"""`gateway serve` in a process of its own, with a plugin that waits for the test."""

import contextlib
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests import hidden_models
from tests.conftest import PNG, WALLET
from tests.proof.process.forked import Forked

ROOT = Path(__file__).parents[3]
PROMPT = "MARKER-PROMPT-a-boat"
# The timeout of a failing test; a passing one does not wait that long.
PATIENCE_S = 240
RPC_MARKER = "MARKER-RPC-KEY"
_OPEN = "SELECT count(*) FROM tasks WHERE status IN ('held', 'queued', 'processing')"
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
    """`gateway serve` in a process of its own, restarted on the same port and folder.

    By default it is forked from a process that has imported the gateway.
    """

    is_forked = True
    # A file descriptor for standard output and error; None: the file `log`.
    output: int | None = None
    command = (sys.executable, "-m", "gateway", "serve")

    def __init__(self, tmp_path, chain, key, **variables) -> None:
        self.folder = tmp_path
        self.chain = chain
        self.port = free_port()
        self.log = tmp_path / "log"
        self._log_start = 0
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
            # With the extra `models` and without it, it sells the same.
            "GATEWAY_PLUGINS_DISABLED": hidden_models.NAMES,
            **variables,
        }
        self.process = None

    def install(self, module, source) -> None:
        install_plugin(self.site, module, source)

    def patch(self, source, *, before_imports=False) -> None:
        """Run some Python when the process starts, optionally before it imports the gateway."""
        (self.site / "sitecustomize.py").write_text(source)
        self.is_forked = not before_imports

    def start(self) -> None:
        self.process = self._run()
        until(self._is_up)

    def _run(self) -> subprocess.Popen | Forked:
        if not self.is_forked or self.output is not None:
            return self._run_anew()
        patch = self.site / "sitecustomize.py"
        named = str(patch) if patch.exists() else ""
        return Forked.started(self.folder, self.environment, self.log, named)

    def _run_anew(self) -> subprocess.Popen:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.command,
                cwd=self.folder,
                env=self.environment,
                stdout=log if self.output is None else self.output,
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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        with contextlib.closing(connection):
            data = json.dumps(body).encode() if body is not None else None
            connection.request(
                method, path, data, {"Content-Type": "application/json", **(headers or {})}
            )
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def buy(self, header, slug="slow"):
        body = {"prompt": PROMPT}
        return self.request("POST", f"/api/x402/{slug}", body, {"X-PAYMENT": header})

    def bought(self, header, slug="slow") -> str:
        status, body = self.buy(header, slug)
        assert status == 200, body
        return body["taskId"]

    def task(self, task_id, *, wait_s=0):
        return self.request("GET", f"/api/task/{task_id}?wait={wait_s}")[1]

    def let_go(self) -> None:
        (self.folder / "go").touch()

    @contextlib.contextmanager
    def lent(self) -> Iterator["Gateway"]:
        """Lend it to one test: its tasks end with the test, and its traces are removed."""
        self._log_start = self.log.stat().st_size
        try:
            yield self
        finally:
            if self.process.poll() is None:
                self.let_go()
                until(lambda: not self._open_tasks())
            for name in ("go", "calls"):
                (self.folder / name).unlink(missing_ok=True)

    def _open_tasks(self) -> int:
        path = self.folder / "data" / "gateway.db"
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return db.execute(_OPEN).fetchone()[0]

    def log_text(self) -> str:
        """Return the log since the gateway was lent; all of it for a test's own gateway."""
        return self.log.read_bytes()[self._log_start :].decode()

    def events(self, name) -> list[dict]:
        """Return the log's lines of one event."""
        lines = [line for line in self.log_text().splitlines() if line.startswith("{")]
        return [fields for line in lines if (fields := json.loads(line))["event"] == name]

    def calls(self):
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def fails(self) -> tuple[int, str]:
        """Start it, expecting it to exit at once; returns exit code and output."""
        process = self._run_anew()
        try:
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()
            process.wait()
        return code, self.log.read_text()


def install_plugin(site: Path, module: str, source: str) -> None:
    """Write a distribution with one plugin into a folder of Python's path."""
    about = site / f"{module}-1.0.dist-info"
    about.mkdir(parents=True)
    (site / f"{module}.py").write_text(source)
    name = module.replace("_", "-")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[gateway]\n{module} = {module}\n")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def until(condition, *, patience_s=PATIENCE_S, pause_s=0.02):
    deadline = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(pause_s)
    return found
