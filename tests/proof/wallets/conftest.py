"""Fixtures: smart wallets, and settlement that does not take its time."""

import pytest

from gateway.demo.chain import PlayChain
from tests.proof.wallets.accounts import SmartPayer, Undeployed, smart_payer, undeployed


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    for name, seconds in {
        "accept._OUTCOME_S": 1.0,
        "settlement._FIRST_LOOK_S": 0.02,
        "settlement._LOOK_S": 0.05,
        "settlement._DRIVE_S": 2.0,
        "settlement._SWEEP_S": 0.1,
    }.items():
        monkeypatch.setattr(f"gateway.payments.{name}", seconds)


@pytest.fixture
def smart(chain: PlayChain) -> SmartPayer:
    return smart_payer(chain)


@pytest.fixture
def newcomer(chain: PlayChain) -> Undeployed:
    return undeployed(chain)
