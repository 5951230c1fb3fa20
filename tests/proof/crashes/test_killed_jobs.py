"""The real server killed while a vendor works: each job is billed once and submitted once."""

import http.server
import json
import threading
from pathlib import Path

import attrs
import pytest

from tests.conftest import Payer
from tests.proof.process.gateway_process import Gateway, until

PLUGIN = Path(__file__).with_name("vendor_plugin.py")


@attrs.define
class Vendor:
    """An HTTP API in the test's process, which outlives every gateway."""

    submits: list = attrs.field(factory=list)  # (kind, task)
    polls: list = attrs.field(factory=list)
    held: threading.Event = attrs.field(factory=threading.Event)  # set: answers to submits wait
    let_go: threading.Event = attrs.field(factory=threading.Event)
    is_done: bool = False

    def submitted(self, kind, task):
        self.submits.append((kind, task))
        if self.held.is_set():
            self.let_go.wait(30)
        return {"id": "job-1"} if kind == "jobs" else {"text": "# Done"}

    def polled(self, path):
        self.polls.append(path)
        return {"text": "# Done"} if self.is_done else {}


def served_by(vendor):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.tell(vendor.submitted(self.path.split("/")[1], body["task"]))

        def do_GET(self):
            self.tell(vendor.polled(self.path))

        def tell(self, answer):
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            pass  # whom it answers may have been killed

    return Server(("127.0.0.1", 0), Handler)


@pytest.fixture
def vendor():
    return Vendor()


@pytest.fixture
def gateway(tmp_path, chain, key, vendor):
    server = served_by(vendor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    started = Gateway(tmp_path, chain, key, VENDOR_URL=url, GATEWAY_WORKERS="3")
    started.install("vendor_plugin", PLUGIN.read_text())
    started.start()
    yield started
    vendor.let_go.set()
    started.kill()
    server.shutdown()
    server.server_close()


def bought(gateway, chain, slug):
    about = {"X-PAYMENT": Payer(chain).header()}
    status, body = gateway.request("POST", f"/api/x402/{slug}", {"prompt": "a boat"}, about)
    assert status == 200, body
    return body["taskId"]


def test_a_job_survives_kill_9_twice_and_is_submitted_once(gateway, chain, vendor):
    task_id = bought(gateway, chain, "jobs")
    for _ in range(2):
        vendor.polls.clear()
        until(lambda: vendor.polls)
        gateway.kill()
        gateway.start()
    vendor.is_done = True
    task = gateway.task(task_id, wait_s=20)
    assert (task["status"], task["attempt"], task["result"]["text"]) == ("completed", 1, "# Done")
    assert vendor.submits == [("jobs", task_id)]
    assert set(vendor.polls) == {"/jobs/jobs/job-1"}


def test_submits_that_kill_9_interrupted_are_repeated_only_if_that_bills_nothing_twice(
    gateway, chain, vendor
):
    vendor.held.set()
    tasks = {slug: bought(gateway, chain, slug) for slug in ("jobs", "billed", "again")}
    until(lambda: len(vendor.submits) == 3)
    gateway.kill()
    vendor.let_go.set()
    gateway.start()
    for slug in ("jobs", "billed"):
        task = gateway.task(tasks[slug], wait_s=20)
        assert (task["status"], task["details"]) == ("failed", "uncertain_submit")
        assert task["refund"]["state"] == "refund_due"
    task = gateway.task(tasks["again"], wait_s=20)
    # A death is no attempt.
    assert (task["status"], task["attempt"]) == ("completed", 1)
    assert sorted(vendor.submits) == sorted([*tasks.items(), ("again", tasks["again"])])
