"""Attacks by tokens, Idempotency-Keys, webhooks, long heads, guessed secrets, odd headers."""

import contextlib
import http.client
import json
import os
import secrets
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import attrs
import clocks
from place import environment, folder
from processes import cpu_s, free_port, gateway_process, stub_chain
from tree import Tree

Row = tuple[str, str, str]
_TEXT_BYTES = 7_000_000
_HEADS = 20
_API = "/admin/api/v1"
_RIGHT, _WRONG = "Tr0ub4dor&3-right", "Tr0ub4dor&3-wrong"
_PLUGIN = f"""
from gateway import Endpoint, Result, Traits, hookimpl, usdc

class Long:
    name = "long"
    traits = Traits(idempotent_submit=True)

    async def submit(self, request, job):
        return Result(text="lorem ipsum\\n" * ({_TEXT_BYTES} // 12))

@hookimpl
def register_endpoints(register, settings):
    about = dict(title="Long", description="Long.", model="long-1", provider="long",
                 price_units=usdc("0.01"))
    register(Endpoint(slug="long", capability="document-parsing", **about), Long())
    extract = Endpoint(slug="extract", capability="document-extraction",
                       required_fields=("prompt", "fileBase64", "fileName"),
                       file_extensions=(".txt",), **about)
    register(extract, Long())
"""


@attrs.frozen
class Target:
    """A running gateway, its data and its metrics port."""

    tree: Tree
    port: int
    pid: int
    metrics: int
    data: Path

    def ask(
        self, method: str, path: str, body: object = None, *, port: int = 0, **headers: str
    ) -> tuple[int, Any]:
        """Return the status and the body of a response."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=60)
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        with contextlib.closing(connection):
            data = json.dumps(body) if body is not None else None
            connection.request(method, path, data, {"Content-Type": "application/json"} | named)
            answer = connection.getresponse()
            body = answer.read()
        with contextlib.suppress(ValueError):
            return answer.status, json.loads(body)
        return answer.status, body

    def buy(self, number: int, key: str | None = None, **fields: object) -> tuple[int, Any]:
        """Buy with the direct transfer `number`."""
        body = {"slug": "instant", "prompt": "one", "txHash": f"0x{number:064x}"} | fields
        about = {"Idempotency_Key": key} if key is not None else {}
        return self.ask("POST", "/api/proxy-generate", body, **about)

    def finish(self, path: str) -> dict[str, Any]:
        """Return a task once it is done."""
        while not (task := self.ask("GET", f"{path}?wait=10")[1])["done"]:
            pass
        return task

    def token(self, scope: str) -> str:
        """Return the Authorization header of a new token."""
        named = {"data_dir": self.data, "base_url": f"http://127.0.0.1:{self.port}"}
        command = [self.tree.python, "-m", "gateway", "tokens", "new", scope, "--scope", scope]
        env = environment(self.tree, **named)
        made = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        (word,) = [word for word in made.stdout.split() if word.startswith("ggw_")]
        return f"Bearer {word}"


def rows(tree: Tree) -> Iterator[Row]:
    """Attack a checkout's gateway; the heads on each server."""
    with _target(tree) as target:
        yield "3", "a webhook of a task with 7 MB of text", _read_webhook(target)
        yield "7", "a token: cost to 0, price to one unit, cost back", _sell_below_cost(target)
        yield "8", "another purchase's Idempotency-Key, and a free one", _guess_key(target)
        yield "10", "a schema with a right and a wrong guess of a secret", _guess_secret(target)
        yield "11", "an id in the list of a token that may read", _open_result(target)
        yield "12", "/metrics with Accept: …openmetrics-text;version=x", _scrape(target)
    yield from clocks.rows(tree)
    for chosen in tree.servers:
        name = chosen.get("server", "hypercorn")
        with _target(tree, **chosen) as target:
            for kind, head in _HEADS_OF.items():
                yield "4", f"a whole head with {kind}, {name}", _send_heads(target, head)


@contextlib.contextmanager
def _target(tree: Tree, **chosen: str) -> Iterator[Target]:
    with contextlib.ExitStack() as stack:
        data = Path(stack.enter_context(folder()))
        plugins = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        about = plugins / "long_text-1.0.dist-info"
        about.mkdir()
        (plugins / "long_text.py").write_text(_PLUGIN)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: long-text\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[gateway]\nlong_text = long_text\n")
        metrics = free_port()
        settings = {
            "base_url": "http://127.0.0.1:1",
            "webhooks": "local",
            "metrics_bind": f"127.0.0.1:{metrics}",
            "limit_price": "1000000/1s",
        }
        os.environ["VENDOR_API_KEY"] = _RIGHT
        stack.callback(os.environ.pop, "VENDOR_API_KEY")
        rpc_url = stack.enter_context(stub_chain())
        running = gateway_process(data, rpc_url, tree=tree, plugins=plugins, **settings | chosen)
        port, pid = stack.enter_context(running)
        yield Target(tree, port, pid, metrics, data)


def _read_webhook(target: Target) -> str:
    sizes: list[int] = []
    came = threading.Event()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            sizes.append(len(self.rfile.read(length)))
            self.send_response(204)
            self.end_headers()
            came.set()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        target.buy(1, slug="long", callbackUrl=url)
        has_come = came.wait(60)
        server.shutdown()
    return f"{sizes[0]:,} bytes" if has_come else "nothing came"


def _sell_below_cost(target: Target) -> str:
    token = target.token("act")

    def change(what: str, **body: object) -> int:
        about = {"Authorization": token, "Idempotency_Key": secrets.token_hex(8)}
        path = f"{_API}/endpoints/instant/{what}"
        return target.ask("POST", path, body | {"reason": "x"}, **about)[0]

    change("cost", costMicros=15_000)
    statuses = [change("cost", costMicros=0)]
    statuses.append(change("price", priceUnits=1, seenUnits=20_000))
    statuses.append(change("cost", costMicros=15_000))
    price = target.ask("GET", "/api/x402/instant")[1]["accepts"][0]["maxAmountRequired"]
    change("price", seenUnits=int(price))
    return f"{statuses}, then sold for {price} units, cost 15000"


def _guess_key(target: Target) -> str:
    target.buy(2, "order-1")
    target.buy(3, "order-2")
    taken, free = target.buy(3, "order-1"), target.buy(3, "order-3")
    return f"{taken[0]} {taken[1]['code']}; {free[0]} {free[1]['code']}"


def _guess_secret(target: Target) -> str:
    errors = []
    for guess in (_RIGHT, _WRONG):
        schema = json.dumps({"type": "object", "properties": {guess: {"type": "sign"}}})
        body = {"prompt": schema, "fileBase64": "aGVsbG8=", "fileName": "a.txt"}
        errors.append(target.ask("POST", "/api/x402/extract", body)[1]["error"])
    return "the same answer" if errors[0] == errors[1] else "answers that differ"


def _open_result(target: Target) -> str:
    target.finish(target.buy(4)[1]["statusUrl"])
    token = target.token("read")
    listed = target.ask("GET", f"{_API}/tasks?state=completed", Authorization=token)[1]["tasks"]
    status, _ = target.ask("GET", f"/api/task/{listed[0]['row']['id']}")
    return f"/api/task answers {status}"


def _scrape(target: Target) -> str:
    accept = "application/openmetrics-text;version=x"
    return str(target.ask("GET", "/metrics", port=target.metrics, Accept=accept)[0])


_HEALTH = b"GET /api/health HTTP/1.1\r\nHost: a\r\n"
# Hypercorn reads 64 KB at once, so the next piece completes the head.
_HEADS_OF = {
    "22,000 headers in 100 KB": [_HEALTH + b"a:\r\n" * 11_000, b"a:\r\n" * 11_000 + b"\r\n"],
    "14,000 headers in 56 KB": [_HEALTH + b"a:\r\n" * 14_000 + b"\r\n"],
    "11,000 headers in 44 KB": [_HEALTH + b"a:\r\n" * 11_000 + b"\r\n"],
    "one of 60 KB": [_HEALTH + b"A: " + b"x" * 60_000 + b"\r\n\r\n"],
}


def _send_heads(target: Target, pieces: list[bytes]) -> str:
    """Return the statuses, and the CPU milliseconds per head."""
    statuses = set()
    target.ask("GET", "/api/health")
    began = cpu_s(target.pid)
    for _ in range(_HEADS):
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", target.port), timeout=30) as connection,
        ):
            for piece in pieces:
                connection.sendall(piece)
            statuses.add(connection.recv(65536)[9:12].decode())
    spent_ms = (cpu_s(target.pid) - began) / _HEADS * 1000
    return f"{', '.join(sorted(statuses))}; {spent_ms:.1f} ms of the processor each"
