"""The bodies of all requests together use a bounded part of the memory."""

import asyncio
import contextlib
import json

import attrs
import pytest

from gateway.errors import BodiesFull
from gateway.web.front.body_memory import BodyMemory, CountedBody
from tests.conftest import running

DIRECT, PAPER, PICTURE = "/api/proxy-generate", "/api/x402/paper", "/api/x402/picture"
BOUND = 24_000_000  # an eighth of it is for small bodies; an address takes half
ADDRESSES = [f"203.0.113.{number}" for number in range(1, 9)]


@pytest.fixture
async def gateway(settings, provider, clock):
    async with running(attrs.evolve(settings, body_memory_mb=24), provider, now=clock) as gateway:
        yield gateway


@contextlib.asynccontextmanager
async def held(gateway, path, address, size=None):
    """Open a request and send the beginning of its body; its end may come or not."""
    headers = {"Content-Type": "application/json"}
    if size is not None:
        headers["Content-Length"] = str(size)
    scope = {"client": (address, 50_000)}
    connection = gateway.client.request(path, method="POST", headers=headers, scope_base=scope)
    async with connection as sending:
        await sending.send(b'{"x":"')
        yield sending
        with contextlib.suppress(Exception):
            await sending.disconnect()


async def held_until_refused(gateway, address, size):
    """Send only the beginning of a body; return the response."""
    connection = gateway.client.request(
        DIRECT,
        method="POST",
        headers={"Content-Type": "application/json", "Content-Length": str(size)},
        scope_base={"client": (address, 50_000)},
    )
    async with connection as sending:
        await sending.send(b'{"x":"')
    return await connection.as_response()


async def knock(gateway, path, address, size):
    """Send a whole body of a size; return the response."""
    data = json.dumps({"x": "x" * (size - len('{"x": ""}'))}).encode()
    headers = {"Content-Type": "application/json"}
    scope = {"client": (address, 50_000)}
    return await gateway.client.post(path, data=data, headers=headers, scope_base=scope)


async def full(gateway, address, size=4_000_000) -> bool:
    answer = await knock(gateway, DIRECT, address, size)
    if answer.status_code == 400:
        return False
    body = await answer.get_json()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert body["code"] == "EXECUTION_ERROR"
    assert "Too many large requests" in body["error"]
    return True


async def test_beyond_the_bound_a_large_body_is_refused_before_it_is_read(gateway):
    async with (
        held(gateway, DIRECT, ADDRESSES[0], 10_000_000),
        held(gateway, PAPER, ADDRESSES[1], 10_000_000),
    ):
        assert await full(gateway, ADDRESSES[2], 10_500_000)
        assert not await full(gateway, ADDRESSES[2], 900_000)
    assert not await full(gateway, ADDRESSES[2])


async def test_small_bodies_have_room_beside_large_ones(gateway, payer):
    async with (
        held(gateway, DIRECT, ADDRESSES[0], 10_500_000),
        held(gateway, PAPER, ADDRESSES[1], 10_500_000),
    ):
        assert await full(gateway, ADDRESSES[2], 10_600_000)
        answer = await gateway.client.post(
            PICTURE, json={"prompt": "a boat"}, headers={"X-PAYMENT": payer.header()}
        )
        assert answer.status_code == 200
        assert (await knock(gateway, DIRECT, ADDRESSES[2], 60_000)).status_code == 400


async def test_one_address_takes_half_at_most(gateway):
    async with held(gateway, DIRECT, ADDRESSES[0], 9_000_000):
        assert await full(gateway, ADDRESSES[0])
        assert not await full(gateway, ADDRESSES[1])


async def test_a_body_without_a_length_counts_as_it_grows(gateway):
    async with (
        held(gateway, DIRECT, ADDRESSES[0]) as first,
        held(gateway, DIRECT, ADDRESSES[1]) as second,
    ):
        assert not await full(gateway, ADDRESSES[2], 10_500_000)
        for sending in (first, second):
            for _ in range(100):
                await sending.send(b"x" * 100_000)
        assert await full(gateway, ADDRESSES[2], 10_500_000)
    assert not await full(gateway, ADDRESSES[2], 10_500_000)


async def test_a_body_that_outgrows_the_room_is_refused_and_dropped(gateway):
    connection = gateway.client.request(
        DIRECT,
        method="POST",
        headers={"Content-Type": "application/json"},
        scope_base={"client": (ADDRESSES[1], 50_000)},
    )
    async with (
        held(gateway, DIRECT, ADDRESSES[0], 5_000_000),
        held(gateway, DIRECT, ADDRESSES[2], 5_000_000),
        held(gateway, DIRECT, ADDRESSES[3], 5_000_000),
    ):
        async with connection as sending:
            for _ in range(70):
                await sending.send(b"x" * 100_000)
            await sending.send_complete()
        assert (await connection.as_response()).status_code == 503
        assert not await full(gateway, ADDRESSES[1], 900_000)


async def test_whatever_becomes_of_a_request_its_room_is_given_back(gateway):
    for _ in range(5):
        assert (await knock(gateway, DIRECT, ADDRESSES[0], 10_000_000)).status_code == 400
        assert (await knock(gateway, PAPER, ADDRESSES[1], 10_000_000)).status_code == 400
        assert (await knock(gateway, PICTURE, ADDRESSES[2], 10_000_000)).status_code == 413
        assert (await knock(gateway, "/api/x402/none", ADDRESSES[3], 50_000)).status_code == 404
        assert (await knock(gateway, "/admin/login", ADDRESSES[4], 50_000)).status_code in (
            400,
            429,
        )
        async with held(gateway, DIRECT, ADDRESSES[5], 10_000_000):
            pass
    assert not await full(gateway, ADDRESSES[0], 10_000_000)
    assert not await full(gateway, ADDRESSES[1], 10_000_000)


async def test_the_rate_limit_is_told_before_the_memory_is_looked_at(settings, provider, clock):
    limited = attrs.evolve(settings, body_memory_mb=24, limit_direct="1/60s")
    async with (
        running(limited, provider, now=clock) as gateway,
        held(gateway, DIRECT, ADDRESSES[0], 10_900_000),
        held(gateway, PAPER, ADDRESSES[1], 10_000_000),
    ):
        assert (await knock(gateway, DIRECT, ADDRESSES[2], 10_950_000)).status_code == 503
        assert (await knock(gateway, DIRECT, ADDRESSES[2], 10_950_000)).status_code == 429


async def test_where_it_is_full_the_oldest_slow_body_of_the_greedy_makes_way(gateway):
    async with held(gateway, DIRECT, ADDRESSES[1], 2_000_000):
        slow = asyncio.create_task(held_until_refused(gateway, ADDRESSES[0], 9_000_000))
        await knock(gateway, DIRECT, ADDRESSES[4], 100)  # meanwhile it has begun
        async with held(gateway, PAPER, ADDRESSES[2], 9_500_000):
            assert not await full(gateway, ADDRESSES[3], 4_000_000)
            answer = await slow
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
            # Only this one made way: the others still hold their memory.
            assert await full(gateway, ADDRESSES[3], 10_000_000)


async def test_slow_clients_with_little_bodies_keep_no_buyer_out(gateway, payer):
    async with contextlib.AsyncExitStack() as stack:
        for path, address, size in (
            (DIRECT, ADDRESSES[0], 10_500_000),
            (PAPER, ADDRESSES[1], 10_500_000),
            *((DIRECT, ADDRESSES[2], 60_000) for _ in range(50)),
        ):
            await stack.enter_async_context(held(gateway, path, address, size))
        for _ in range(3):
            header = payer.header()
            answer = await gateway.client.post(
                PICTURE, json={"prompt": "a boat"}, headers={"X-PAYMENT": header}
            )
            assert answer.status_code == 200


def body_of(memory: BodyMemory, address: str) -> CountedBody:
    body = CountedBody(None, None)
    body.memory, body.address_of = memory, lambda: address
    return body


def test_a_body_that_is_whole_makes_way_for_none():
    memory = BodyMemory(1000)
    for is_whole_first in (False, True):
        greedy, modest = body_of(memory, "greedy"), body_of(memory, "modest")
        if is_whole_first:
            greedy.set_complete()
        greedy.admit(500)
        other = body_of(memory, "other")
        other.append(b"x" * 450)
        greedy.set_complete()
        other.set_complete()
        with pytest.raises(BodiesFull):
            modest.admit(100)
        for body in (greedy, other):
            body.release()
        modest.admit(100)
        modest.release()


async def test_a_body_whose_time_is_over_makes_way_without_an_error_for_the_other():
    async def receive():
        return await asyncio.get_running_loop().create_future()

    body = body_of(BodyMemory(1000), "slow")
    body.admit(500)
    reading = asyncio.create_task(body.read_from(receive, 0))
    # The task begins, then its time is over; it has not noticed it when another body comes.
    for _ in range(2):
        await asyncio.sleep(0)
    body.evict()
    with pytest.raises(BodiesFull):
        await reading
