"""A restart of the gateway behind each proxy: no purchase is lost or paid twice."""

import http.client
import json
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import WALLET, Payer
from tests.proof.process.gateway_process import PATIENCE_S, PROMPT, until
from tests.proof.proxies.proxy import Proxy, version_of

# Since this version Caddy retries a request with a body whose connection failed.
CADDY_WAITS = (2, 11, 2)
# The page promises 15 s.
WAIT_S = 12


@pytest.fixture
def proxy_and_gateway(name, serve):
    """A proxy of the test's own, and the gateway, which the test restarts."""
    gateway = serve("hypercorn")
    with gateway.lent(), Proxy(name, gateway.port) as proxy:
        gateway.let_go()
        yield proxy, gateway


def waits(name: str) -> bool:
    """Whether a proxy holds a purchase while it cannot connect."""
    return name == "haproxy" or (name == "caddy" and version_of(name) >= CADDY_WAITS)


def buy(proxy, header):
    return proxy.ask("POST", "/api/x402/slow", {"prompt": PROMPT}, {"X-PAYMENT": header})


def test_a_purchase_between_two_processes(proxy_and_gateway, name, shop):
    proxy, gateway = proxy_and_gateway
    header = Payer(shop).header()
    gateway.stop()
    assert gateway.process.wait(PATIENCE_S) == 0
    stopped = time.monotonic()
    with ThreadPoolExecutor() as threads:
        buying = threads.submit(buy, proxy, header)
        if name == "nginx":
            # It does not wait at all.
            assert_is_asked_again(buying.result())
        gateway.start()
        down_s = time.monotonic() - stopped
    first = buying.result()
    if first.status != 200:
        assert not waits(name) or down_s > WAIT_S
        assert_is_asked_again(first)
    again = buy(proxy, header)
    assert again.status == 200
    assert first.status == 503 or first.json() == again.json()


def assert_is_asked_again(answer) -> None:
    """Check a response that the proxy generated."""
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.body) == {
        "error": "The gateway is restarting. Send the same request again, with the same payment.",
        "code": "EXECUTION_ERROR",
    }


class Buyer(threading.Thread):
    """Buys again and again, and repeats each purchase until its 200."""

    def __init__(self, proxy, payer) -> None:
        super().__init__(daemon=True)
        self.tasks: list[str] = []
        self.seen: Counter[int | str] = Counter()
        self._proxy = proxy
        self._payer = payer
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            header = self._payer.header()
            self.tasks.append(until(lambda: self._attempt(header)))  # noqa: B023 - called at once

    def _attempt(self, header) -> str | None:
        try:
            answer = buy(self._proxy, header)
        except (OSError, http.client.HTTPException):
            # HAProxy closes a client's connection like this when the gateway has closed its own.
            self.seen["no answer"] += 1
            return None
        self.seen[answer.status] += 1
        return answer.json()["taskId"] if answer.status == 200 else None

    def end(self) -> None:
        self._over.set()
        self.join()


def test_a_restart_under_load_loses_no_purchase(proxy_and_gateway, name, shop):
    proxy, gateway = proxy_and_gateway
    before = shop.usdc_balance(WALLET)
    buyers = [Buyer(proxy, Payer(shop)) for _ in range(3)]
    for buyer in buyers:
        buyer.start()
    until(lambda: all(buyer.tasks for buyer in buyers))
    gateway.stop()
    assert gateway.process.wait(PATIENCE_S) == 0
    gateway.start()
    sold = [len(buyer.tasks) for buyer in buyers]
    until(lambda: all(len(buyer.tasks) > old for buyer, old in zip(buyers, sold, strict=True)))
    for buyer in buyers:
        buyer.end()
    seen = sum((buyer.seen for buyer in buyers), Counter())
    assert set(seen) <= {200, 503} | ({"no answer"} if name == "haproxy" else set())
    tasks = [task for buyer in buyers for task in buyer.tasks]
    assert len(set(tasks)) == len(tasks)
    assert shop.usdc_balance(WALLET) - before == 20_000 * len(tasks)
