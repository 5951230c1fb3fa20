"""While no new transfer can be seen, no way to pay is offered, and no hash is called unknown."""

import json
import time

import attrs
import pytest

from tests.conftest import buy, nothing_charged, running
from tests.gateway.operation.test_obstacles import (
    DIRECT_WORKS,
    check_now,
    unpaid_error,
    wallet_without_gas,
    x402_row,
)
from tests.gateway.operation.test_selling import open_gateway, said

__all__ = ["open_gateway"]
STOPPED = "sees no new blocks"


@pytest.fixture
async def halted(open_gateway, chain, clock):
    """Return a gateway whose chain made its last block two minutes ago, by its clock."""
    chain.advance(1)
    open_gateway.services.settlements.obstacles.stopped_chain.pause_s = 0.01
    chain.set_automine(False)
    clock.offset_s += 120
    return open_gateway


async def send_hash(gateway, tx_hash):
    body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
    return await gateway.client.post("/api/proxy-generate", json=body)


async def test_while_the_chain_stands_still_every_place_offers_nothing(halted):
    await check_now(halted)
    assert await said(halted) == ("nothing", 200, "no")
    error = await unpaid_error(halted)
    assert STOPPED in error
    assert "proxy-generate" not in error
    assert (await x402_row(halted))["stops"] == "paid routes"
    llms = await (await halted.client.get("/llms.txt")).get_data(as_text=True)
    assert STOPPED in llms


async def test_a_chain_that_goes_on_is_sold_for_again(halted, chain, clock, payer):
    await check_now(halted)
    chain.set_automine(True)
    clock.offset_s = 0
    await check_now(halted)
    assert await said(halted) == ("everything", 200, "yes")
    assert (await buy(halted, payer.header())).status_code == 200


async def test_a_stop_between_two_full_checks_is_noticed(halted):
    """The read of the newest block, every few seconds, finds it; nothing else is due."""
    obstacles = halted.services.settlements.obstacles
    assert obstacles.selling == "everything"
    await obstacles._check()
    assert obstacles.selling == "nothing"


async def test_without_gas_and_without_blocks_no_transfer_is_advised(
    settings, provider, chain, gas_key, clock
):
    poor, _ = wallet_without_gas(settings, gas_key, chain)
    async with running(poor, provider, now=clock) as gateway:
        await gateway.silence_background()
        await check_now(gateway)
        assert DIRECT_WORKS in await unpaid_error(gateway)
        gateway.services.settlements.obstacles.stopped_chain.pause_s = 0.01
        chain.set_automine(False)
        clock.offset_s += 120
        await check_now(gateway)
        error = await unpaid_error(gateway)
        assert STOPPED in error
        assert DIRECT_WORKS not in error


async def test_a_transfer_that_waits_for_a_block_is_not_called_unknown(halted, chain, payer):
    await check_now(halted)
    tx_hash = payer.transfer(20_000)
    async with nothing_charged(halted, chain):
        answer = await send_hash(halted, tx_hash)
    assert answer.status_code == 500
    body = await answer.get_json()
    assert body["code"] == "EXECUTION_ERROR"
    assert STOPPED in body["error"]
    chain.set_automine(True)
    await check_now(halted)
    assert (await send_hash(halted, tx_hash)).status_code == 200


async def test_a_transfer_of_before_the_stop_still_buys(open_gateway, chain, clock, payer):
    """The money has arrived, so its buyer gets the task."""
    chain.advance(1)
    tx_hash = payer.transfer(20_000)
    open_gateway.services.settlements.obstacles.stopped_chain.pause_s = 0.01
    chain.set_automine(False)
    clock.offset_s += 120
    await check_now(open_gateway)
    assert (await send_hash(open_gateway, tx_hash)).status_code == 200


async def test_a_signed_payment_is_refused_uncharged(halted, chain, clock, payer):
    await check_now(halted)
    async with nothing_charged(halted, chain):
        answer = await buy(halted, payer.header(valid_before=int(clock() + 300)))
    assert (answer.status_code, (await answer.get_json())["code"]) == (500, "EXECUTION_ERROR")


async def test_an_endpoint_that_lags_sells_nothing(open_gateway, proxy, chain):
    """Its blocks go on, each of them ten minutes old, and its clock is right."""
    open_gateway.services.settlements.obstacles.stopped_chain.pause_s = 0.3

    def late(_proxy, request, body):
        answer = json.loads(chain.rpc.answer(body))
        for name, unit in (("timestamp", 1), ("timestampMs", 1000)):
            if name in answer["result"]:
                answer["result"][name] = hex(int(answer["result"][name], 16) - 600 * unit)
        return 200, json.dumps(answer).encode()

    proxy.faults["eth_getBlockByNumber"] = late
    await check_now(open_gateway)
    assert "lags behind" in (await x402_row(open_gateway))["problem"]
    assert STOPPED in await unpaid_error(open_gateway)


async def test_a_clock_that_nothing_proves_wrong_sells_nothing(open_gateway, clock, monkeypatch):
    monkeypatch.setattr(type(open_gateway.services.chain), "server_time", lambda _: None)
    open_gateway.services.settlements.obstacles.stopped_chain.pause_s = 0.3
    clock.offset_s = 600
    await check_now(open_gateway)
    assert STOPPED in await unpaid_error(open_gateway)


async def test_one_endpoint_that_stands_still_stops_nothing(settings, provider, proxy, chain):
    old = chain.rpc.result("eth_getBlockByNumber", "latest", False)
    old = old | {"timestamp": hex(int(time.time()) - 900)}

    def stopped(_proxy, request, _body):
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": old}
        return 200, json.dumps(answer).encode()

    proxy.faults["eth_getBlockByNumber"] = stopped
    both = attrs.evolve(settings, rpc_urls=(proxy.url, chain.rpc_url))
    async with running(both, provider) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        await gateway.services.settlements.obstacles._check()
        assert (await unpaid_error(gateway)).startswith("Payment required")
