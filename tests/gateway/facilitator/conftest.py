"""Fixtures: a facilitator on a port, and a gateway that settles by it."""

import attrs
import pytest
from pytest_httpserver import HTTPServer

from gateway_facilitator_settler.client import TIMEOUTS_S
from gateway_facilitator_settler.settler import FacilitatorTiming
from tests.gateway.facilitator.facilitators import FacilitatorSite, OfficialFacilitator
from tests.waits import FAST, Waits, started_with


@pytest.fixture
def facilitator_timing():
    return FacilitatorTiming(answer_s=0.3)


@pytest.fixture
def facilitator_calls_s():
    return TIMEOUTS_S


@pytest.fixture(autouse=True)
def _fast(facilitator_timing, facilitator_calls_s):
    waits = Waits(
        outcome_s=2.0,
        settlement=FAST,
        facilitator=facilitator_timing,
        facilitator_calls_s=facilitator_calls_s,
    )
    with started_with(waits):
        yield


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
