"""A new chain for every test, which takes a few milliseconds to start."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from web3 import Web3
from web3.contract import Contract

from gateway_demo.chain import PlayChain
from gateway_demo.chain import contracts as chain_contracts


@pytest.fixture
def chain() -> Iterator[PlayChain]:
    with PlayChain() as chain:
        yield chain


@pytest.fixture
def web3(chain: PlayChain) -> Iterator[Web3]:
    provider = Web3.HTTPProvider(chain.rpc_url)
    yield Web3(provider)
    for session in provider._request_session_manager.session_cache._data.values():
        session.close()


@pytest.fixture
def usdc(web3: Web3, chain: PlayChain) -> Contract:
    return web3.eth.contract(chain.usdc, abi=chain_contracts.load("PlayUSDC").abi)


@pytest.fixture
def payer(chain: PlayChain) -> LocalAccount:
    """An account with 1 play ETH and 100 play USDC."""
    account = Account.from_key(secrets.token_bytes(32))
    chain.fund(account.address)
    return account


@pytest.fixture
def wallet() -> str:
    """An unused address."""
    return Account.from_key(secrets.token_bytes(32)).address
