"""How the page finds a transfer: by its amount, since the amount was reserved."""

import asyncio
import secrets

import attrs
import pytest

from tests.conftest import Payer, running
from tests.gateway.settlement.faulty_rpc import FaultyRpc, refuses, says
from tests.plugins.gateway_shop.app.test_pay_amounts import claim, found, new_key, reserved


async def seek(gateway, key: str, clock) -> str:
    """Ask until the transfer is found, each time with a scan of its own."""
    while (tx_hash := await found(gateway, key)) is None:
        clock.offset_s += 2
        await asyncio.sleep(0.01)
    return tx_hash


@pytest.fixture
def one_amount(monkeypatch):
    """Chance chooses the same amount for each buyer."""
    monkeypatch.setattr(secrets, "randbelow", lambda most: 41)


async def test_an_earlier_buyers_transfer_is_not_found(gateway, clock, one_amount):
    first, second = new_key(), new_key()
    units = await reserved(gateway, first)
    gateway.chain.mine()
    earlier = Payer(gateway.chain).transfer(units)
    assert await seek(gateway, first, clock) == earlier
    clock.offset_s += 25 * 3600
    gateway.chain.mine()
    assert await reserved(gateway, second) == units
    assert await found(gateway, second) is None
    own = Payer(gateway.chain).transfer(units)
    assert await seek(gateway, second, clock) == own


async def test_an_amount_with_little_time_left_is_not_asked_for_again(gateway, clock):
    key = new_key()
    old = await reserved(gateway, key)
    clock.offset_s += 1150
    assert await reserved(gateway, key) == old
    clock.offset_s += 100
    new = await reserved(gateway, key)
    assert new != old
    # Both are this buyer's.
    gateway.chain.mine()
    tx_hash = Payer(gateway.chain).transfer(old)
    assert await seek(gateway, key, clock) == tx_hash
    assert (await claim(gateway, tx_hash, key))[0] == 200


async def test_a_transfer_that_a_lagging_endpoint_left_out_is_found(
    settings, provider, chain, clock
):
    with FaultyRpc(chain) as rpc:
        settings = attrs.evolve(settings, rpc_urls=(rpc.url,))
        async with running(settings, provider, now=clock) as gateway:
            key = new_key()
            units = await reserved(gateway, key)
            chain.mine()
            tx_hash = Payer(chain).transfer(units)
            rpc.faults["eth_getLogs"] = says([])
            asked = rpc.seen.count("eth_getLogs")
            assert await found(gateway, key) is None
            assert rpc.seen.count("eth_getLogs") > asked
            rpc.heal()
            assert await seek(gateway, key, clock) == tx_hash


async def test_blocks_before_all_awaited_amounts_are_not_read(settings, provider, chain, clock):
    with FaultyRpc(chain) as rpc:
        settings = attrs.evolve(settings, rpc_urls=(rpc.url,))
        async with running(settings, provider, now=clock) as gateway:
            await found_nothing(gateway)
            for _ in range(400):
                chain.mine()
            # The narrowest endpoints.
            rpc.faults["eth_getLogs"] = at_most(5)
            clock.offset_s += 3000
            key = new_key()
            units = await reserved(gateway, key)
            chain.mine()
            tx_hash = Payer(chain).transfer(units)
            asked = rpc.seen.count("eth_getLogs")
            assert await seek(gateway, key, clock) == tx_hash
            assert rpc.seen.count("eth_getLogs") - asked < 20


async def found_nothing(gateway) -> None:
    key = new_key()
    await reserved(gateway, key)
    assert await found(gateway, key) is None


def at_most(blocks: int):
    """An endpoint that answers for few blocks at once."""
    refuse = refuses(f"eth_getLogs is limited to a {blocks} block range")

    def fault(rpc, request, body):
        query = request["params"][0]
        if int(query["toBlock"], 16) - int(query["fromBlock"], 16) >= blocks:
            return refuse(rpc, request, body)
        return rpc.chain.rpc.answer(body)

    return fault
