"""What all proofs share: the programs that they start end by Ctrl-C; a key that pays for gas."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _programs_hear_ctrl_c() -> Iterator[None]:
    """Undo a shell script, which lets what it starts in its background ignore SIGINT.

    A program inherits that; it does not inherit a handler.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def key(chain) -> str:
    """The settlement key of a gateway in a process, with ETH for gas."""
    from eth_account import Account

    account = Account.create()
    chain.fund(account.address, eth_wei=10**18, usdc_units=0)
    return account.key.hex()
