"""The real server, killed between a task's end and its event, and during a receiver's answer."""

import http.server
import threading

import attrs
import pytest
from standardwebhooks import Webhook

from tests.conftest import Payer
from tests.proof.process.gateway_process import Gateway, until

# The task's end is durable, and its event waits in the outbox, then in the plugin's queue. Nothing
# has been sent.
DIES = """
import os, pathlib
from gateway.store import events
from gateway_webhooks import deliveries, queue

def die(moment):
    if (pathlib.Path(os.environ["SLOW_FOLDER"]) / f"die-{moment}").exists():
        os.kill(os.getpid(), 9)

plain_take, plain_add = events.SqlEvents.take, queue._add
plain_attempt = deliveries.Deliveries._attempt

async def take(self, reader, function, **named):
    die("before-taking")
    return await plain_take(self, reader, function, **named)

def add(*arguments):
    plain_add(*arguments)
    die("while-taking")

async def attempt(self, event):
    die("before-sending")
    return await plain_attempt(self, event)

events.SqlEvents.take, queue._add = take, add
deliveries.Deliveries._attempt = attempt
"""


@attrs.define
class Receiver:
    """A server in the test's process, which outlives every gateway."""

    requests: list = attrs.field(factory=list)  # (headers, body)
    held: threading.Event = attrs.field(factory=threading.Event)  # set: answers wait
    let_go: threading.Event = attrs.field(factory=threading.Event)
    url: str = ""

    def receive(self, headers, body) -> None:
        self.requests.append(({name.lower(): value for name, value in headers.items()}, body))
        if self.held.is_set():
            self.let_go.wait(100)


@pytest.fixture
def receiver():
    receiver = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            receiver.receive(self.headers, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            pass  # whom it answers may have been killed

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    receiver.url = f"http://127.0.0.1:{server.server_port}/SECRET"
    yield receiver
    receiver.let_go.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def gateway(tmp_path, chain, key):
    started = Gateway(tmp_path, chain, key, GATEWAY_WEBHOOKS="local")
    started.patch(DIES)
    started.let_go()
    yield started
    if started.process is not None:
        started.kill()


def bought(gateway, chain, receiver) -> dict:
    about = {"X-PAYMENT": Payer(chain).header()}
    body = {"prompt": "a boat", "callbackUrl": receiver.url}

    def attempt():
        try:
            status, started = gateway.request("POST", "/api/x402/slow", body, about)
        except TimeoutError:  # a busy machine; the same payment gives the same task
            return None
        assert status == 200, started
        return started

    return until(attempt)


@pytest.mark.parametrize("moment", ["before-taking", "while-taking", "before-sending"])
def test_a_kill_between_a_tasks_end_and_its_event_loses_no_event(gateway, chain, receiver, moment):
    gateway.start()
    # The task waits for the test, so the purchase is answered first.
    (gateway.folder / "go").unlink()
    started = bought(gateway, chain, receiver)
    (gateway.folder / f"die-{moment}").touch()
    gateway.let_go()
    gateway.process.wait(100)
    assert receiver.requests == []
    (gateway.folder / f"die-{moment}").unlink()
    gateway.start()
    until(lambda: receiver.requests)
    headers, body = receiver.requests[0]
    event = Webhook(started["callbackSecret"]).verify(body, headers)
    assert event["type"] == "task.completed"
    assert event["data"]["taskId"] == started["taskId"]
    assert headers["webhook-id"] == f"msg_task_completed_{started['taskId']}"


def test_a_kill_while_the_receiver_answers_repeats_the_event_under_its_id(gateway, chain, receiver):
    receiver.held.set()
    gateway.start()
    started = bought(gateway, chain, receiver)
    until(lambda: receiver.requests)
    gateway.kill()
    receiver.held.clear()
    gateway.start()
    until(lambda: len(receiver.requests) >= 2)
    ids = {headers["webhook-id"] for headers, _ in receiver.requests}
    assert ids == {f"msg_task_completed_{started['taskId']}"}
    until(lambda: gateway.events("webhook.delivered"))
    assert "SECRET" not in gateway.log.read_text()
