"""Fixtures: a chain endpoint that may lose what is sent, and little patience with unknowns."""

import attrs
import pytest

from tests.conftest import running
from tests.gateway.payer_proof.purchases import LossyRpc


@pytest.fixture(autouse=True)
def _hurry(monkeypatch):
    """Answer an unknown outcome soon, and look again often; the rules are the same."""
    for name, seconds in {
        "accept._OUTCOME_S": 0.5,
        "settlement._LOOK_S": 0.05,
        "settlement._DRIVE_S": 1.0,
        "settlement._SWEEP_S": 0.1,
    }.items():
        monkeypatch.setattr(f"gateway.payments.{name}", seconds)


@pytest.fixture
def rpc(chain):
    with LossyRpc(chain) as endpoint:
        yield endpoint


@pytest.fixture
def settings(settings, rpc):
    return attrs.evolve(settings, rpc_urls=(rpc.url,))


@pytest.fixture
async def strict(settings, provider, clock):
    """Yield a gateway that takes a transfer only with its sender's signature."""
    required = attrs.evolve(settings, require_payer_signature=True)
    async with running(required, provider, now=clock) as started:
        await started.services.payments.cutoff_block()
        yield started
