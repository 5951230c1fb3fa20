"""Buyers' requests get the gateway's responses through each proxy."""

import base64
import contextlib
import functools
import http.client
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import PNG, Payer
from tests.proof.process.gateway_process import PROMPT
from tests.proof.process.test_payment_header_size import MAX_BYTES, payment_of
from tests.proof.proxies.conftest import DIRECT_LIMIT
from tests.proof.proxies.proxy import FILES, NAMES, ask

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="clients have addresses in 127.0.0.0/8"
)
ROOT = Path(__file__).parents[3]
# Headers that each hop rewrites, and those that Caddy and Hypercorn add or remove.
HOPS = {"alt-svc", "connection", "date", "keep-alive", "server", "transfer-encoding", "via"}
# The limit is 11,000,000 bytes.
LARGE = 10_900_000


def address_of(name: str, number: int) -> str:
    """Return a client address that no other test uses."""
    return f"127.0.{NAMES.index(name) + 1}.{number}"


def test_the_page_has_the_configuration_of_each_proxy():
    page = (ROOT / "docs" / "deploy-server.md").read_text("utf-8")
    for file in FILES.values():
        assert f"| [deploy/{file}](../deploy/{file}) |" in page


def test_every_price_comes_with_its_whole_head(proxy, gateway):
    _, manifest = gateway.request("GET", "/.well-known/x402.json")
    paths = set(re.findall(r"/api/x402/[\w-]+", str(manifest)))
    assert "/api/x402/slow" in paths
    for path in paths:
        own = ask_gateway(gateway, path)
        answer = proxy.ask("POST", path, b"")
        assert (answer.status, answer.json()) == (own.status, own.json())
        assert fields(answer) == fields(own)
        assert "payment-required" in fields(answer)


def ask_gateway(gateway, path):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    with contextlib.closing(connection):
        return ask(connection, "POST", path, b"")


def fields(answer) -> dict[str, str]:
    """Return the headers that a proxy must forward unchanged."""
    named = {name.lower(): value for name, value in answer.headers.items()}
    return {name: value for name, value in named.items() if name not in HOPS | {"x-request-id"}}


def test_a_purchase_and_its_file(proxy, gateway, shop):
    gateway.let_go()
    paid = {"X-PAYMENT": Payer(shop).header()}
    sold = proxy.ask("POST", "/api/x402/slow", {"prompt": PROMPT}, paid)
    assert sold.status == 200, sold.body
    receipt = base64.b64decode(sold.headers["X-PAYMENT-RESPONSE"])
    assert b'"success":true' in receipt.replace(b" ", b"")
    task = proxy.ask("GET", f"/api/task/{sold.json()['taskId']}?wait=30").json()
    assert task["status"] == "completed"
    url = urlsplit(task["result"]["outputs"][0]["url"])
    assert proxy.ask("GET", f"{url.path}?{url.query}").body == PNG


def test_each_event_comes_at_once(proxy, gateway, shop):
    sold = gateway.bought(Payer(shop).header())
    with contextlib.closing(proxy.connect()) as connection:
        connection.request("GET", f"/api/task/{sold}", headers={"Accept": "text/event-stream"})
        stream = connection.getresponse()
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        # The task ends only now, so this event did not wait for the end of the response.
        assert b'"done":false' in next_event(stream)
        gateway.let_go()
        while b'"done":true' not in (event := next_event(stream)):
            assert event
        assert stream.read().strip() == b""


def next_event(stream) -> bytes:
    """Return the data of the next event; empty at the end."""
    while line := stream.readline():
        if line.startswith(b"data: "):
            return line
    return b""


def test_a_large_upload_reaches_the_gateway(proxy, name):
    source = address_of(name, 2)
    body = {"slug": "slow", "prompt": PROMPT, "padding": "x" * LARGE}
    answer = proxy.ask("POST", "/api/proxy-generate", body, source=source)
    assert (answer.status, answer.json()["error"]) == (400, "txHash is missing.")


def test_the_gateways_own_refusal_of_a_body_comes_through(proxy):
    # A proxy still accepts this much after an early response.
    body = {"prompt": PROMPT, "padding": "x" * 200_000}
    answer = proxy.ask("POST", "/api/x402/slow", body)
    assert (answer.status, answer.json()["code"]) == (413, "VALIDATION_ERROR")


def test_a_payment_header_of_32_kib_reaches_the_gateway(proxy):
    paid = {"PAYMENT-SIGNATURE": payment_of(MAX_BYTES).decode()}
    answer = proxy.ask("POST", "/api/x402/slow", {"prompt": PROMPT}, paid)
    assert (answer.status, answer.json()["error"]) == (402, "invalid_x402_version")


def test_limits_count_by_the_clients_address_whatever_it_says(proxy, name):
    forged = [{"X-Real-IP": f"192.0.2.{number}"} for number in range(DIRECT_LIMIT + 1)]
    ask = functools.partial(proxy.ask, "POST", "/api/proxy-generate", {})
    statuses = [ask(one, source=address_of(name, 3)).status for one in forged]
    assert statuses == [400] * DIRECT_LIMIT + [429]
    assert ask(source=address_of(name, 4)).status == 400
