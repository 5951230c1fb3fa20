"""Idle connections between a proxy and the gateway: the proxy closes them, so none is lost."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gateway.web.server.connection_limits import KEEP_ALIVE_S
from tests.conftest import Payer
from tests.proof.process.gateway_process import PATIENCE_S, PROMPT
from tests.proof.proxies.proxy import Proxy, configurations
from tests.proof.proxies.relay import Relay

# The lines that set the idle time.
IDLE = {
    "caddy": "keepalive 20s",
    "nginx": "keepalive_timeout 20s",
    "haproxy": "pool-purge-delay 5s",
}
# The default idle times without that line.
DEFAULTS_S = {"caddy": 120, "nginx": 60, "haproxy": 5}
# One-way delay between proxy and gateway: a close is noticed only after it.
DELAY_S = 0.15


def idle_s(name: str) -> int:
    return int(re.search(r"\d+", IDLE[name])[0])


def idle(name: str, text: str) -> dict[str, str]:
    """Return the replacement that sets another idle time."""
    return {IDLE[name]: IDLE[name].rpartition(" ")[0] + " " + text}


def test_the_configurations_name_times_shorter_than_the_gateways():
    for name, text in configurations().items():
        assert IDLE[name] in text
        assert max(idle_s(name), DEFAULTS_S[name]) < KEEP_ALIVE_S / 2


def test_the_proxy_closes_an_idle_connection_first(name, serve):
    with Relay(0, DELAY_S) as relay, Proxy(name, relay.port, idle(name, "200ms")) as proxy:
        for server in ("hypercorn", "uvicorn"):
            relay.target_port = serve(server).port
            assert proxy.ask("GET", "/api/health").status == 200
            assert relay.closed.get(timeout=PATIENCE_S) == "proxy"


def test_a_connection_to_the_gateway_serves_several_clients(name, serve):
    with Relay(serve("hypercorn").port) as relay, Proxy(name, relay.port) as proxy:
        for _ in range(3):
            assert proxy.ask("GET", "/api/health").status == 200
        # HAProxy opens a connection for each new client.
        assert relay.opened == 1 or name == "haproxy"


@pytest.mark.full  # minutes of silence
@pytest.mark.parametrize("block", ["the page's", "the default's"])
def test_a_purchase_after_a_silence_is_never_a_502(name, block, http_server, serve, shop):
    """Around the times at which the proxy closes, and at which the gateway once closed: 30 s."""
    gateway = serve(http_server)
    long_s = idle_s(name) if block == "the page's" else DEFAULTS_S[name]
    changes = {} if block == "the page's" else idle(name, f"{long_s}s")
    silences = [around + late for around in {long_s, 30} for late in (-0.3, -0.15, 0, 0.15, 0.3)]

    def buy_after(silence_s: float) -> int:
        with Relay(gateway.port, DELAY_S) as relay, Proxy(name, relay.port, changes) as proxy:
            assert proxy.ask("GET", "/api/health").status == 200
            header = Payer(shop).header()
            time.sleep(silence_s)
            paid = {"X-PAYMENT": header}
            return proxy.ask("POST", "/api/x402/slow", {"prompt": PROMPT}, paid).status

    with ThreadPoolExecutor(len(silences)) as threads:
        statuses = dict(zip(silences, threads.map(buy_after, silences), strict=True))
    assert set(statuses.values()) == {200}, statuses
