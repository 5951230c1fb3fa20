"""A receipt before its block proves nothing, whatever its content."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio

import attrs
import pytest

from gateway.chain.client import Web3Chain
from gateway_demo.chain import PlayChain
from tests.authorizations import cancel
from tests.conftest import WALLET, buy, running
from tests.proof.faults.proxy import ZERO_HASH, FaultProxy, preconfirmed
from tests.waits import FAST, Waits, started_with

PRICE = 20_000
RECEIPT = "eth_getTransactionReceipt"
HASHES = {"zero hash": ZERO_HASH, "unknown hash": "0x" + "f1" * 32}


@pytest.fixture(autouse=True)
def _fast():
    timing = FAST
    with started_with(Waits(outcome_s=0.3, settlement=timing)):
        yield


@pytest.fixture
def rpc(chain):
    with FaultProxy(chain) as proxy:
        yield proxy


@pytest.fixture
def settings(settings, rpc):
    return attrs.evolve(settings, rpc_urls=(rpc.url,), tx_patience=60.0)


@pytest.fixture(params=HASHES.values(), ids=HASHES)
def block_hash(request):
    return request.param


async def claim(gateway, tx_hash):
    body = {"slug": "picture", "prompt": "a boat", "txHash": tx_hash}
    return await gateway.client.post("/api/proxy-generate", json=body)


async def until_asked(rpc, call, times=2):
    """Wait until the proxy was called again: the first responses were read by then."""
    rpc.seen.clear()
    while rpc.seen.count(call) < times:
        await asyncio.sleep(0.01)


async def payment_of(gateway, task_id) -> dict:
    return (await (await gateway.client.get(f"/api/task/{task_id}")).get_json())["payment"]


# -- the direct flow


async def test_a_direct_transfer_waits_for_its_block(gateway, rpc, payer, chain, block_hash):
    await gateway.services.payments.cutoff_block()
    chain.set_automine(False)
    rpc.break_call(RECEIPT, preconfirmed(block_hash))
    asking = asyncio.create_task(claim(gateway, payer.transfer(PRICE)))
    await until_asked(rpc, RECEIPT)
    assert not asking.done()
    rpc.heal()
    chain.set_automine(True)
    assert (await asking).status_code == 200


@pytest.mark.parametrize("reverted", [False, True])
async def test_a_direct_transfer_that_gets_no_block_is_not_found(
    settings, provider, rpc, payer, chain, block_hash, reverted
):
    """Neither a success nor a revert counts, and the same hash works once it is mined."""
    async with running(attrs.evolve(settings, tx_patience=0.5), provider) as gateway:
        await gateway.services.payments.cutoff_block()
        chain.set_automine(False)
        rpc.break_call(RECEIPT, preconfirmed(block_hash, reverted=reverted))
        tx_hash = payer.transfer(PRICE)
        answer = await claim(gateway, tx_hash)
        assert answer.status_code == 400
        assert (await answer.get_json())["code"] == "TX_NOT_FOUND"
        rpc.heal()
        chain.set_automine(True)
        assert (await claim(gateway, tx_hash)).status_code == 200


# -- x402


@pytest.mark.parametrize("reverted", [False, True])
async def test_a_settlement_is_settled_by_its_block_only(
    gateway, rpc, payer, chain, block_hash, reverted
):
    chain.set_automine(False)
    rpc.break_call(RECEIPT, preconfirmed(block_hash, reverted=reverted))
    answer = await buy(gateway, payer.header())
    task_id = (await answer.get_json())["taskId"]
    await until_asked(rpc, RECEIPT)
    assert (await payment_of(gateway, task_id))["state"] == "settling"
    rpc.heal()
    chain.set_automine(True)
    task = await gateway.wait(task_id)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    await gateway.services.settlements._failed.judge_all()
    assert not await gateway.services.store.payers.failures(since=0.0)
    assert chain.usdc_balance(WALLET) == PRICE


async def test_a_settlement_that_a_node_dropped_buys_nothing(
    gateway, rpc, payer, chain, clock, block_hash
):
    """The node reported success; the next block contains a cancellation instead."""
    chain.set_automine(False)
    rpc.break_call(RECEIPT, preconfirmed(block_hash))
    signed = payer.authorization(PRICE)
    answer = await buy(gateway, payer.header(nonce=signed.nonce))
    task_id = (await answer.get_json())["taskId"]
    await until_asked(rpc, RECEIPT)
    with chain.node.lock:
        chain.node.pool.waiting.clear()
        cancel(chain, payer, signed.nonce)
        # A second block makes the first one's event final.
        chain.mine(2)
    rpc.heal()
    task = await gateway.wait(task_id)
    assert task["payment"]["state"] == "released"
    assert chain.usdc_balance(WALLET) == 0


# -- which endpoint has the block


async def test_a_number_above_the_head_counts_once_the_same_endpoint_has_the_block(
    settings, rpc, payer, chain
):
    """Another endpoint's block of that number has another hash, and proves nothing."""
    with PlayChain() as other:
        other.mine(chain.block.number + 5)
        reader = Web3Chain(attrs.evolve(settings, rpc_urls=(rpc.url, other.rpc_url)))
        tx_hash = payer.transfer(PRICE)
        rpc.break_call(RECEIPT, preconfirmed(HASHES["unknown hash"]))
        assert await reader.receipt(tx_hash) is None
        chain.mine(1)
        assert await reader.receipt(tx_hash) is None
        rpc.heal()
        receipt = await reader.receipt(tx_hash)
        assert receipt.block == await reader.block_at(receipt.block.number)
        await reader.close()
