"""Clients that do not read large responses, and polls of a task with a long text."""

import contextlib
import http.client
import json
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import attrs
from place import folder
from processes import cpu_s, gateway_process, rss_mb, stub_chain
from tree import Tree

Row = tuple[str, str, str]
_ADDRESS = "X-Real-IP"
# Sold for 0.01 USDC.
_TEXT_BYTES = 7_000_000
_CONNECTIONS = 1_000
_HEADS = 50
# Of three addresses at the default limit (5 a second each), from as many threads.
_RATE, _ATTACKERS = 15, 15
# Of the health check, some ten seconds in all.
_SAMPLES, _PAUSE_S = 300, 0.03
# The memory is read until it has stopped growing for this time.
_QUIET_S, _MAX_S = 8.0, 50.0
# Beyond this the attack has succeeded, and is stopped to spare the machine.
_STOP_MB = 1_000
_PLUGIN = f"""
from gateway import Endpoint, Result, Traits, hookimpl, usdc

class Long:
    name = "long"
    traits = Traits(idempotent_submit=True)

    async def submit(self, request, job):
        return Result(text="lorem ipsum\\n" * ({_TEXT_BYTES} // 12))

@hookimpl
def register_endpoints(register, settings):
    register(
        Endpoint(slug="long", title="Long", description="Long.", model="long-1", provider="long",
                 capability="document-parsing", price_units=usdc("0.01")),
        Long(),
    )
"""


@attrs.frozen
class Target:
    """A running gateway with a finished task that has a long text."""

    port: int
    pid: int
    task: str
    file: str


def rows(tree: Tree) -> Iterator[Row]:
    """Attack a checkout's gateway on each server."""
    for chosen in tree.servers:
        name = chosen.get("server", "hypercorn")
        for kind, addresses in _ATTACKS:
            tried = f"{_CONNECTIONS:,} connections of {addresses} addresses read nothing of"
            with _target(tree, chosen) as target:
                yield "1", f"{tried} {_SHOWN[kind]}, {name}", _read_nothing(target, kind, addresses)
        with _target(tree, chosen) as target:
            for method in ("HEAD", "GET"):
                yield "2", f"{method} of a task with 7 MB of text, {name}", _cost(target, method)
                tried = f"{method} of it {_RATE} times a second, {name}"
                yield "2", tried, _time_of_others(target, method)


_ATTACKS = (("task", 1), ("task", 50), ("file", 50), ("range", 1))
_SHOWN = {"task": "/api/task (7 MB)", "file": "/files (7 MB)", "range": "/files with Range"}


@contextlib.contextmanager
def _target(tree: Tree, chosen: dict[str, str]) -> Iterator[Target]:
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        plugins = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        about = plugins / "long_text-1.0.dist-info"
        about.mkdir()
        (plugins / "long_text.py").write_text(_PLUGIN)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: long-text\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[gateway]\nlong_text = long_text\n")
        rpc_url = stack.enter_context(stub_chain())
        settings = {**chosen, "client_ip_header": _ADDRESS}
        running = gateway_process(data, rpc_url, tree=tree, plugins=plugins, **settings)
        port, pid = stack.enter_context(running)
        yield Target(port, pid, *_buy(port))


def _buy(port: int) -> tuple[str, str]:
    """Buy, and return the paths of the task and its file."""
    body = {"slug": "long", "prompt": "A long one", "txHash": f"0x{1:064x}"}
    sold = _ask(port, "POST", "/api/proxy-generate", body)
    path = sold.get("statusUrl") or sys.exit(f"nothing was sold: {sold}")
    while not (task := _ask(port, "GET", f"{path}?wait=10"))["done"]:
        pass
    url = urlsplit(task["result"]["outputs"][0]["url"])
    return path, f"{url.path}?{url.query}"


def _ask(port: int, method: str, path: str, body: object = None) -> dict:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        data = json.dumps(body) if body is not None else None
        connection.request(method, path, data, {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())


def _read_nothing(target: Target, kind: str, addresses: int) -> str:
    """Open connections without reading; returns peak memory and an honest client's result."""
    before = rss_mb(target.pid)
    path = target.task if kind == "task" else target.file
    more = "Range: bytes=1-\r\n" if kind == "range" else ""
    most, began = 0.0, time.monotonic()
    with contextlib.ExitStack() as stack:
        for number in range(_CONNECTIONS):
            address = f"10.0.{number % addresses}.1"
            sent = f"GET {path} HTTP/1.1\r\nHost: a\r\n{_ADDRESS}: {address}\r\n{more}\r\n"
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(60)
            client.connect(("127.0.0.1", target.port))
            with contextlib.suppress(OSError):
                client.sendall(sent.encode())
            most = max(most, rss_mb(target.pid))
            if most > _STOP_MB:
                return f"RSS {before:.0f} → {most:.0f} MB by {number + 1} connections; stopped"
        grown_at = time.monotonic()
        while time.monotonic() - grown_at < _QUIET_S and time.monotonic() - began < _MAX_S:
            time.sleep(0.1)
            now = rss_mb(target.pid)
            if now > _STOP_MB:
                return f"RSS {before:.0f} → {now:.0f} MB; stopped"
            if now > most + 1:
                most, grown_at = now, time.monotonic()
        read = _honest(target.port, path)
    return f"RSS {before:.0f} → {most:.0f} MB; another address read {read}"


def _honest(port: int, path: str) -> str:
    """Read the same response from another address."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        with contextlib.closing(connection):
            connection.request("GET", path, headers={_ADDRESS: "192.0.2.1"})
            size = len(connection.getresponse().read())
    except (OSError, http.client.HTTPException) as error:
        return f"failed ({type(error).__name__})"
    return f"{size / 10**6:.1f} MB in {time.monotonic() - began:.1f} s"


def _cost(target: Target, method: str) -> str:
    """Return the CPU time of one response."""
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, target.task)
        connection.getresponse().read()
        used = cpu_s(target.pid)
        for _ in range(_HEADS):
            connection.request(method, target.task)
            connection.getresponse().read()
        used = cpu_s(target.pid) - used
    return f"{used / _HEADS * 1000:.1f} ms of CPU an answer"


def _time_of_others(target: Target, method: str) -> str:
    """Return how long other clients wait for the health check during the attack."""
    is_over = threading.Event()

    def attack() -> None:
        while not is_over.wait(_ATTACKERS / _RATE):
            _answer(target.port, method, target.task)

    attackers = [threading.Thread(target=attack) for _ in range(_ATTACKERS)]
    for attacker in attackers:
        attacker.start()
    times = []
    for _ in range(_SAMPLES):
        time.sleep(_PAUSE_S)
        times.append(_answer(target.port, "GET", "/api/health"))
    is_over.set()
    for attacker in attackers:
        attacker.join()
    p50, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
    return f"health p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms"


def _answer(port: int, method: str, path: str) -> float:
    """Return the seconds until the response."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        connection.request(method, path)
        connection.getresponse().read()
    return time.monotonic() - began
