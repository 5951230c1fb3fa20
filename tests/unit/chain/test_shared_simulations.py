"""Which transfers share a call, and when each is simulated alone; the endpoint is scripted."""

import asyncio

import attrs
import pytest
import structlog

from gateway.chain import shared_simulations as module
from gateway.chain.authorization_checks import AuthorizationChecks
from gateway.chain.retries import Cooldown, EndpointLags, EndpointRefused, RetryTiming
from gateway.chain.shared_simulations import TRANSFER_BYTES, SharedSimulations
from gateway.chain.smart_wallets import key_call
from gateway.contracts import CallReverted
from gateway.domain.eip3009 import BASE
from gateway.errors import ChainUnavailable
from gateway_testing.fakes.chain import FakeChain
from tests.authorizations import signed_by

WALLET = "0x" + "22" * 20
FAILS, CODE, PASSES = b"\2", b"\1", b"\3"
SECRETS = [number.to_bytes(32) for number in range(1, 40)]


SALES = [signed_by(secret) for secret in SECRETS]


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

    async def request(self, method, call, where, *, is_optional):
        assert is_optional
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
    gift = signed_by(SECRETS[0], to=SALES[1].sender)
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
    EndpointRefused("status 500", is_general=False),
    "0x",
    "0x0303",
    "0x" + "00" * 32,
    "nonsense",
    {"result": "0x03"},
    KeyError("result"),
    TypeError("no answer"),
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
    endpoint.fault = FAULTS[1]
    first = await begin(shared, endpoint, SALES[0])
    second = asyncio.ensure_future(simulate(shared, SALES[1]))
    await endpoint.wait_asked(2)
    endpoint.may_answer.set()
    await asyncio.gather(first, second)
    assert shared._rests[endpoint.place]._cooldown.failures == 1


def test_an_endpoint_that_always_refuses_is_asked_every_few_minutes():
    assert module._REST.cooldown_s(1) <= 10
    assert 120 < module._REST.cooldown_s(20) <= 300


BUSY = [EndpointRefused("status 429"), EndpointLags("lacks a block")]


@pytest.mark.parametrize("fault", BUSY, ids=str)
async def test_a_busy_endpoint_is_asked_again_at_the_next_sale(shared, endpoint, fault):
    endpoint.fault = fault
    with structlog.testing.capture_logs() as logs:
        assert await simulate(shared, SALES[0]) == [False]
        endpoint.fault = None
        assert await simulate(shared, SALES[1]) == [True]
    assert logs == []


@pytest.mark.parametrize("fault", [FAULTS[2], "silence"], ids=str)
async def test_a_call_without_an_answer_begins_the_same_pause_each_time(
    shared, endpoint, monkeypatch, fault
):
    monkeypatch.setattr(module, "_PATIENCE_S", 0.01 if fault == "silence" else 3600.0)
    endpoint.fault = fault
    if fault == "silence":
        endpoint.may_answer.clear()
    with structlog.testing.capture_logs() as logs:
        for asked in range(1, 6):
            assert await simulate(shared, SALES[0], SALES[1]) == [False, False]
            assert await simulate(shared, SALES[2]) == [False]
            assert endpoint.asked == [2] * asked
            rest = shared._rests[endpoint.place]._cooldown
            assert rest.until <= asyncio.get_running_loop().time() + module._PAUSE_S
            # It is over.
            rest.until = 0.001
    assert len(logs) == 1


@pytest.mark.parametrize("fault", [*BUSY, FAULTS[2]], ids=str)
async def test_an_endpoint_that_only_fails_for_long_rests_like_one_that_refuses(
    shared, endpoint, monkeypatch, fault
):
    monkeypatch.setattr(module, "_LASTING_S", 0.0)
    # The success between begins the time again.
    for fails in (True, False, True, True):
        endpoint.fault = fault if fails else None
        assert await simulate(shared, SALES[0]) == [not fails]
        rest = shared._rests[endpoint.place]._cooldown
        assert rest.failures == (endpoint.asked == [1] * 4)
        if not rest.failures:
            rest.until = 0.0
    endpoint.fault = None
    assert await simulate(shared, SALES[1]) == [False]
    assert endpoint.asked == [1] * 4


async def test_all_of_an_attempt_is_limited_such_as_connecting(shared, monkeypatch):
    async def hang(ask):
        await asyncio.Event().wait()

    monkeypatch.setattr(module, "_PATIENCE_S", 0.01)
    shared._ask_in_order = hang
    assert await simulate(shared, SALES[0]) == [False]


@pytest.mark.parametrize("turn", range(4))
async def test_a_cancelled_call_leaves_its_sales_and_later_ones_to_others(shared, endpoint, turn):
    busy = await begin(shared, endpoint, SALES[0])
    waiting = asyncio.ensure_future(shared.simulate(SALES[1]))
    await turns(turn + 1)
    for task in list(shared._tasks):
        task.cancel()
    late = asyncio.ensure_future(simulate(shared, *SALES[1:3]))
    assert await waiting is False
    assert await busy == [False]
    endpoint.may_answer.set()
    assert set(await late) <= {True, False}
    assert await simulate(shared, *SALES[1:3]) == [True, True]


async def test_closing_ends_the_calls(shared, endpoint):
    busy = await begin(shared, endpoint, SALES[0])
    waiting = asyncio.ensure_future(shared.simulate(SALES[1]))
    await turns()
    await shared.close()
    assert await busy == [False]
    assert await waiting is False
    assert not [one for one in asyncio.all_tasks() if one.get_name() == "shared-simulation"]


@pytest.mark.parametrize("count", [16, 17, 32, 39])
async def test_many_sales_at_once_ask_for_each_transfer_once(shared, endpoint, count):
    async def prepare(transfer):
        # One turn of the loop later, as in a sale.
        return (await asyncio.gather(shared.simulate(transfer)))[0]

    sales = [asyncio.gather(shared.simulate(one), prepare(one)) for one in SALES[:count]]
    assert await asyncio.gather(*sales) == [[True, True]] * count
    assert sum(endpoint.asked) == count


async def test_without_an_endpoint_all_are_simulated_alone(shared):
    async def fail(ask):
        raise ChainUnavailable("The gateway is stopping.")

    shared._ask_in_order = fail
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


@pytest.mark.parametrize(("are_plain", "asked"), [(True, 1), (False, 2)])
async def test_the_fake_chain_of_plugins_shares_simulations_of_plain_accounts(are_plain, asked):
    chain = FakeChain(accepts_calls=True, are_plain=are_plain)
    assert await AuthorizationChecks(BASE, chain).check(SALES[0])
    assert chain.called == [key_call(SALES[0], BASE).data]
    assert chain.asked == asked
