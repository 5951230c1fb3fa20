"""Starts the measured programs as processes of their own, each on a chosen core."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from place import CLIENT_CORE, SERVER_CORE, environment
from tree import BENCH, HERE, Tree

# Stopping a measurement by SIGTERM stops its servers, as an interrupt does.
signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))


def free_port() -> int:
    """Return a free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def process(
    arguments: list[str],
    env: dict[str, str],
    *,
    core: int | None,
    log: Path | None = None,
    program: str = sys.executable,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program (Python by default) within the block, on a core if given; then SIGTERM."""
    command = [program, *arguments]
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    with log.open("wb") if log else contextlib.nullcontext(subprocess.DEVNULL) as out:
        errors = out if log else None  # to the console: why a baseline does not start
        # in our folder, which has no gateway.toml
        running = subprocess.Popen(command, env=env, stdout=out, stderr=errors, cwd=BENCH)
        try:
            yield running
        finally:
            running.terminate()
            try:
                running.wait(timeout=15)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()


def wait_listening(port: int, running: subprocess.Popen[bytes], timeout_s: float = 30) -> None:
    """Wait until a process accepts connections on a port."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and running.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.002)
    raise RuntimeError(f"{running.args} does not listen on port {port}")


def get(port: int, path: str) -> tuple[int, bytes]:
    """Return status and body of a GET."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def wait_selling(port: int, timeout_s: float = 60) -> None:
    """Wait until a gateway sells: it finishes its imports after the first response."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        checks = json.loads(get(port, "/api/ready")[1])["checks"]
        if all(check["ok"] for check in checks):
            # Only transfers in blocks after the database's creation count.
            time.sleep(2)
            return
        time.sleep(0.1)
    raise RuntimeError(f"the gateway does not sell: {checks}")


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process in megabytes (2²⁰ bytes)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and its threads so far, in seconds."""
    # Linux's clock_getcpuclockid(3), which Python has only for threads; /proc has a resolution of
    # 10 ms.
    return time.clock_gettime((~pid << 3) | 2)


@contextlib.contextmanager
def stub_chain(latency_ms: float = 0.0, *, block_ms: int | None = None) -> Iterator[str]:
    """Run the stub chain within the block; yields its URL. Without `block_ms`, at Base's pace."""
    port = free_port()
    script = [str(BENCH / "stub_chain.py"), str(port), "--latency-ms", str(latency_ms)]
    script += [] if block_ms is None else ["--block-ms", str(block_ms)]
    with process(script, environment(), core=CLIENT_CORE) as running:
        wait_listening(port, running)
        yield f"http://127.0.0.1:{port}"


def ask_chain(rpc_url: str, method: str, *params: object) -> Any:
    """Return the stub's result of one call; its `bench_` methods control and inspect it."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    connection = http.client.HTTPConnection(rpc_url.removeprefix("http://"), timeout=10)
    with contextlib.closing(connection):
        connection.request("POST", "/", json.dumps(call))
        return json.loads(connection.getresponse().read())["result"]


@contextlib.contextmanager
def gateway(data: Path, rpc_url: str, **settings: object) -> Iterator[int]:
    """Run `gateway serve` on the server's core within the block, warmed up; yields its port."""
    with gateway_process(data, rpc_url, **settings) as (port, _):
        yield port


@contextlib.contextmanager
def gateway_process(
    data: Path,
    rpc_url: str,
    *,
    tree: Tree = HERE,
    plugins: Path | None = None,
    core: int | None = SERVER_CORE,
    **settings: object,
) -> Iterator[tuple[int, int]]:
    """Run a tree's `gateway serve` like `gateway`; yields its port and process id.

    `plugins` is a folder with more plugins. A `core` of None means any.
    """
    port = free_port()
    named = {"data_dir": data, "rpc_urls": rpc_url, "bind": f"127.0.0.1:{port}"}
    env = environment(tree, **named, **settings)
    if plugins is not None:
        env["PYTHONPATH"] += f"{os.pathsep}{plugins}"
    log = data / "gateway.log"
    arguments = ["-m", "gateway", "serve"]
    with process(arguments, env, core=core, log=log, program=tree.python) as running:
        wait_listening(port, running)
        status, body = get(port, "/api/health")
        if status != http.client.OK:
            raise RuntimeError(f"/api/health answers {status}: {body!r}; see {log}")
        wait_selling(port)
        yield port, running.pid


@contextlib.contextmanager
def bare(kind: str) -> Iterator[tuple[int, int]]:
    """Run a baseline of bare.py on the server's core within the block; yields port and pid."""
    port = free_port()
    script = [str(BENCH / "bare.py"), kind, str(port)]
    with process(script, environment(), core=SERVER_CORE) as running:
        wait_listening(port, running)
        yield port, running.pid
