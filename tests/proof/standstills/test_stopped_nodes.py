"""Two nodes on PostgreSQL: one is stopped for longer than its leases, and the other takes over.

`tests/gateway/postgres/test_resumed_nodes.py` has the same in one process.
"""

import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.conftest import Payer
from tests.proof.process.gateway_process import until
from tests.proof.standstills.stopped_gateway import Buyer, Step, StoppedGateway, find_outcome

_PATIENCE_S = 60
# Leases as short as a test waits.
_HURRIED = """
from gateway.tasks.timing import TaskTiming
from gateway_nodes import nodes

TaskTiming.__init__.__kwdefaults__.update(lease_s=4.0, extend_s=1.0, idle_s=0.5)
nodes._LEASE_S, nodes._RENEW_EVERY_S = 4.0, 1.0
"""

_BUCKET = {
    "GATEWAY_OUTPUTS_URL": "s3://bucket",
    "GATEWAY_OUTPUTS_REGION": "auto",
    "GATEWAY_OUTPUTS_ACCESS_KEY_ID": "key",
    "GATEWAY_OUTPUTS_SECRET_ACCESS_KEY": "secret",
}
pytestmark = pytest.mark.full


class StoppedNode(StoppedGateway):
    """A node on a shared database."""

    def patch(self, source, *, before_imports=False) -> None:
        super().patch(source + _HURRIED, before_imports=before_imports)

    def rows(self, sql: str) -> list[tuple]:
        import psycopg

        with psycopg.connect(self.environment["GATEWAY_DATABASE_URL"], autocommit=True) as db:
            return db.execute(sql.encode()).fetchall()

    def _open_tasks(self) -> int:
        open_ones = "status IN ('held', 'queued', 'processing')"
        return self.rows(f"SELECT count(*) FROM tasks WHERE {open_ones}")[0][0]


class _Bucket(BaseHTTPRequestHandler):
    """A bucket that takes everything, and keeps nothing."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_) -> None:
        pass


@contextmanager
def _bucket():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Bucket) as server:
        server.daemon_threads, server.block_on_close = True, False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"GATEWAY_OUTPUTS_ENDPOINT": f"http://127.0.0.1:{server.server_port}", **_BUCKET}
        server.shutdown()


@pytest.fixture
def nodes(tmp_path, chain, key, migrated_url):
    """Two nodes; the first leads."""
    with ExitStack() as stack:
        started, bucket = [], stack.enter_context(_bucket())
        for name in ("a", "b"):
            folder = tmp_path / name
            folder.mkdir()
            about = {"GATEWAY_DATABASE_URL": migrated_url, "GATEWAY_NODE": name}
            node = StoppedNode(folder, chain, key, **about, **bucket)
            node.start()
            stack.callback(node.kill)
            started.append(node)
        yield started


def test_a_task_is_delivered_once_if_its_node_stands_still(nodes, chain):
    one, other = nodes
    payer = Payer(chain)
    task_id = one.bought(payer.header())
    until(lambda: one.calls() or other.calls())
    stopped, taking = (one, other) if one.calls() else (other, one)
    taking.let_go()
    stopped.meanwhile = lambda: until(
        lambda: taking.task(task_id)["status"] == "completed", patience_s=_PATIENCE_S
    )
    stopped.stand_still("stopped", 0)
    stopped.let_go()
    assert find_outcome(taking, payer, (200, {})) == "task"
    assert taking.rows("SELECT count(*) FROM tasks WHERE status = 'completed'") == [(1,)]
    # The node that stood still goes on to sell.
    later = stopped.bought(Payer(chain).header())
    assert stopped.task(later, wait_s=20)["status"] == "completed"


@pytest.mark.parametrize("has_effect", [False, True], ids=["unsent", "sent"])
def test_a_payment_settles_once_if_its_node_stands_still(nodes, chain, has_effect):
    one, other = nodes
    payer = Payer(chain)
    header = payer.header()
    for node in nodes:
        node.let_go()

    def is_settled():
        return one.rows("SELECT 1 FROM payments WHERE state = 'settled'")

    one.meanwhile = lambda: until(is_settled, patience_s=_PATIENCE_S)
    method = "eth_sendRawTransaction"
    one.stop_at(Step(method=method, is_reserved=True, has_effect=has_effect, gap_s=0))
    buyer = Buyer(one, header)
    buyer.start()
    assert find_outcome(one, payer, buyer.end()) == "task"
    # The buyer's repetition at the other node gets the same task.
    assert other.bought(header) == buyer.answers[-1][1]["taskId"]
    assert one.rows("SELECT count(*) FROM payments") == [(1,)]
    (signer,) = {row[0] for row in one.rows("SELECT signer FROM sent_transactions")}
    assert int(chain.rpc.result("eth_getTransactionCount", signer, "latest"), 16) == 1
