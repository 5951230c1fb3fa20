"""Fixtures: an endpoint with faults, and short waits."""

import attrs
import pytest

from tests.gateway.settlement.faulty_rpc import FaultyRpc
from tests.waits import FAST, Waits, started_with


@pytest.fixture(autouse=True)
def _fast():
    with started_with(Waits(outcome_s=0.5, settlement=FAST)):
        yield


@pytest.fixture
def rpc(chain):
    with FaultyRpc(chain) as endpoint:
        yield endpoint


@pytest.fixture
def settings(settings, rpc):
    return attrs.evolve(settings, rpc_urls=(rpc.url,))
