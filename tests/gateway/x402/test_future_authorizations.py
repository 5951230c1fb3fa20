"""Authorizations that begin in the future: by a payer whose clock is ahead, or by our own lag."""

import time

import attrs
import pytest

from tests.conftest import Payer, buy, nothing_charged

NOT_YET = "invalid_exact_evm_payload_authorization_valid_after"


@pytest.fixture
def settings(settings, proxy):
    return attrs.evolve(settings, rpc_urls=(proxy.url,))


async def test_many_of_them_cause_one_read_of_the_newest_block(gateway, chain, proxy):
    begins = int(time.time()) + 600
    headers = [
        Payer(chain).header(valid_after=begins, valid_before=begins + 300) for _ in range(10)
    ]
    # The first one also checks whether the gateway can settle.
    await buy(gateway, headers[0])
    before = len(proxy.seen)
    async with nothing_charged(gateway, chain):
        for header in headers:
            answer = await buy(gateway, header)
            assert (answer.status_code, (await answer.get_json())["error"]) == (402, NOT_YET)
    heads = [call for call in proxy.seen[before:] if call == "eth_getBlockByNumber"]
    # One a second, on a slow machine too.
    assert len(heads) < len(headers)
    assert gateway.services.standstills.count == 0


async def test_one_that_begins_now_buys_although_the_machines_clock_lags(
    gateway, chain, clock, payer
):
    """The clock is set right while the purchase waits."""
    chain.advance(3600)
    now = int(time.time()) + 3600
    standstills = gateway.services.standstills
    standstills.wall = clock

    async def recover():
        clock.offset_s = 3600.0
        return ()

    standstills.recover = recover
    header = payer.header(valid_after=now - 60, valid_before=now + 300)
    assert (await buy(gateway, header)).status_code == 200
    # Once for the block, and once because the clock was set.
    assert standstills.count == 2
