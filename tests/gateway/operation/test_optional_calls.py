"""How an endpoint's answers to shared simulations count for its other calls, over HTTP."""

import asyncio
import itertools
import random
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from gateway.chain import shared_simulations
from gateway.chain.client import Web3Chain
from gateway.chain.shared_simulations import TRANSFER_BYTES
from gateway.domain.eip3009 import BASE
from gateway.telemetry import signals
from tests.unit.chain.test_shared_simulations import SALES

SHARED = "shared"


def refuse(code: int, message: str, status: int = 200) -> web.Response:
    error = {"code": code, "message": message}
    return web.json_response({"jsonrpc": "2.0", "id": 0, "error": error}, status=status)


class Node:
    """Answers shared simulations with `faults` first."""

    def __init__(self) -> None:
        self.faults: Iterator[partial[web.Response]] = iter(())
        self.seen: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        call = asked["params"][0] if asked["method"] == "eth_call" else {"to": ""}
        self.seen.append(asked["method"] if "to" in call else SHARED)
        await self.may_answer.wait()
        if self.seen[-1] == SHARED and (fault := next(self.faults, None)) is not None:
            return fault()
        results = {
            SHARED: "0x" + "03" * (len(call.get("data", "")) // 2 // TRANSFER_BYTES),
            "eth_chainId": hex(BASE.chain_id),
            "eth_call": "0x" + BASE.domain_separator.hex(),
        }
        return web.json_response({"id": 0, "result": results.get(self.seen[-1], "0x")})


@pytest.fixture
def nodes():
    return [Node(), Node()]


@pytest.fixture
async def chain(nodes, monkeypatch):
    """The chain through these endpoints, and the first one has answered."""
    # However slow the machine is.
    monkeypatch.setattr(shared_simulations, "_PATIENCE_S", 3600.0)
    servers = []
    for node in nodes:
        app = web.Application()
        app.router.add_post("/", node.answer)
        servers.append(TestServer(app))
        await servers[-1].start_server()
    urls = [str(server.make_url("/")) for server in servers]
    settings = SimpleNamespace(chain=BASE, rpc_urls=urls, rpc_timeout=30.0)
    chain = Web3Chain(settings)  # type: ignore[arg-type]
    await chain.code(SALES[0].sender)
    for node in nodes:
        node.seen.clear()
    yield chain
    await chain.close()
    for server in servers:
        await server.close()


@pytest.fixture
def announced():
    """The announcements that an endpoint fails."""
    seen = []

    def note(_, *, endpoint, is_failing):
        seen.append((endpoint, is_failing))

    with signals.rpc_failing.connected_to(note):
        yield seen


UNSUPPORTED = {
    "error": partial(refuse, -32602, "missing field `to`"),
    "status 400": partial(refuse, -32602, "missing field `to`", 400),
    "status 403": partial(web.Response, status=403, text="<html>blocked</html>"),
    "status 500": partial(refuse, -32602, "missing field `to`", 500),
    "status 502": partial(web.Response, status=502, text="bad gateway"),
    "too much gas": partial(refuse, -32000, "gas limit exceeds request limit"),
    "revert": partial(refuse, 3, "execution reverted"),
    "no JSON": partial(web.Response, text="<html>"),
}


@pytest.mark.parametrize("fault", UNSUPPORTED.values(), ids=UNSUPPORTED)
async def test_an_endpoint_that_takes_all_other_calls_keeps_its_place(
    chain, nodes, announced, fault
):
    for node in nodes:
        node.faults = itertools.repeat(fault)
    for sale in SALES[:4]:
        assert await chain.simulate_plain(sale) is False
        await chain.code(sale.sender)
    assert nodes[0].seen == [SHARED, *["eth_getCode"] * 4]
    assert set(nodes[1].seen) <= {SHARED, "eth_chainId", "eth_call"}
    assert nodes[1].seen.count(SHARED) == 1
    assert announced == []


@pytest.mark.parametrize("fault", UNSUPPORTED.values(), ids=UNSUPPORTED)
async def test_the_next_endpoint_simulates_while_the_first_does_not(chain, nodes, fault):
    nodes[0].faults = itertools.repeat(fault)
    shown = [await chain.simulate_plain(sale) for sale in SALES[:3]]
    assert shown == [False, True, True]
    assert nodes[0].seen.count(SHARED) == 1


async def test_a_next_endpoint_that_hangs_delays_one_sale(chain, nodes, monkeypatch):
    nodes[0].faults = itertools.repeat(UNSUPPORTED["error"])
    await chain.simulate_plain(SALES[0])
    nodes[1].may_answer.clear()
    monkeypatch.setattr(shared_simulations, "_PATIENCE_S", 0.2)
    shown = [await chain.simulate_plain(sale) for sale in SALES[1:5]]
    nodes[1].may_answer.set()
    assert shown == [False] * 4
    # It hangs in the check before the first call.
    assert len(nodes[1].seen) <= 1


BUSY = {
    "status 429": partial(web.Response, status=429),
    "status 503": partial(web.Response, status=503),
    "busy": partial(refuse, -32005, "daily limit"),
    "rate limit": partial(refuse, -32000, "rate limit exceeded"),
    "busy, status 500": partial(refuse, -32005, "daily limit", 500),
}


@pytest.mark.parametrize("fault", BUSY.values(), ids=BUSY)
async def test_a_busy_endpoint_leaves_the_call_to_the_next_one(chain, nodes, announced, fault):
    nodes[0].faults = iter([fault])
    assert await chain.simulate_plain(SALES[0]) is True
    assert nodes[0].seen == [SHARED]
    assert nodes[1].seen[-1] == SHARED
    assert announced == [(1, True)]


@pytest.mark.parametrize("fault", BUSY.values(), ids=BUSY)
async def test_a_call_that_all_endpoints_refuse_is_retried(chain, nodes, fault, monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda *_: 0.0)
    for node in nodes:
        node.faults = iter([fault] * 2)
    assert await chain.simulate_plain(SALES[0]) is True
    assert [node.seen.count(SHARED) for node in nodes] in ([3, 2], [2, 3])


async def test_a_closed_chain_has_no_simulation_under_way(chain, nodes):
    call = asyncio.ensure_future(chain.simulate_plain(SALES[0]))
    await asyncio.sleep(0)
    await chain.close()
    assert "shared-simulation" not in [task.get_name() for task in asyncio.all_tasks()]
    assert await call is False
