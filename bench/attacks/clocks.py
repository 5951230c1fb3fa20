"""A node on a shared PostgreSQL whose clock jumps while another node works on a task."""

import contextlib
import http.client
import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from place import environment, folder
from processes import free_port, gateway_process, process, stub_chain, wait_listening
from tree import BENCH, Tree

from tests.postgres_server import PostgresServer, find_programs

Row = tuple[str, str, str]
_JUMP_S = 90
# The other node polls the queue every few seconds.
_WATCHED_S = 20
_PLUGIN = """
import asyncio
from gateway import Endpoint, Result, Traits, hookimpl, usdc

class Slow:
    name = "slow"
    traits = Traits(idempotent_submit=True)

    async def submit(self, request, job):
        await asyncio.sleep(40)
        return Result(text="done")

@hookimpl
def register_endpoints(register, settings):
    register(
        Endpoint(slug="slow", title="Slow", description="Slow.", model="slow-1", provider="slow",
                 capability="document-parsing", price_units=usdc("0.02"), timeout_s=120),
        Slow(),
    )
"""
# Python imports this at startup. Only one node has the file.
_CLOCK = f"""
import os, time
_real, _mark = time.time, os.environ.get("GATEWAY_DATA_DIR", "") + "/jump"
time.time = lambda: _real() + ({_JUMP_S} if os.path.exists(_mark) else 0)
"""


def rows(tree: Tree) -> Iterator[Row]:
    """Attack two nodes of a checkout; yields nothing without PostgreSQL's programs."""
    programs = find_programs()
    if programs is None:
        return
    server = PostgresServer(programs)
    server.start()
    try:
        with server.database() as url:
            yield "9", f"a node's clock jumps {_JUMP_S} s while another works", _jump(tree, url)
    finally:
        server.stop()


def _jump(tree: Tree, database_url: str) -> str:
    with contextlib.ExitStack() as stack:
        plugins = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        about = plugins / "slow-1.0.dist-info"
        about.mkdir()
        (plugins / "slow.py").write_text(_PLUGIN)
        (plugins / "sitecustomize.py").write_text(_CLOCK)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[gateway]\nslow = slow\n")
        rpc_url = stack.enter_context(stub_chain())
        bucket = stack.enter_context(_bucket())
        named = {"database_url": database_url, **bucket}
        nodes = []
        for name in "ab":
            data = Path(stack.enter_context(folder()))
            running = gateway_process(
                data, rpc_url, tree=tree, plugins=plugins, core=None, node=name, **named
            )
            nodes.append((data, stack.enter_context(running)[0]))
        return _watch(*nodes)


def _watch(*nodes: tuple[Path, int]) -> str:
    """Sell a task, make the idle node's clock jump, and return the number of attempts."""
    port = nodes[0][1]
    body = {"slug": "slow", "prompt": "one", "txHash": f"0x{1:064x}"}
    path = _ask(port, "POST", "/api/proxy-generate", body)["statusUrl"]
    while _ask(port, "GET", path)["attempt"] < 1:
        time.sleep(0.2)
    # Either node may work on it, so both jump, one after the other.
    most = 1
    for data, _ in nodes:
        (data / "jump").touch()
        ends = time.monotonic() + _WATCHED_S / 2
        while time.monotonic() < ends:
            most = max(most, _ask(port, "GET", path)["attempt"])
            time.sleep(0.5)
        (data / "jump").unlink()
    return f"attempt {most}"


@contextlib.contextmanager
def _bucket() -> Iterator[dict[str, object]]:
    port = free_port()
    with process([str(BENCH / "stub_bucket.py"), str(port)], environment(), core=None) as running:
        wait_listening(port, running)
        yield {
            "outputs_url": "s3://outputs",
            "outputs_endpoint": f"http://127.0.0.1:{port}",
            "outputs_access_key_id": "key",
            "outputs_secret_access_key": "secret",
        }


def _ask(port: int, method: str, path: str, body: object = None) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        data = json.dumps(body) if body is not None else None
        connection.request(method, path, data, {"Content-Type": "application/json"})
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        return found
