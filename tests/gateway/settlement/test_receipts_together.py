"""Receipts that are read at once share the read of their block, from the same endpoint."""

import asyncio
import json

import attrs
import pytest

from gateway.chain.client import Web3Chain
from tests.proof.faults.proxy import FaultProxy

BLOCK = "eth_getBlockByNumber"


def _missing(_, request, __):
    return 200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": None}).encode()


def _another(proxy, _, body):
    answer = json.loads(proxy.chain.rpc.answer(body))
    answer["result"]["hash"] = "0x" + "ab" * 32
    return 200, json.dumps(answer).encode()


@pytest.fixture
def proxies(chain):
    with FaultProxy(chain) as first, FaultProxy(chain) as second:
        yield [first, second]


async def test_the_receipts_of_a_block_cost_one_read_of_it(settings, proxies, payer, monkeypatch):
    # However slow the machine is.
    monkeypatch.setattr("gateway.chain.client._BLOCK_TTL_S", 3600.0)
    tx_hash = payer.transfer(20_000)
    reader = Web3Chain(attrs.evolve(settings, rpc_urls=(proxies[0].url,)))
    await reader.head()
    before = proxies[0].seen.count(BLOCK)
    receipts = await asyncio.gather(*(reader.receipt(tx_hash) for _ in range(9)))
    await reader.close()
    assert {one.tx_hash for one in receipts} == {tx_hash}
    assert proxies[0].seen.count(BLOCK) == before + 1


async def test_each_endpoint_must_have_the_block_itself(settings, proxies, payer):
    tx_hash = payer.transfer(20_000)
    proxies[0].break_call(BLOCK, _missing)
    reader = Web3Chain(attrs.evolve(settings, rpc_urls=tuple(one.url for one in proxies)))
    receipts = await asyncio.gather(*(reader.receipt(tx_hash) for _ in range(9)))
    assert {one.tx_hash for one in receipts} == {tx_hash}
    await reader.close()


@pytest.mark.parametrize("fault", [_missing, _another])
async def test_a_block_without_the_receipt_is_not_kept(settings, proxies, payer, fault):
    tx_hash = payer.transfer(20_000)
    reader = Web3Chain(attrs.evolve(settings, rpc_urls=(proxies[0].url,)))
    await reader.head()
    proxies[0].break_call(BLOCK, fault)
    assert await reader.receipt(tx_hash) is None
    proxies[0].heal()
    assert (await reader.receipt(tx_hash)).tx_hash == tx_hash
    await reader.close()
