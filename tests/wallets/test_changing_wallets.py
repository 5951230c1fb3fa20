"""Wallets that say yes while we ask and no when we pay: what that may cost us is bounded."""

import attrs
import pytest

from gateway.demo.chain_server import RpcServer
from gateway.usdc import AUTHORIZATION_STATE
from tests.conftest import WALLET
from tests.wallets.accounts import hostile, yes_after
from tests.wallets.buying import bought, until

ONLY_IN_SIMULATIONS = yes_after("3a15600a5760006000fd5b")  # reverts unless the gas price is zero
MOST_TRIES = 3


@pytest.fixture
def looks(chain):
    """The number of times that the gateway asked about a nonce, through this endpoint."""
    seen = []

    def answer(body: bytes) -> bytes:
        if AUTHORIZATION_STATE.hex().encode() in body:
            seen.append(body)
        return chain.rpc.answer(body)

    server = RpcServer(answer, host="127.0.0.1", port=0)
    server.start()
    yield seen, server.url
    server.stop()


@pytest.fixture
def settings(settings, looks):
    return attrs.evolve(settings, rpc_urls=(looks[1],))


async def test_a_wallet_that_says_yes_only_in_simulations_costs_a_few_transactions(
    gateway, chain, gas_key, looks
):
    """Every transaction that reverts costs us gas, and a wallet could make that go on and on."""
    seen, _ = looks
    await bought(gateway, hostile(chain, ONLY_IN_SIMULATIONS).header())
    await until(lambda: len(seen) > 100)
    sent = int(chain.rpc.result("eth_getTransactionCount", gas_key.address, "latest"), 16)
    assert 1 <= sent <= MOST_TRIES
    assert chain.usdc_balance(WALLET) == 0
