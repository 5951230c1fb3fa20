"""The chain after a standstill: new connections, and a clock that lags."""

import asyncio

import pytest

from gateway.chain.client import Web3Chain
from gateway.chain.transport import KeepAliveProvider
from gateway.errors import ChainUnavailable
from tests.gateway.vendors.test_outbound import read_request, scripted
from tests.patience import until

HEAD = b'{"jsonrpc": "2.0", "id": 1, "result": "0x5"}'


async def test_a_call_on_a_dead_connection_is_sent_again_on_a_new_one():
    """The connection gives no sign, as after a resume: no answer and no reset."""
    connections, is_over = [], asyncio.Event()

    async def behave(reader, writer):
        connections.append(writer)
        number = len(connections)
        while True:
            await read_request(reader)
            if number == 1:
                await is_over.wait()
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(HEAD), HEAD))
            await writer.drain()

    async with scripted(behave) as url:
        provider = KeepAliveProvider(url)
        asked = asyncio.create_task(provider.make_request("eth_chainId", []))
        await until(lambda: connections)
        await asyncio.sleep(0.05)
        await provider.renew()
        assert (await asked)["result"] == "0x5"
        assert len(connections) == 2
        await provider.disconnect()
        is_over.set()


async def test_the_endpoints_clock_is_read_again(settings):
    chain = Web3Chain(settings)
    # Nothing to renew before the first call.
    await chain.renew()
    await chain.start()
    await chain.renew()
    assert chain.server_time() is None
    assert (await chain.head()).number >= 0
    await chain.close()
    with pytest.raises(ChainUnavailable):
        await chain.head()


async def test_the_check_after_a_resume_waits_while_the_clock_lags(gateway, chain, clock):
    obstacles = gateway.services.settlements.obstacles
    await obstacles.refresh()
    chain.advance(3600)
    checking = asyncio.create_task(obstacles.refresh_patiently())
    await until(lambda: not obstacles.is_clock_right)
    clock.offset_s += 3600
    await checking
    assert (obstacles.is_clock_right, obstacles.selling) == (True, "everything")
