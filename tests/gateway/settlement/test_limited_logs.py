"""Endpoints that answer queries of logs for few blocks at once, as free plans do."""

import attrs
import pytest

from gateway import ChainUnavailable
from gateway.chain.client import Web3Chain
from gateway.payments.spent_nonces import EventSearch
from gateway.payments.unclaimed import unclaimed_transfers
from tests.conftest import WALLET, buy
from tests.proof.faults.proxy import FaultProxy, limits_logs

LOGS = "eth_getLogs"
REFUSALS = {
    "names the limit": limits_logs(500, "query exceeds max block range {most}"),
    "names a range that works": limits_logs(
        10,
        "Under the Free tier plan, you can make eth_getLogs requests with up to a {most} block "
        "range. Based on your parameters, this block range should work: {works}",
        status=400,
        code=-32600,
    ),
    "names no number": limits_logs(64, "block range is too wide", status=413, code=-32062),
    "names two numbers": limits_logs(5, "{asked} blocks asked for, {most} allowed", code=-32005),
    "names thousands": limits_logs(1_000, "ranges over 1K blocks are not supported", code=-32614),
    "fails": limits_logs(300, "Internal error", status=500, code=-32603),
    "has its own words": limits_logs(7, "Upgrade your plan.", status=400, code=-32701),
}


@pytest.fixture
def proxy(chain):
    proxy = FaultProxy(chain)
    proxy.start()
    yield proxy
    proxy.stop()


@pytest.fixture
def settings(settings, proxy):
    return attrs.evolve(settings, rpc_urls=(proxy.url,))


@pytest.fixture
async def reader(settings):
    chain = Web3Chain(settings)
    yield chain
    await chain.close()


def submit(chain, payer):
    """Submit a buyer's authorization as a third party does; returns the buyer's header."""
    signed = payer.authorization()
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(payer.account.key, chain.usdc, signed.call(signature))
    return payer.header(nonce=signed.nonce, valid_before=signed.valid_before)


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_payment_that_somebody_else_submitted_is_sold(
    gateway, chain, proxy, payer, refusal
):
    gateway.services.payments.search = EventSearch(pause_s=0.01)
    header = submit(chain, payer)
    chain.mine(900)
    proxy.break_call(LOGS, refusal)
    answer = await buy(gateway, header)
    assert answer.status_code == 200
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")


async def test_the_range_that_an_endpoint_answers_for_is_remembered(chain, proxy, reader, payer):
    payer.transfer(20_000)
    chain.mine(900)
    proxy.break_call(LOGS, limits_logs(300, "at most {most} blocks"))
    for expected in (5, 4):
        before = proxy.seen.count(LOGS)
        found = await reader.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
        assert [each.amount_units for each in found] == [20_000]
        assert proxy.seen.count(LOGS) - before == expected


@pytest.mark.parametrize("most", [4, 20, 21, 64])
async def test_logs_of_several_parts_come_oldest_first_and_once(chain, proxy, reader, payer, most):
    for units in (1, 2, 3):
        payer.transfer(units)
        chain.mine(20)
    proxy.break_call(LOGS, limits_logs(most, "too many blocks"))
    for _ in range(2):
        found = await reader.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
        assert [each.amount_units for each in found] == [1, 2, 3]


async def test_a_refusal_of_one_block_is_a_failure(chain, proxy, reader):
    proxy.break_call(LOGS, limits_logs(0, "eth_getLogs is disabled"))
    with pytest.raises(ChainUnavailable) as caught:
        await reader.transfer_logs(WALLET, from_block=0, to_block=500)
    assert caught.value.details == "eth_getLogs is disabled"
    proxy.heal()
    before = proxy.seen.count(LOGS)
    await reader.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
    assert proxy.seen.count(LOGS) == before + 1


async def test_a_busy_endpoint_is_asked_for_the_same_range_again(chain, proxy, reader):
    answers = iter(["daily request count exceeded, request rate limited"] * 2)

    def busy(proxy, request, body):
        words = next(answers, None)
        return limits_logs(0 if words else 2_000, words or "")(proxy, request, body)

    proxy.break_call(LOGS, busy)
    chain.mine(50)
    await reader.transfer_logs(WALLET, from_block=0, to_block=50)
    assert proxy.seen.count(LOGS) == 3


async def test_an_endpoint_that_cannot_search_days_says_so_with_the_way_out(
    gateway, chain, proxy, payer
):
    payer.transfer(20_000)
    chain.mine(1_000)
    proxy.break_call(LOGS, limits_logs(10, "up to a {most} block range"))
    with pytest.raises(ChainUnavailable, match=r"RPC endpoint 1 .* 10 blocks .* GATEWAY_RPC_URLS"):
        await unclaimed_transfers(
            gateway.services.chain, gateway.services.store, WALLET, days=7, hours=-1
        )


async def test_an_endpoint_without_a_limit_is_asked_where_another_has_too_narrow_a_one(
    settings, chain, proxy, payer
):
    payer.transfer(20_000)
    chain.mine(1_000)
    proxy.break_call(LOGS, limits_logs(10, "up to a {most} block range"))
    both = Web3Chain(attrs.evolve(settings, rpc_urls=(proxy.url, chain.rpc_url)))
    found = await both.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
    await both.close()
    assert [each.amount_units for each in found] == [20_000]


async def test_a_spent_nonce_is_never_told_that_nothing_was_charged(gateway, chain, proxy, payer):
    header = submit(chain, payer)
    proxy.break_call(LOGS, limits_logs(0, "eth_getLogs is disabled"))
    answer = await buy(gateway, header)
    assert answer.status_code == 500
    error = (await answer.get_json())["error"]
    assert "send the same request again" in error
    assert "Nothing was charged" not in error
    proxy.heal()
    assert (await buy(gateway, header)).status_code == 200
