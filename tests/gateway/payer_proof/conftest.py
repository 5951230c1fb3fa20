"""Fixtures: a chain endpoint that may lose transactions, and drivers that poll it often."""

import attrs
import pytest

from gateway.payments.settlement import SettlementTiming
from tests.conftest import running
from tests.gateway.payer_proof.purchases import LossyRpc
from tests.waits import Waits, started_with

OFTEN = SettlementTiming(poll_s=0.05, full_check_s=0.2, sweep_s=0.1)


@pytest.fixture(autouse=True)
def _hurry():
    """Poll often, with the same rules."""
    with started_with(Waits(settlement=OFTEN)):
        yield


@pytest.fixture
def rpc(chain):
    with LossyRpc(chain) as endpoint:
        yield endpoint


@pytest.fixture
def settings(settings, rpc):
    return attrs.evolve(settings, rpc_urls=(rpc.url,))


@pytest.fixture
async def strict(settings, provider, clock):
    """Yield a gateway that accepts a transfer only with its sender's signature."""
    required = attrs.evolve(settings, require_payer_signature=True)
    async with running(required, provider, now=clock) as started:
        await started.services.payments.cutoff_block()
        yield started
