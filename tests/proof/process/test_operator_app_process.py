"""A process's first request is for one of the operator's pages, on each server."""

import http.client
import json
import socket

import pytest

from tests.conftest import one_server
from tests.proof.process.gateway_process import Gateway, until

# No warm-up while the file exists, and no earlier response.
COLD = """
import asyncio, os, pathlib
import gateway.chain.client as client
start = client.Web3Chain.start
async def wait_and_start(self):
    while not pathlib.Path(os.environ["SLOW_FOLDER"], "warm").exists():
        await asyncio.sleep(0.02)
    await start(self)
client.Web3Chain.start = wait_and_start
"""


@pytest.fixture
def cold(tmp_path, chain, key, http_server):
    """Run a gateway that has served no request, and warms up only when the test allows it."""
    gateway = Gateway(tmp_path, chain, key, GATEWAY_SERVER=http_server)
    gateway.patch(COLD, before_imports=True)
    gateway.process = gateway._run()
    try:
        until(lambda: _listens(gateway))
        yield gateway
    finally:
        gateway.kill()


def _listens(gateway) -> bool:
    assert gateway.process.poll() is None, gateway.log.read_text()
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", gateway.port)) == 0


def _ask(gateway, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


@pytest.mark.full
@one_server
def test_the_operator_logs_in_before_anything_is_warm(cold):
    password = json.dumps({"password": "correct horse"})
    asked = {"Content-Type": "application/json", "X-Request-Id": "first"}
    status, headers, _ = _ask(cold, "POST", "/admin/login", password, **asked)
    assert status == 200
    assert headers["X-Request-Id"] == "first"
    cookie = "; ".join(set_.partition(";")[0] for set_ in headers.get_all("Set-Cookie"))
    status, _, page = _ask(cold, "GET", "/admin", Cookie=cookie)
    assert status == 200
    assert b"<h1" in page
    assert _ask(cold, "HEAD", "/admin/none")[0] == 404
    first = cold.events("request")[0]
    assert (first["rule"], first["status"], first["request"]) == ("/admin/login", 200, "first")
    (cold.folder / "warm").touch()
    cold.stop()
    assert cold.process.wait(60) == 0
