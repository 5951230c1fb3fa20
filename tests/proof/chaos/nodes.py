"""Nodes of one gateway: each a `gateway serve`, on one PostgreSQL, one bucket and one chain."""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from eth_account import Account

from gateway_bucket.outputs import SCHEME
from tests.conftest import PNG
from tests.gateway.postgres.lossy_proxy import LossyProxy, lossy_proxy
from tests.postgres_server import PostgresServer
from tests.proof.chaos.releases import PRESENT, Release
from tests.proof.crashes.remote_chain import RemoteChain, chain_process
from tests.proof.process.gateway_process import Gateway, free_port, until

# A provider that records the start of each attempt, and its end if it ended or was cancelled. An
# attempt without an end was running when its process was killed.
PLUGIN = (
    f"PNG = {PNG!r}"
    """
import asyncio, os, pathlib, random, time
from gateway import Endpoint, Output, Result, Traits, hookimpl, usdc

CALLS = pathlib.Path(os.environ["SLOW_FOLDER"]) / "calls"

def note(task_id, what):
    # One write of a short line to a file that is open for appending is not torn.
    with CALLS.open("ab", buffering=0) as calls:
        calls.write(f"{task_id} {what} {os.getpid()} {time.time()}\\n".encode())

class Slow:
    name = "slow"
    traits = Traits(idempotent_submit=True)

    async def submit(self, request, job):
        note(job.task_id, "begins")
        try:
            await asyncio.sleep(random.uniform(0.2, 1.2))
        finally:
            note(job.task_id, "ends")
        return Result(outputs=(Output(data=PNG, media_type="image/png"),))

@hookimpl
def register_endpoints(register, settings):
    slow = Slow()
    register(
        Endpoint(slug="slow", title="Slow", description="Slow.", model="slow-1", provider="slow",
                 capability="text-to-image", price_units=usdc("0.02")),
        slow,
    )
    # A release that sells more; see `releases.py`.
    if os.environ.get("SLOW_SELLS_NEWER"):
        register(
            Endpoint(slug="newer", title="Newer", description="Newer.", model="slow-2",
                     provider="slow", capability="text-to-image", price_units=usdc("0.02")),
            slow,
        )
"""
)
# A minute is too long for a test: a paused node must lose its leases.
HURRIED = """
from gateway.tasks.timing import TaskTiming

try:
    from gateway_nodes.nodes import SqlNodes
except ImportError:
    # A release before the plugin.
    from gateway.store.nodes import SqlNodes

# Time for which a restarted node watches the row of its earlier run.
SqlNodes.__init__.__kwdefaults__.update(watch_s=2.0)
TaskTiming.__init__.__kwdefaults__.update(lease_s=10.0, extend_s=3.0, idle_s=1.0)

try:
    from gateway_nodes.postgres import pool
except ImportError:
    pass
else:
    # Shorter than the outages after a lost response.
    pool._TIMEOUT_S = 1.0
"""
_STOP_S = 150
_BUCKET = "outputs"
_SIGNED = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, Signature=0"
_S3_SERVER = "from moto.server import main; main()"


@attrs.frozen
class Absence:
    """The time in which a process could do nothing, in Unix seconds."""

    pid: int
    since: float
    until: float = float("inf")


class Node(Gateway):
    """A node that starts in the background."""

    # Nodes may run another release.
    is_forked = False

    def __init__(self, name: str, folder: Path, chain, keys: Sequence[str], **variables) -> None:
        folder.mkdir()
        several = {"GATEWAY_SETTLEMENT_KEYS": ",".join(keys)} if len(keys) > 1 else {}
        super().__init__(folder, chain, "" if several else keys[0], **variables, **several)
        (self.site / "slow_provider.py").write_text(PLUGIN)
        self.name = name
        self.lives = 0
        # How often it exited on its own, for example because the database was down at its start.
        self.ended = 0

    def take(self, release: Release) -> None:
        """Use a release from the next start on."""
        root = release.folder
        paths = [root, root / "providers", root / "plugins", self.site]
        self.environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
        self.patch(release.patch + HURRIED, before_imports=True)

    def begin(self, *, again: bool = False) -> None:
        """Start it again, under a new name or under the last one."""
        self.lives += not again
        self.environment["GATEWAY_NODE"] = f"{self.name}-{self.lives}"
        self.process = self._run()

    def faults(self) -> list[str]:
        """Return the errors in the logs of all lives."""
        logged = [json.loads(line) for line in self.log.read_text().splitlines() if line[:1] == "{"]
        levels = ("error", "critical")
        return [f"{self.name}: {line}" for line in logged if line.get("level") in levels]

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: int) -> None:
        self.process.send_signal(number)


@attrs.define
class Cluster:
    """The nodes behind a load balancer, and their shared services."""

    folder: Path
    nodes: list[Node]
    server: PostgresServer
    database: str
    chain: RemoteChain
    s3: str
    chance: random.Random
    # The nodes' way to the database, which can lose the response of a COMMIT.
    way: LossyProxy
    absences: list[Absence] = attrs.field(factory=list)

    def start(self) -> None:
        """Start all nodes at once, and return when each of them sells."""
        for node in self.nodes:
            node.begin()
        for node in self.nodes:
            until(node._is_up)

    def request(self, method: str, path: str, body=None, headers=None):
        """Send a request to any node; the caller notices if it is down."""
        return self.chance.choice(self.nodes).request(method, path, body, headers)

    def revive(self) -> None:
        """Start every node that has exited on its own, as its machine would."""
        for node in self.nodes:
            if not node.is_alive():
                node.ended += 1
                node.begin()

    def kill(self, node: Node, *, again: bool = False) -> None:
        """Kill a node by SIGKILL, and start it again under its name or a new one."""
        if node.is_alive():
            node.kill()
            self.absences.append(Absence(node.process.pid, time.time()))
        node.begin(again=again)

    def replace(self, node: Node, release: Release) -> None:
        """Stop a node as its machine does, and return when it sells with another release."""
        node.stop()
        node.process.wait(_STOP_S)
        self.absences.append(Absence(node.process.pid, time.time()))
        node.take(release)
        node.begin(again=True)
        until(node._is_up)

    def pause(self, node: Node, seconds: float) -> None:
        """Pause a node; its sockets stay open."""
        since = time.time()
        node.send(signal.SIGSTOP)
        time.sleep(seconds)
        if node.is_alive():
            node.send(signal.SIGCONT)
        self.absences.append(Absence(node.process.pid, since, time.time()))

    def rows(self, sql: str, *parameters) -> list[dict]:
        """Return the rows of a query, in a session of its own."""
        import psycopg
        from psycopg.rows import dict_row

        with psycopg.connect(self.database, row_factory=dict_row, autocommit=True) as db:
            return db.execute(sql.encode(), parameters or None).fetchall()

    def fetch_outputs(self, task_id: str) -> list[int]:
        """Fetch a task's outputs like its buyer, by the links of any node; returns their sizes.

        Raises `OSError` if one cannot be fetched.
        """
        _, task = self.request("GET", f"/api/task/{task_id}")
        links = [output["url"] for output in task["result"]["outputs"]]
        return [len(urllib.request.urlopen(link, timeout=30).read()) for link in links]

    def read_output(self, key: str) -> bytes | None:
        """Return an object of the bucket, or None."""
        where = f"{self.s3}/{_BUCKET}/{key.removeprefix(SCHEME)}"
        try:
            return _ask_bucket(where)
        except urllib.error.HTTPError:
            return None


def _ask_bucket(where: str, method: str = "GET") -> bytes:
    asked = urllib.request.Request(where, headers={"Authorization": _SIGNED}, method=method)
    with urllib.request.urlopen(asked, timeout=30) as answer:
        return answer.read()


@contextlib.contextmanager
def lossy_way(server: PostgresServer) -> Iterator[LossyProxy]:
    """Run a proxy before the server, on a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work):
        return asyncio.run_coroutine_threadsafe(work, loop).result(30)

    proxy = lossy_proxy(server, reaches_server=True)
    try:
        yield run(proxy.__aenter__())
    finally:
        run(proxy.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextlib.contextmanager
def _s3_server() -> Iterator[str]:
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-c", _S3_SERVER, "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def listens() -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        return False

    try:
        until(listens)
        _ask_bucket(f"http://127.0.0.1:{port}/{_BUCKET}", "PUT")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _variables(folder: Path, database: str, s3: str) -> dict[str, str]:
    """Return the settings that all nodes share."""
    limits = {f"GATEWAY_LIMIT_{name}": "1000000/1s" for name in ("X402", "DIRECT", "TASK")}
    return {
        "SLOW_FOLDER": str(folder),
        "GATEWAY_BASE_URL": "http://gateway.test",
        "GATEWAY_DATABASE_URL": database,
        "GATEWAY_DATABASE_CONNECTIONS": "5",
        "GATEWAY_OUTPUTS_URL": f"s3://{_BUCKET}/shop",
        "GATEWAY_OUTPUTS_ENDPOINT": s3,
        "GATEWAY_OUTPUTS_REGION": "us-east-1",
        "GATEWAY_OUTPUTS_ACCESS_KEY_ID": "key",
        "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY": "hidden",
        "GATEWAY_WORKERS": "4",
        "GATEWAY_TX_PATIENCE": "1",
        **limits,
    }


@contextlib.contextmanager
def prepared(
    folder: Path,
    server: PostgresServer,
    *,
    count: int,
    seed: int,
    keys: int = 1,
    release: Release = PRESENT,
) -> Iterator[Cluster]:
    """Start a chain, a database, a bucket and `count` nodes, and stop them at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        chain_process(folder) as chain,
        server.database() as database,
        lossy_way(server) as way,
        _s3_server() as s3,
    ):
        # All nodes have the same keys, and share their nonces.
        accounts = [Account.create() for _ in range(keys)]
        for account in accounts:
            chain.fund(account.address, eth_wei=10**21, usdc_units=0)
        secrets = [account.key.hex() for account in accounts]
        variables = _variables(folder, way.lead_to(database), s3)
        nodes = []
        for number in range(count):
            name = f"node-{number}"
            node = Node(name, folder / name, chain, secrets, **variables)
            node.take(release)
            nodes.append(node)
        (folder / "calls").touch()
        chance = random.Random(seed)
        cluster = Cluster(folder, nodes, server, database, chain, s3, chance, way)
        try:
            yield cluster
        finally:
            for node in nodes:
                if node.is_alive():
                    node.kill()
