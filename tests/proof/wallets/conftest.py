"""Fixtures: smart wallets, and fast settlement."""

import pytest
from eth.vm.forks.prague import PragueVM
from eth.vm.forks.prague.transactions import PragueTransactionBuilder

from gateway_demo.chain import PlayChain
from tests.proof.wallets.accounts import SmartPayer, Undeployed, smart_payer, undeployed
from tests.waits import FAST, Waits, started_with


@pytest.fixture(autouse=True)
def _fast():
    with started_with(Waits(outcome_s=1.0, settlement=FAST)):
        yield


@pytest.fixture
def smart(chain: PlayChain) -> SmartPayer:
    return smart_payer(chain)


@pytest.fixture
def newcomer(chain: PlayChain) -> Undeployed:
    return undeployed(chain)


@pytest.fixture
def delegating_chain(monkeypatch):
    """The embedded chain, with support for transactions of type 4 (EIP-7702)."""
    monkeypatch.setattr("gateway_demo.chain.evm.CancunVM", PragueVM)
    monkeypatch.setattr(
        "gateway_demo.chain.pool.CancunTransactionBuilder", PragueTransactionBuilder
    )
    with PlayChain() as running:
        yield running
