"""Settlements that reverted for an unknown reason, and the work that continues."""

import json

import attrs
import pytest

from tests.conftest import Payer
from tests.gateway.settlement.test_payer_exposure import bought, empty, failures, reverts
from tests.patience import until
from tests.waits import FAST, Waits, started_with


@pytest.fixture(autouse=True)
def _fast():
    with started_with(Waits(outcome_s=1.0, settlement=FAST)):
        yield


@pytest.fixture
def settings(settings, proxy):
    return attrs.evolve(settings, rpc_urls=(proxy.url,))


def forget_state(proxy, payer):
    """Respond about the payer's past like a node that keeps only recent state."""
    address = payer.account.address[2:].lower()

    def pruned(proxy, request, body):
        call, where = request["params"]
        if where == "latest" or address not in call["data"]:
            return 200, proxy.chain.rpc.answer(body)
        error = {"code": -32000, "message": "missing trie node: state is not available"}
        return 200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()

    proxy.break_call("eth_call balanceOf", pruned)


async def test_a_revert_that_cannot_be_explained_keeps_no_other_from_being_judged(
    gateway, chain, proxy, payer
):
    """Its block's state is gone, as after some minutes without the gateway."""
    forget_state(proxy, payer)
    await reverts(gateway, chain, payer, empty(chain, payer))
    other = Payer(chain)
    await reverts(gateway, chain, other, empty(chain, other))

    async def is_other_barred():
        return [failure.payer for failure in await failures(gateway)]

    assert await until(is_other_barred) == [other.account.address.lower()]


async def test_who_made_a_revert_that_stays_unexplained_is_not_shut_out_for_ever(
    gateway, chain, proxy, payer, clock
):
    forget_state(proxy, payer)
    await reverts(gateway, chain, payer, empty(chain, payer))
    clock.offset_s += 700
    chain.advance(700)

    async def is_judged():
        counts = (await gateway.services.store.counts())["payments"]
        return counts == {"released": 1} and not await gateway.services.store.payers.unjudged()

    await until(is_judged)
    chain.fund(payer.account.address)
    header = payer.header(valid_before=int(clock()) + 300)
    await gateway.wait(await bought(gateway, header))
