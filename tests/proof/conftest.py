"""Shared by all proofs: child programs that react to Ctrl-C, and a key that pays for gas."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _programs_hear_ctrl_c() -> Iterator[None]:
    """Reset SIGINT, which a shell script lets its background programs ignore.

    Programs inherit an ignored signal, but no handler.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def _forking_ends() -> Iterator[None]:
    yield
    from tests.proof.process.forked import end_parent

    end_parent()


@pytest.fixture
def key(chain) -> str:
    """The settlement key of a gateway in a process, with ETH for gas."""
    from eth_account import Account

    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=0)
    return account.key.hex()
