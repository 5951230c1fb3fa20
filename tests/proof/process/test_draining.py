"""Buyers' view of a gateway that stops, as for each new version: sales wait, all else continues."""

import contextlib
import http.client
import json
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.conftest import WALLET, Payer
from tests.proof.process.connections import HEALTH, connected, is_refused, received
from tests.proof.process.gateway_process import PATIENCE_S, PROMPT, until

# No response: refused, reset, or cut off.
NO_ANSWER = "no answer"


def ask(gateway, method, path, body=None, headers=None):
    """Return (status, headers, body), or (NO_ANSWER, {}, b"")."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    about = {"Content-Type": "application/json", **(headers or {})}
    with contextlib.closing(connection):
        try:
            connection.request(method, path, body and json.dumps(body).encode(), about)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        except (OSError, http.client.HTTPException):
            return NO_ANSWER, {}, b""


class Load:
    """Threads that repeat requests and count the statuses of the responses."""

    def __init__(self, gateway, asked) -> None:
        self.counts = {name: Counter() for name in asked}
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(gateway, name, *request), daemon=True)
            for name, request in asked.items()
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, gateway, name, *request) -> None:
        while not self._over.is_set():
            self.counts[name][ask(gateway, *request)[0]] += 1

    def forget(self) -> None:
        """Reset the counts."""
        for counts in self.counts.values():
            counts.clear()

    def has_each(self, times) -> bool:
        """Whether each request was answered that often."""
        return all(counts.total() >= times for counts in self.counts.values())


def purchase(payer):
    return "POST", "/api/x402/slow", {"prompt": PROMPT}, {"X-PAYMENT": payer.header()}


def sold_file(gateway, chain):
    """Buy from the instant provider; returns the path of its file."""
    gateway.let_go()
    sold = gateway.bought(Payer(chain).header())
    assert gateway.task(sold, wait_s=20)["status"] == "completed"
    (output,) = gateway.task(sold)["result"]["outputs"]
    (gateway.folder / "go").unlink()
    return "/" + output["url"].split("/", 3)[3]


def test_a_deploy_under_load_shows_buyers_no_error_but_that_sales_wait(served, chain):
    served.start()
    file = sold_file(served, chain)
    slow = served.bought(Payer(chain).header())
    until(lambda: len(served.calls()) == 2)
    transfer = {"slug": "slow", "txHash": "0x" + "1" * 64, "prompt": PROMPT}
    asked = {
        "poll": ("GET", f"/api/task/{slow}"),
        "file": ("GET", file),
        "health": ("GET", "/api/health"),
        "page": ("GET", "/"),
        "purchase": purchase(Payer(chain)),
        "transfer": ("POST", "/api/proxy-generate", transfer),
    }
    served.stop()
    until(lambda: ask(served, *asked["purchase"])[0] == 503)
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(ask, served, "GET", f"/api/task/{slow}?wait=30")
        with Load(served, asked) as load:
            until(lambda: load.has_each(20))
        assert served.process.poll() is None
        refused = {"purchase", "transfer"}
        assert {name: set(counts) for name, counts in load.counts.items()} == {
            name: {503 if name in refused else 200} for name in asked
        }
        status, headers, body = ask(served, *asked["purchase"])
        assert (status, headers["Retry-After"]) == (503, "20")
        assert json.loads(body) == {
            "error": "The gateway is restarting; nothing was charged. Try again in 20 seconds.",
            "code": "EXECUTION_ERROR",
        }
        served.let_go()
        status, _, body = waiting.result()
    assert (status, json.loads(body)["status"]) == (200, "completed")
    assert served.process.wait(PATIENCE_S) == 0
    assert ask(served, "GET", "/api/health")[0] == NO_ANSWER
    assert chain.usdc_balance(WALLET) == 40_000
    served.start()
    assert served.task(slow)["attempt"] == 1
    assert ask(served, *asked["purchase"])[0] == 200


def test_a_payment_that_settles_at_sigterm_is_settled_and_answered(served, chain):
    served.start()
    served.let_go()
    served.bought(Payer(chain).header())
    chain.set_automine(False)
    with ThreadPoolExecutor() as threads:
        buying = threads.submit(ask, served, *purchase(Payer(chain)))
        until(lambda: chain.node.pool.waiting)
        served.stop()
        until(lambda: ask(served, *purchase(Payer(chain)))[0] == 503)
        chain.set_automine(True)
        status, _, body = buying.result()
    assert status == 200
    assert served.process.wait(PATIENCE_S) == 0
    assert chain.usdc_balance(WALLET) == 40_000
    served.start()
    task = served.task(json.loads(body)["taskId"], wait_s=20)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")


# At shutdown tasks have two seconds instead of 75.
HURRIED = """
from gateway.running.timing import Timing

Timing.__init__.__kwdefaults__["drain_tasks_s"] = 2.0
"""


def test_a_stop_ends_each_kind_of_connection_in_order_and_puts_the_task_down(served, chain):
    served.patch(HURRIED)
    served.start()
    task_id = served.bought(Payer(chain).header())
    until(served.calls)
    poll = f"GET /api/task/{task_id}?wait=30 HTTP/1.1\r\nHost: a\r\n".encode()
    stream = poll + b"Accept: text/event-stream\r\n\r\n"
    with opened(served, poll + b"\r\n", stream, b"", HEALTH) as connections:
        assert connections[1].recv(1, socket.MSG_PEEK)
        served.stop()
        waiting, streaming, *silent = [received(one) for one in connections]
        until(lambda: is_refused(served))
    for answer in (waiting, streaming):
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b'"status":"processing"' in answer
    # The last chunk: the stream has ended properly.
    assert streaming.endswith(b"\r\n0\r\n\r\n")
    assert silent == [b"", b""]
    assert served.process.wait(PATIENCE_S) == 0
    assert "Traceback" not in served.log_text()
    served.let_go()
    served.start()
    assert served.task(task_id, wait_s=20)["status"] == "completed"
    # Of two unfinished bodies, one gets a response, and one is awaited.
    half = b" HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nx"
    with opened(served, b"POST /api/x402/none" + half, b"POST /api/proxy-generate" + half):
        until(lambda: any(line["status"] == 404 for line in served.events("request")))
        served.stop()
        assert served.process.wait(PATIENCE_S) == 0


@contextlib.contextmanager
def opened(gateway, *begun: bytes):
    """Open connections, each of which has sent something."""
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connected(gateway)) for _ in begun]
        for connection, data in zip(connections, begun, strict=True):
            connection.sendall(data)
        yield connections


def test_each_answer_of_a_gateway_that_stops_is_its_connections_last(served, chain):
    """So a proxy has no idle connection that closes while it sends a purchase."""
    served.start()
    slow = served.bought(Payer(chain).header())
    until(lambda: len(served.calls()) == 1)
    asked = {
        "poll": ("GET", f"/api/task/{slow}"),
        "health": ("GET", "/api/health"),
        "page": ("GET", "/"),
        "price": ("POST", "/api/x402/slow", {"prompt": PROMPT}),
    }
    assert {ask(served, *request)[1]["Connection"] for request in asked.values()} == {None}
    served.stop()
    asked["purchase"] = purchase(Payer(chain))
    until(lambda: ask(served, *asked["purchase"])[0] == 503)
    answers = {name: ask(served, *request) for name, request in asked.items()}
    assert {headers["Connection"] for _, headers, _ in answers.values()} == {"close"}
    with contextlib.closing(socket.create_connection(("127.0.0.1", served.port))) as connection:
        connection.sendall(HEALTH + b"\r\n")
        # The server closes it, not the client.
        assert received(connection).startswith(b"HTTP/1.1 200 ")
    served.let_go()
    assert served.process.wait(PATIENCE_S) == 0
