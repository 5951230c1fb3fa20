"""Starts what is measured as processes of their own, each on a chosen core."""

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from place import BENCH, CLIENT_CORE, SERVER_CORE, environment


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def process(
    arguments: list[str], env: dict[str, str], *, core: int | None, log: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python with `arguments` within the block, on one core if given; then SIGTERM."""
    command = [sys.executable, *arguments]
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    with log.open("wb") if log else contextlib.nullcontext(subprocess.DEVNULL) as out:
        errors = out if log else None  # to the console: why a baseline does not start
        # in our folder: a gateway.toml elsewhere is not meant
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
    """Return once a process accepts connections on a port."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and running.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return
        time.sleep(0.002)
    raise RuntimeError(f"{running.args} does not listen on port {port}")


def get(port: int, path: str) -> tuple[int, bytes]:
    """Return status and body of a GET."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process in megabytes (2²⁰ bytes)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextlib.contextmanager
def stub_chain(latency_ms: float = 0.0) -> Iterator[str]:
    """Run the stub of the chain within the block, with a latency for each call; gives its URL."""
    port = free_port()
    script = [str(BENCH / "stub_chain.py"), str(port), str(latency_ms)]
    with process(script, environment(), core=CLIENT_CORE) as running:
        wait_listening(port, running)
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def gateway(data: Path, rpc_url: str, **settings: object) -> Iterator[int]:
    """Run `gateway serve` on the server's core within the block, warmed up; gives its port."""
    with gateway_process(data, rpc_url, **settings) as (port, _):
        yield port


@contextlib.contextmanager
def gateway_process(data: Path, rpc_url: str, **settings: object) -> Iterator[tuple[int, int]]:
    """Run `gateway serve` as `gateway` does; gives its port and process id."""
    port = free_port()
    env = environment(data_dir=data, rpc_urls=rpc_url, bind=f"127.0.0.1:{port}", **settings)
    log = data / "gateway.log"
    arguments = ["-m", "gateway", "serve"]
    with process(arguments, env, core=SERVER_CORE, log=log) as running:
        wait_listening(port, running)
        status, body = get(port, "/api/health")
        if status != http.client.OK:
            raise RuntimeError(f"/api/health answers {status}: {body!r}; see {log}")
        time.sleep(3)  # what is heavy is imported after the first answer
        yield port, running.pid


@contextlib.contextmanager
def bare(kind: str) -> Iterator[int]:
    """Run a baseline of bare.py on the server's core within the block; gives its port."""
    port = free_port()
    script = [str(BENCH / "bare.py"), kind, str(port)]
    with process(script, environment(), core=SERVER_CORE) as running:
        wait_listening(port, running)
        yield port
