"""A busy RPC endpoint: refused calls are retried, a little later and not without end."""

import asyncio
import contextlib
import json
import random

import attrs
import pytest

from gateway.chain import retries as retrying
from gateway.chain.client import Web3Chain
from gateway.chain.retries import RetryBudget, RetryTiming
from gateway.errors import ChainUnavailable
from tests.conftest import WALLET, Payer, buy, running
from tests.proof.faults.proxy import (
    EVERY,
    FaultProxy,
    half_refused,
    time_out,
    too_many,
    two_nodes,
)

PRICE = 20_000
BUYERS = 10
ADDRESS = "0x" + "ab" * 20
# Short pauses, and rests longer than any test.
TIMING = RetryTiming(
    first_pause_s=0.005, longest_pause_s=0.005, first_cooldown_s=600.0, longest_cooldown_s=600.0
)


@pytest.fixture
def proxies(chain):
    with FaultProxy(chain) as first, FaultProxy(chain) as second:
        yield [first, second]


@contextlib.asynccontextmanager
async def reader(settings, *proxies, timeout_s=10.0):
    """Yield a chain over these endpoints, each of them checked already."""
    urls = tuple(proxy.url for proxy in proxies)
    chain = Web3Chain(attrs.evolve(settings, rpc_urls=urls, rpc_timeout=timeout_s), timing=TIMING)
    try:
        await chain._rpc.ask_all(lambda endpoint: endpoint.request("eth_chainId"))
        for proxy in proxies:
            proxy.seen.clear()
        yield chain
    finally:
        await chain.close()


def calls(proxy, method="eth_getBalance"):
    return proxy.seen.count(method)


@pytest.mark.parametrize("endpoints", [1, 2])
async def test_with_half_of_all_calls_refused_everybody_is_sold_at_the_first_try(
    settings, provider, chain, proxies, endpoints
):
    urls = tuple(proxy.url for proxy in proxies[:endpoints])
    settings = attrs.evolve(settings, rpc_urls=urls, rpc_timeout=10.0)
    base = Web3Chain(settings, timing=TIMING)
    async with running(settings, provider, chain=base) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        for proxy in proxies:
            proxy.faults[EVERY] = half_refused(random.Random(7))
        headers = [Payer(chain).header() for _ in range(BUYERS)]
        answers = await asyncio.gather(*(buy(gateway, header) for header in headers))
        assert [answer.status_code for answer in answers] == [200] * BUYERS
        ids = [(await answer.get_json())["taskId"] for answer in answers]
        tasks = await asyncio.gather(*(gateway.wait(task_id) for task_id in ids))
        assert {task["status"] for task in tasks} == {"completed"}
        assert (await gateway.services.store.counts())["payments"] == {"settled": BUYERS}
    assert chain.usdc_balance(WALLET) == BUYERS * PRICE


@pytest.mark.parametrize("sells", ["x402", "direct", "submitted by others"])
async def test_at_an_address_with_a_node_that_lags_everybody_is_sold_at_the_first_try(
    settings, provider, chain, proxies, sells
):
    """Every second call is answered by a node that lags two blocks."""
    settings = attrs.evolve(settings, rpc_urls=(proxies[0].url,), tx_patience=60.0)
    payers = [Payer(chain) for _ in range(4)]
    chain.mine(3)  # both nodes know what the payers have
    base = Web3Chain(settings, timing=TIMING)
    async with running(settings, provider, chain=base) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        mining = asyncio.create_task(mine_slowly(chain))
        proxies[0].faults[EVERY] = two_nodes(2)
        for payer in payers:
            answer = await buy_by(gateway, sells, payer)
            assert answer.status_code == 200, await answer.get_json()
            task = await gateway.wait((await answer.get_json())["taskId"])
            assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
        mining.cancel()
    assert chain.usdc_balance(WALLET) == 4 * PRICE


async def mine_slowly(chain):
    while True:
        await asyncio.sleep(0.2)
        chain.mine()


async def buy_by(gateway, sells, payer):
    """Return the response to a purchase by one of the payment flows."""
    if sells == "direct":
        body = {"slug": "picture", "prompt": "a boat", "txHash": payer.transfer(PRICE)}
        return await gateway.client.post("/api/proxy-generate", json=body)
    signed = payer.authorization()
    if sells == "submitted by others":
        signature = signed.sign(payer.account.key, payer.chain.chain_id, payer.chain.usdc)
        payer.chain.send_transaction(payer.account.key, payer.chain.usdc, signed.call(signature))
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    return await buy(gateway, header)


async def test_a_read_that_is_always_refused_ends_after_a_bounded_number_of_calls(
    settings, proxies
):
    async with reader(settings, proxies[0]) as chain:
        proxies[0].faults["eth_getBalance"] = too_many
        with pytest.raises(ChainUnavailable):
            await chain.gas_balance(ADDRESS)
        assert 2 <= calls(proxies[0]) <= retrying._MAX_TRIES


async def test_a_time_out_is_not_asked_again(settings, proxies):
    async with reader(settings, proxies[0], timeout_s=0.5) as chain:
        proxies[0].faults["eth_getBalance"] = time_out
        with pytest.raises(ChainUnavailable):
            await chain.gas_balance(ADDRESS)
        assert calls(proxies[0]) == 1


async def test_all_reads_together_retry_no_more_than_their_budget(settings, proxies):
    async with reader(settings, proxies[0]) as chain:
        chain._rpc._budget = RetryBudget(left=20.0, counted_at=asyncio.get_running_loop().time())
        proxies[0].faults["eth_getBalance"] = too_many
        began = asyncio.get_running_loop().time()
        reads = (chain.gas_balance(ADDRESS) for _ in range(30))
        await asyncio.gather(*reads, return_exceptions=True)
        regained = (asyncio.get_running_loop().time() - began) * retrying._RETRIES_PER_S
        assert 50 <= calls(proxies[0]) <= 51 + regained


@pytest.mark.parametrize("fault", [too_many, time_out])
async def test_an_endpoint_that_fails_is_asked_after_the_others(settings, proxies, fault):
    first, second = proxies
    async with reader(settings, first, second, timeout_s=0.5) as chain:
        chain._rpc._endpoints[1].timeout_s = 10.0
        first.break_call("eth_getBalance", fault)
        for _ in range(3):
            await chain.gas_balance(ADDRESS)
        assert (calls(first), calls(second)) == (1, 3)


async def test_an_endpoint_that_served_again_is_asked_first_again(settings, proxies):
    first, second = proxies
    async with reader(settings, first, second) as chain:
        first.faults["eth_getBalance"] = too_many
        await chain.gas_balance(ADDRESS)
        first.heal()
        chain._rpc._endpoints[0].cooldown.until = 0.0  # the rest is over
        await chain.gas_balance(ADDRESS)
        assert (calls(first), calls(second)) == (2, 1)


def wishing(seconds):
    """Return a fault that refuses once, with a Retry-After."""

    def fault(proxy, request, body):
        proxy.faults.clear()
        proxy.headers = {"Retry-After": str(seconds)}
        return too_many(proxy, request, body)

    return fault


async def test_retry_after_is_heard(settings, proxies):
    async with reader(settings, proxies[0]) as chain:
        (endpoint,) = chain._rpc._endpoints
        proxies[0].faults["eth_getBalance"] = wishing(1)
        began = asyncio.get_running_loop().time()
        await chain.gas_balance(ADDRESS)
        assert asyncio.get_running_loop().time() >= endpoint.cooldown.retry_after > began + 0.9
        assert calls(proxies[0]) == 2


async def test_a_longer_retry_after_than_a_read_lasts_is_not_waited_for(settings, proxies):
    async with reader(settings, proxies[0], timeout_s=5.0) as chain:
        proxies[0].faults["eth_getBalance"] = wishing(9)
        for _ in range(3):
            with pytest.raises(ChainUnavailable):
                await chain.gas_balance(ADDRESS)
        assert calls(proxies[0]) == 1


def _busy(code, message):
    def fault(proxy, request, body):
        proxy.faults.clear()
        error = {"code": code, "message": message}
        return 200, json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()

    return fault


@pytest.mark.parametrize(
    ("code", "message"),
    [(-32005, "limit exceeded"), (-32016, "over rate limit"), (429, ""), (-32000, "Rate limited")],
)
async def test_a_refusal_in_the_body_is_asked_again_too(settings, proxies, code, message):
    async with reader(settings, proxies[0]) as chain:
        proxies[0].faults["eth_getBalance"] = _busy(code, message)
        assert await chain.gas_balance(ADDRESS) == 0
        assert calls(proxies[0]) == 2


async def test_what_could_not_be_sent_is_sent_soon_again(settings, provider, chain, proxies):
    """A submit's reads fail for a while; the driver retries without waiting for its turn."""
    settings = attrs.evolve(settings, rpc_urls=(proxies[0].url,), rpc_timeout=10.0)
    base = Web3Chain(settings, timing=TIMING)
    async with running(settings, provider, chain=base) as gateway:
        await gateway.services.lifecycle.warmed.wait()
        settler = gateway.services.settlements.settler
        tries, submit = 0, settler.submit

        async def fails_thrice(payment):
            nonlocal tries
            tries += 1
            if tries <= 3:
                raise ChainUnavailable("silent")
            return await submit(payment)

        settler.submit = fails_thrice
        settler.tend = lambda: asyncio.sleep(0)
        reads = 0
        reconciler = gateway.services.settlements._reconciler
        close = reconciler.close

        async def counted(payment):
            nonlocal reads
            reads += 1
            return await close(payment)

        reconciler.close = counted
        answer = await buy(gateway, Payer(chain).header())
        task = await gateway.wait((await answer.get_json())["taskId"])
        assert task["status"] == "completed"
        assert reads <= 4
