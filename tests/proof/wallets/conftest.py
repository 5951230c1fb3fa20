"""Fixtures: smart wallets, and fast settlement."""

import pytest

from gateway.payments.settlement import SettlementTiming
from gateway_demo.chain import PlayChain
from tests.proof.wallets.accounts import SmartPayer, Undeployed, smart_payer, undeployed
from tests.waits import Waits, started_with


@pytest.fixture(autouse=True)
def _fast():
    waits = Waits(
        outcome_s=1.0,
        settlement=SettlementTiming(poll_s=0.02, full_check_s=0.1, late_poll_s=0.05, sweep_s=0.1),
    )
    with started_with(waits):
        yield


@pytest.fixture
def smart(chain: PlayChain) -> SmartPayer:
    return smart_payer(chain)


@pytest.fixture
def newcomer(chain: PlayChain) -> Undeployed:
    return undeployed(chain)
