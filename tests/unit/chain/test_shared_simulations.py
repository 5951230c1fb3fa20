"""Which transfers share a call, and when each is simulated alone; the endpoint is scripted."""

import asyncio

import attrs
import pytest
import structlog

from gateway.chain import shared_simulations as module
from gateway.chain.keys import address_of
from gateway.chain.retries import Cooldown, EndpointRefused, RetryTiming
from gateway.chain.shared_simulations import TRANSFER_BYTES, SharedSimulations
from gateway.chain.smart_wallets import key_call, sign_authorization
from gateway.contracts import CallReverted
from gateway.domain import Authorization
from gateway.domain.eip3009 import BASE
from gateway.errors import ChainUnavailable

WALLET = "0x" + "22" * 20
FAILS, CODE, PASSES = b"\2", b"\1", b"\3"
SECRETS = [number.to_bytes(32) for number in range(1, 40)]


def signed(secret: bytes, nonce: int = 1, to: str = WALLET) -> Authorization:
    unsigned = Authorization(
        sender=address_of(secret).lower(),
        recipient=to,
        value_units=20_000,
        valid_after=0,
        valid_before=2_000,
        nonce=f"0x{nonce:064x}",
        signature=b"",
    )
    return sign_authorization(secret, unsigned, BASE)


SALES = [signed(secret) for secret in SECRETS]


@attrs.define
class ScriptedEndpoint:
    """Answers with the flags of each transfer, or as `fault` wants."""

    place: int = 1
    cooldown: Cooldown = attrs.field(factory=Cooldown)
    flags: dict[bytes, bytes] = attrs.field(factory=dict)
    fault: object = None
    asked: list[int] = attrs.field(factory=list)
    gas: list[int] = attrs.field(factory=list)
    may_answer: asyncio.Event = attrs.field(factory=asyncio.Event)
    was_asked: asyncio.Condition = attrs.field(factory=asyncio.Condition)

    async def wait_asked(self, count: int) -> None:
        async with self.was_asked:
            await self.was_asked.wait_for(lambda: len(self.asked) == count)

    async def request(self, method, call, where):
        assert (method, set(call), where) == ("eth_call", {"data", "gas"}, "latest")
        data = bytes.fromhex(call["data"][2:])
        size = int.from_bytes(data[1:3])
        calls = [data[at : at + TRANSFER_BYTES] for at in range(size, len(data), TRANSFER_BYTES)]
        self.gas.append(int(call["gas"], 16))
        async with self.was_asked:
            self.asked.append(len(calls))
            self.was_asked.notify_all()
        fault = self.fault
        await self.may_answer.wait()
        if isinstance(fault, Exception):
            raise fault
        return fault or "0x" + b"".join(self.flags.get(one, PASSES) for one in calls).hex()


@pytest.fixture
def endpoint():
    endpoint = ScriptedEndpoint()
    endpoint.may_answer.set()
    return endpoint


@pytest.fixture
def shared(endpoint, monkeypatch):
    # However slow the machine is.
    monkeypatch.setattr(module, "_PATIENCE_S", 3600.0)
    monkeypatch.setattr(module, "_WAIT_S", 3600.0)
    return SharedSimulations(BASE, lambda ask: ask(endpoint))


def simulate(shared, *sales):
    return asyncio.gather(*(shared.simulate(one) for one in sales))


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def begin(shared, endpoint, *sales):
    """Begin a call that is not answered yet."""
    endpoint.may_answer.clear()
    begun = asyncio.ensure_future(simulate(shared, *sales))
    await turns()
    return begun


async def test_a_lone_transfer_does_not_wait_for_others(shared, endpoint):
    assert await simulate(shared, SALES[0]) == [True]
    assert endpoint.asked == [1]


async def test_each_transfer_gets_its_own_answer(shared, endpoint):
    endpoint.flags = {
        key_call(SALES[1], BASE).data: FAILS,
        key_call(SALES[3], BASE).data: CODE,
        key_call(SALES[4], BASE).data: b"\0",
    }
    assert await simulate(shared, *SALES[:6]) == [True, False, True, False, False, True]
    assert endpoint.asked == [6]


async def test_the_two_readings_of_a_sale_are_one_transfer(shared, endpoint):
    assert await simulate(shared, SALES[0], SALES[0], SALES[1]) == [True] * 3
    assert endpoint.asked == [2]


async def test_transfers_that_come_during_a_call_share_the_next_one(shared, endpoint):
    first = await begin(shared, endpoint, SALES[0])
    others = asyncio.ensure_future(simulate(shared, *SALES[1:5]))
    await turns()
    assert endpoint.asked == [1]
    endpoint.may_answer.set()
    assert await first == [True]
    assert await others == [True] * 4
    assert endpoint.asked == [1, 4]


async def test_nothing_waits_long_for_a_slow_call(shared, endpoint, monkeypatch):
    monkeypatch.setattr(module, "_WAIT_S", 0.001)
    slow = await begin(shared, endpoint, SALES[0])
    waiting = asyncio.ensure_future(simulate(shared, SALES[1]))
    await endpoint.wait_asked(2)
    endpoint.may_answer.set()
    assert await slow == await waiting == [True]


async def test_a_full_call_does_not_wait(shared, endpoint):
    slow = await begin(shared, endpoint, SALES[0])
    full = asyncio.ensure_future(simulate(shared, *SALES[1:19]))
    await turns()
    assert endpoint.asked == [1, 16]
    endpoint.may_answer.set()
    await asyncio.gather(slow, full)
    assert endpoint.asked == [1, 16, 2]
    # Base's blocks have 400 million gas, and endpoints allow 10 million or more.
    assert max(endpoint.gas) < 3_000_000


async def test_a_call_in_progress_is_not_joined(shared, endpoint):
    """Its readings may be older than the caller's question."""
    first = await begin(shared, endpoint, SALES[0])
    second = asyncio.ensure_future(simulate(shared, SALES[0]))
    endpoint.may_answer.set()
    assert await first == await second == [True]
    assert endpoint.asked == [1, 1]


@pytest.mark.parametrize("order", [1, -1])
async def test_a_payer_who_gets_money_from_another_sale_is_in_another_call(shared, endpoint, order):
    gift = signed(SECRETS[0], to=SALES[1].sender)
    await simulate(shared, *[gift, SALES[1], SALES[2]][::order])
    assert sorted(endpoint.asked) == [1, 2]


async def test_a_signature_by_another_key_is_not_asked_for(shared, endpoint):
    forged = attrs.evolve(SALES[0], signature=SALES[1].signature)
    wrapped = attrs.evolve(SALES[0], signature=SALES[0].signature + bytes(32))
    assert await simulate(shared, forged, wrapped) == [False, False]
    assert endpoint.asked == []


FAULTS = [
    CallReverted("execution reverted"),
    ChainUnavailable("missing field `to`"),
    EndpointRefused("status 429"),
    "0x",
    "0x0303",
    "0x" + "00" * 32,
    "nonsense",
    {"result": "0x03"},
]


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_an_endpoint_that_does_not_answer_a_call_rests(shared, endpoint, fault):
    endpoint.fault = fault
    with structlog.testing.capture_logs() as logs:
        assert await simulate(shared, SALES[0]) == [False]
        assert await simulate(shared, *SALES) == [False] * len(SALES)
    assert endpoint.asked == [1]
    assert [entry["event"] for entry in logs] == ["rpc.not_shared"]
    # Another endpoint does not.
    endpoint.place, endpoint.fault = 2, None
    assert await simulate(shared, SALES[0]) == [True]


async def test_a_refusal_is_logged_once_until_a_call_succeeds(shared, endpoint, monkeypatch):
    monkeypatch.setattr(module, "_REST", RetryTiming(first_cooldown_s=0, longest_cooldown_s=0))
    with structlog.testing.capture_logs() as logs:
        for fault in (FAULTS[1], FAULTS[1], None, FAULTS[1]):
            endpoint.fault = fault
            assert await simulate(shared, SALES[0]) == [fault is None]
    assert endpoint.asked == [1] * 4
    assert len(logs) == 2


async def test_calls_that_fail_together_count_as_one_failure(shared, endpoint, monkeypatch):
    monkeypatch.setattr(module, "_WAIT_S", 0.0)
    endpoint.fault = FAULTS[2]
    first = await begin(shared, endpoint, SALES[0])
    second = asyncio.ensure_future(simulate(shared, SALES[1]))
    await endpoint.wait_asked(2)
    endpoint.may_answer.set()
    await asyncio.gather(first, second)
    assert shared._rests[endpoint.place].failures == 1


def test_an_endpoint_that_always_refuses_is_asked_every_few_minutes():
    assert module._REST.cooldown_s(1) <= 10
    assert 120 < module._REST.cooldown_s(20) <= 300


async def test_a_call_without_an_answer_is_given_up(shared, endpoint, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.01)
    endpoint.may_answer.clear()
    assert await simulate(shared, SALES[0], SALES[1]) == [False, False]


async def test_an_endpoint_that_rests_is_not_asked(shared, endpoint):
    endpoint.cooldown.begin(asyncio.get_running_loop().time(), least_s=60.0, retry_after_s=0.0)
    assert await simulate(shared, SALES[0]) == [False]
    assert endpoint.asked == []


async def test_without_an_endpoint_all_are_simulated_alone(shared):
    async def fail(ask):
        raise ChainUnavailable("The gateway is stopping.")

    shared._ask_first = fail
    assert await simulate(shared, SALES[0], SALES[1]) == [False, False]


async def test_a_caller_that_goes_takes_no_answer_away(shared, endpoint):
    endpoint.may_answer.clear()
    gone, stays = (asyncio.create_task(shared.simulate(one)) for one in SALES[:2])
    await turns()
    gone.cancel()
    endpoint.may_answer.set()
    assert await stays is True
    with pytest.raises(asyncio.CancelledError):
        await gone
