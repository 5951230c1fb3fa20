"""The gateway's own RPC connections: kept, replaced when they die, independent of each other."""

import asyncio
import json
import subprocess
import sys

import attrs
import pytest

from gateway import ChainUnavailable
from gateway.chain.block_times import last_block_by
from gateway.chain.client import Web3Chain
from gateway_demo.chain import PlayChain
from tests.proof.faults.proxy import says


@pytest.fixture
async def reader(settings):
    chain = Web3Chain(settings)
    yield chain
    await chain.close()


async def test_a_kept_connection_that_died_is_replaced(chain, reader):
    port = int(chain.rpc_url.rpartition(":")[2])
    assert (await reader.head()).number >= 0
    chain.stop()
    with PlayChain(port=port):
        assert (await reader.head()).number >= 0


async def test_calls_that_are_cut_off_leave_the_next_ones_an_answer(settings, reader):
    await reader.head()
    for _ in range(20):
        calls = [asyncio.create_task(reader.head()) for _ in range(5)]
        await asyncio.sleep(0)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    assert (await reader.head()).number >= 0


async def test_an_endpoint_of_another_chain_is_passed_over(settings, chain):
    with PlayChain(chain_id=84532) as other:
        two = Web3Chain(attrs.evolve(settings, rpc_urls=(other.rpc_url, chain.rpc_url)))
        chain.mine(50)
        assert (await two.head()).number >= 50
        await two.close()
        only = Web3Chain(attrs.evolve(settings, rpc_urls=(other.rpc_url,)))
        with pytest.raises(ChainUnavailable, match="does not answer"):
            await only.head()
        await only.close()


async def test_an_endpoint_whose_address_is_none_is_passed_over(settings, chain):
    """The start cannot know it: web3 and aiohttp parse the URL at the first request."""
    for wrong in ("http://127.0.0.1:99999/", "http://127.0.0.1:84x5/"):
        two = Web3Chain(attrs.evolve(settings, rpc_urls=(wrong, chain.rpc_url)))
        assert (await two.head()).number >= 0
        await two.close()
        only = Web3Chain(attrs.evolve(settings, rpc_urls=(wrong,)))
        with pytest.raises(ChainUnavailable):
            await only.head()
        await only.close()


@pytest.mark.parametrize("answer", [b"\xff\xfe{}", b"\xef\xbb\xbf{}", b"", b"no JSON", b"[]"])
async def test_an_answer_that_is_no_json_of_utf_8_is_no_answer(reader, chain, monkeypatch, answer):
    monkeypatch.setattr(chain._server._http, "answer", lambda body: answer)
    with pytest.raises(ChainUnavailable):
        await reader.head()


async def test_nothing_is_asked_after_closing(reader):
    await reader.head()
    await reader.close()
    with pytest.raises(ChainUnavailable):
        await reader.head()


_IMPORTS = {
    "web3": "from gateway.chain.endpoints import _import_web3; _import_web3()",
    "a keystore": "from gateway.chain.keys import encrypt_key; encrypt_key(b'k' * 32, 'long')",
    "eth_account": "from gateway.concurrency.late_imports import *; import_ethereum('eth_account')",
}


@pytest.mark.full
@pytest.mark.parametrize("imports", _IMPORTS.values(), ids=_IMPORTS)
def test_no_import_raises_the_recursion_limit(imports):
    """One of the dependencies sets it to 100,000, at which nested JSON kills the process."""
    ask = (
        f"import sys; before = sys.getrecursionlimit(); {imports}; "
        "sys.exit(sys.getrecursionlimit() != before)"
    )
    assert subprocess.run([sys.executable, "-c", ask], check=False, timeout=60).returncode == 0


async def test_a_block_of_another_hash_is_no_answer(chain, reader, monkeypatch):
    first, chain_answer = await reader.head(), chain._server._http.answer
    chain.mine(1)
    newest = await reader.head()

    def mistaken(body: bytes) -> bytes:
        return chain_answer(body.replace(first.hash.encode(), newest.hash.encode()))

    monkeypatch.setattr(chain._server._http, "answer", mistaken)
    with pytest.raises(ChainUnavailable):
        await reader.block(first.hash)
    monkeypatch.undo()
    assert await reader.block(first.hash) == first


async def test_fees_are_asked_for_once_by_all_who_bid_at_the_same_time(reader, rpc_calls):
    await reader.head()
    rpc_calls.clear()
    fees = await asyncio.gather(*(reader.fees() for _ in range(20)))
    assert len(set(fees)) == 1
    asked = sorted(json.loads(body)["method"] for body in rpc_calls)
    assert asked == ["eth_getBlockByNumber", "eth_maxPriorityFeePerGas"]


async def test_parallel_calls_share_connections_that_are_kept(chain, reader, monkeypatch):
    opened = 0
    accept = chain._server._http.get_request

    def counted():
        nonlocal opened
        opened += 1
        return accept()

    monkeypatch.setattr(chain._server._http, "get_request", counted)
    await reader.head()
    for _ in range(5):
        await asyncio.gather(*(reader.head() for _ in range(20)))
    assert opened <= 20


async def test_a_search_by_time_ends_on_an_endpoint_that_knows_one_block_only(
    settings, chain, proxy
):
    reader = Web3Chain(attrs.evolve(settings, rpc_urls=(proxy.url,)))
    old = chain.rpc.result("eth_getBlockByNumber", "latest", False)
    proxy.break_call("eth_getBlockByNumber", says(old))
    with pytest.raises(ChainUnavailable, match="does not answer"):
        await last_block_by(reader, int(old["timestamp"], 16) - 60)
    await reader.close()
