"""The chain after a standstill: new connections, and a clock that lags."""

import asyncio

import pytest
import structlog

from gateway.chain.client import Web3Chain
from gateway.chain.transport import KeepAliveProvider
from gateway.errors import ChainUnavailable
from tests.conftest import buy
from tests.gateway.vendors.test_outbound import read_request, scripted
from tests.patience import PATIENCE_S, until

HEAD = b'{"jsonrpc": "2.0", "id": 1, "result": "0x5"}'


PIECES = {
    "no answer": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{",
}


class Endpoint:
    """An RPC endpoint whose connections die without a sign until it recovers."""

    def __init__(self, sent: bytes = b"") -> None:
        self.sent = sent
        self.asked = 0
        self.is_dead = True
        self.is_over = asyncio.Event()

    async def behave(self, reader, writer):
        while True:
            await read_request(reader)
            self.asked += 1
            if self.is_dead:
                writer.write(self.sent)
                await writer.drain()
                await self.is_over.wait()
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(HEAD), HEAD))
            await writer.drain()


async def ask(provider):
    return (await provider.make_request("eth_chainId", []))["result"]


async def outcomes_of(calls):
    async with asyncio.timeout(PATIENCE_S):
        return await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.parametrize("sent", PIECES.values(), ids=PIECES)
async def test_calls_on_dead_connections_are_sent_again_on_new_ones(sent):
    """The connections give no sign, as after a resume. One call waits for a free connection."""
    endpoint = Endpoint(sent)
    async with scripted(endpoint.behave) as url:
        provider = KeepAliveProvider(url)
        calls = [asyncio.create_task(ask(provider)) for _ in range(101)]
        await until(lambda: endpoint.asked == 100)
        await asyncio.sleep(0.05)
        endpoint.is_dead = False
        await provider.renew()
        assert await outcomes_of(calls) == ["0x5"] * 101
        await provider.disconnect()
        endpoint.is_over.set()


async def test_a_call_that_waits_for_its_name_or_handshake_is_sent_again(monkeypatch):
    loop, waiting = asyncio.get_running_loop(), []

    async def hang(*arguments, **options):
        waiting.append(arguments)
        try:
            await asyncio.sleep(3600)
        finally:
            if sock := options.get("sock"):
                sock.close()

    endpoint = Endpoint()
    endpoint.is_dead = False
    async with scripted(endpoint.behave) as url:
        provider = KeepAliveProvider(url.replace("127.0.0.1", "localhost"))
        for number, name in enumerate(("getaddrinfo", "create_connection"), start=1):
            await provider.renew()
            with monkeypatch.context() as patched:
                patched.setattr(loop, name, hang)
                calls = [asyncio.create_task(ask(provider)) for _ in range(3)]
                await until(lambda number=number: len(waiting) >= number)
            await provider.renew()
            assert await outcomes_of(calls) == ["0x5"] * 3
        await provider.disconnect()


async def test_a_call_that_is_cancelled_meanwhile_is_not_sent_again():
    endpoint = Endpoint()
    async with scripted(endpoint.behave) as url:
        provider = KeepAliveProvider(url)
        call = asyncio.create_task(ask(provider))
        await until(lambda: endpoint.asked)
        call.cancel()
        await provider.renew()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert endpoint.asked == 1
        await provider.disconnect()
        endpoint.is_over.set()


async def test_a_call_at_the_end_of_the_connections_fails():
    endpoint = Endpoint()
    async with scripted(endpoint.behave) as url:
        provider = KeepAliveProvider(url)
        call = asyncio.create_task(ask(provider))
        await until(lambda: endpoint.asked)
        await provider.disconnect()
        with pytest.raises(TimeoutError):
            await call
        endpoint.is_over.set()


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


async def test_the_clock_counts_as_right_only_after_a_check_that_found_it_right(
    gateway, clock, monkeypatch
):
    obstacles = gateway.services.settlements.obstacles
    obstacles.stopped_chain.pause_s = 0.0
    await obstacles.refresh()
    found = [obstacles.is_clock_right]
    obstacles.note_unreachable()
    found.append(obstacles.is_clock_right)
    await obstacles.refresh()
    found.append(obstacles.is_clock_right)
    # No newer block comes, so either the clock is wrong or the chain has stopped.
    clock.offset_s += 400 * 86_400
    node = gateway.services.chain
    block = await node.newest_head()
    monkeypatch.setattr(node, "newest_head", lambda: asyncio.sleep(0, block))
    await obstacles.refresh()
    found.append(obstacles.is_clock_right)
    assert found == [True, False, True, False]
    clock.offset_s = 0.0
    await obstacles.refresh()
    assert obstacles.is_clock_right
    # The second read fails, which would show whether the chain has stopped.
    clock.offset_s = 400 * 86_400
    answers = [block]

    async def find_newest():
        if not answers:
            raise ChainUnavailable("silent")
        return answers.pop()

    monkeypatch.setattr(node, "newest_head", find_newest)
    with pytest.raises(ChainUnavailable):
        await obstacles.refresh()
    assert not obstacles.is_clock_right


async def test_outputs_are_kept_while_the_clock_cannot_be_compared(gateway, payer, clock):
    sold = await (await buy(gateway, payer.header())).get_json()
    assert (await gateway.wait(sold["taskId"]))["status"] == "completed"
    lifecycle = gateway.services.lifecycle
    (retention,) = [part for part in lifecycle.parts if part.name == "retention"]
    gateway.services.settlements.obstacles.note_unreachable()
    clock.offset_s += 400 * 86_400
    with structlog.testing.capture_logs() as lines:
        sweeping = asyncio.create_task(retention.run())
        await until(lambda: any(line["event"] == "retention.waits" for line in lines))
        sweeping.cancel()
    assert "retention.swept" not in [line["event"] for line in lines]
    assert await gateway.services.store.expired_outputs(now=clock(), limit=1)
