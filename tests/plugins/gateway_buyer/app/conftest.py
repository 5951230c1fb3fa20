"""An unknown gateway, a buyer with short timeouts, and the command."""

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway_buyer.purchase import Buyer, Order, Timing
from gateway_buyer.records import Records
from tests.plugins.gateway_buyer.app.strange_gateway import SLUG, StrangeGateway


@pytest.fixture
def strange(httpserver):
    gateway = StrangeGateway(httpserver)
    gateway.open()
    return gateway


@pytest.fixture
def messages():
    """Messages of the buyer."""
    return []


@pytest.fixture
def buyer(tmp_path, messages):
    timing = Timing(pauses_s=(0.01, 0.01), poll_s=0.01)
    return Buyer(records=Records(tmp_path / "purchases"), report=messages.append, timing=timing)


@pytest.fixture
def order(strange):
    return Order(url=strange.url, slug=SLUG, body={"prompt": "a boat"}, key="key-1")


@pytest.fixture
def run(strange, tmp_path, monkeypatch):
    """Run `gateway buy` with arguments at the unknown gateway."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "bought").mkdir()
    monkeypatch.chdir(tmp_path / "bought")

    def type_in(*words, url=None):
        given = ["buy", *words, "--url", url or strange.url]
        return CliRunner().invoke(main, given, prog_name="gateway")

    return type_in
