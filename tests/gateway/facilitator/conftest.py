"""Fixtures: a facilitator on a port, and a gateway that settles by it."""

import attrs
import pytest
from pytest_httpserver import HTTPServer

from tests.gateway.facilitator.facilitators import FacilitatorSite, OfficialFacilitator


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    for name, seconds in {
        "gateway.payments.accept._OUTCOME_S": 2.0,
        "gateway.payments.settlement._FIRST_LOOK_S": 0.02,
        "gateway.payments.settlement._LOOK_S": 0.05,
        "gateway.payments.settlement._DRIVE_S": 2.0,
        "gateway.payments.settlement._SWEEP_S": 0.1,
        "gateway_facilitator_settler.settler._ANSWER_S": 0.3,
    }.items():
        monkeypatch.setattr(name, seconds)


@pytest.fixture
def versions():
    return (1, 2)


@pytest.fixture(scope="session")
def facilitator_server():
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def site(facilitator_server, chain, versions):
    opened = FacilitatorSite(facilitator_server, OfficialFacilitator(chain, versions))
    yield opened
    opened.heal()


@pytest.fixture
def settings(settings, site):
    return attrs.evolve(settings, settlement="facilitator", facilitator_url=site.url)
