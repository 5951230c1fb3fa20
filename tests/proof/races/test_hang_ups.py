"""A connection closed at any moment of a purchase: it ends as if the client had stayed."""
# ruff: noqa: ASYNC110 - polls from outside, without an event

import asyncio
import contextlib
import json
import random
import socket
import struct

import pytest

from gateway.web.server.serve import listen
from tests.conftest import WALLET
from tests.http_servers import SERVE
from tests.proof.races.shop import FLOWS, PRICE, Shop

MOMENTS = pytest.mark.parametrize("moments", [10, pytest.param(40, marks=pytest.mark.full)])


@pytest.fixture
def chance(request):
    return random.Random(request.node.name)  # the same moments at every run


@pytest.fixture
def served(http_server):
    """Return a function that serves an app, already started by its fixture, on a real socket."""

    @contextlib.asynccontextmanager
    async def serving(app):
        with listen("127.0.0.1:0") as listener:
            port, stop = listener.getsockname()[1], asyncio.Event()
            server = asyncio.create_task(SERVE[http_server](app, listener, stop))
            try:
                yield port
            finally:
                stop.set()
                await server

    return serving


def message(purchase) -> bytes:
    """Write a purchase as HTTP/1.1."""
    data = json.dumps(purchase.body).encode()
    about = {"Host": "gateway.test", "Content-Type": "application/json", **purchase.headers}
    about["Content-Length"] = str(len(data))
    lines = [
        f"POST {purchase.path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in about.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + data


async def hang_up(port, data, pause_s, *, rudely) -> bool:
    """Send a request and close the connection; returns whether no response had come yet."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    if rudely:  # with a reset instead of an orderly end
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.write(data)
    try:
        await asyncio.wait_for(reader.read(1), pause_s)
    except TimeoutError:
        return True
    else:
        return False
    finally:
        writer.transport.abort() if rudely else writer.close()


async def usual_s(port, shop, flow) -> float:
    """Return the duration of an undisturbed purchase here and now."""
    started = asyncio.get_running_loop().time()
    async with shop.one_sale() as answers:
        purchase = flow(shop)
        assert not await hang_up(port, message(purchase), 30, rudely=False)
        seconds = asyncio.get_running_loop().time() - started
        answers.append(await shop.ask(purchase))
    return seconds


@FLOWS
@MOMENTS
@pytest.mark.parametrize("rudely", [False, True], ids=["orderly", "reset"])
async def test_a_connection_closed_at_any_moment_ends_as_one_sale(
    served, shop, chance, flow, rudely, moments
):
    in_time = 0
    async with served(shop.gateway.app) as port:
        usual = await usual_s(port, shop, flow)
        for _ in range(moments):
            async with shop.one_sale() as answers:
                purchase = flow(shop)
                pause_s = chance.uniform(0, usual)
                in_time += await hang_up(port, message(purchase), pause_s, rudely=rudely)
                answers.append(await shop.ask(purchase))
    assert in_time


@MOMENTS
async def test_a_client_that_left_for_good_has_its_task_all_the_same(served, shop, chance, moments):
    """The header is not sent again: the settlement continues on its own."""
    store = shop.gateway.services.store
    async with served(shop.gateway.app) as port:
        usual = await usual_s(port, shop, Shop.x402)
        before, paid = await shop.tasks(), shop.chain.usdc_balance(WALLET)
        for _ in range(moments):
            pause_s = chance.uniform(usual / 4, usual)
            await hang_up(port, message(shop.x402()), pause_s, rudely=False)
    async with asyncio.timeout(30):
        while await store.open_payments():
            await asyncio.sleep(0.01)
    begun = await shop.tasks() - before
    assert begun
    assert shop.chain.usdc_balance(WALLET) - paid == PRICE * begun
