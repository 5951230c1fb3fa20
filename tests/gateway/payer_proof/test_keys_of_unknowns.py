"""An Idempotency-Key whose first payment is still open, was released, or survived a crash."""

import asyncio

import attrs
import pytest

from gateway.domain import PaymentState
from tests.authorizations import cancel, header_of, payload_of
from tests.conftest import WALLET, running
from tests.gateway.payer_proof.conftest import OFTEN
from tests.gateway.payer_proof.purchases import bought, buy, payments, receipt, refusal
from tests.gateway.settlement.outcomes.purchases import abandoned, never, waiting
from tests.patience import PATIENCE_S, until
from tests.waits import Waits, started_with

SEND = "eth_sendRawTransaction"


@pytest.fixture(autouse=True)
def _hurry():
    """Give up soon on an unknown outcome."""
    with started_with(Waits(outcome_s=0.5, settlement=OFTEN)):
        yield


@pytest.fixture
def forgiven(gateway):
    """A payer who cancels a broadcast authorization is barred, but not in these tests."""
    gateway.services.payments.exposure.barred_s = 0.0


async def is_released(gateway) -> bool:
    return "released" in await payments(gateway)


async def shown(gateway, task_id: str) -> dict:
    return await (await gateway.client.get(f"/api/task/{task_id}")).get_json()


async def test_while_the_first_outcome_is_unknown_a_fresh_signature_waits_for_it(
    gateway, payer, chain, rpc
):
    rpc.broken.add(SEND)
    first = await bought(gateway, payer.header(), "key")
    again = await buy(gateway, payer.header(), "key")
    assert (await again.get_json())["taskId"] == first
    assert receipt(again)["transaction"] == ""
    assert (await shown(gateway, first))["status"] == "queued"
    rpc.broken.clear()
    assert (await gateway.wait(first))["status"] == "completed"
    assert await bought(gateway, payer.header(), "key") == first
    assert chain.usdc_balance(WALLET) == 20_000
    assert await payments(gateway) == {"settled": 1}


@pytest.mark.usefixtures("forgiven")
async def test_a_released_payment_frees_its_key_for_a_fresh_signature(gateway, payer, chain, rpc):
    rpc.broken.add(SEND)
    signed = payer.authorization()
    header = _header(chain, payer, signed)
    first = await bought(gateway, header, "key")
    cancel(chain, payer, signed.nonce)
    await until(lambda: is_released(gateway))
    rpc.broken.clear()
    second = await bought(gateway, payer.header(), "key", prompt="another")
    assert second != first
    assert (await shown(gateway, first))["code"] == "PAYMENT_NOT_SETTLED"
    assert (await gateway.wait(second))["status"] == "completed"
    assert await bought(gateway, payer.header(), "key", prompt="another") == second
    assert chain.usdc_balance(WALLET) == 20_000
    assert await payments(gateway) == {"released": 1, "settled": 1}
    replayed = await buy(gateway, header, "key")
    assert await refusal(replayed) == (402, "invalid_exact_evm_nonce_already_used")


@pytest.mark.usefixtures("forgiven")
async def test_a_fresh_signature_is_used_where_the_first_is_released_while_it_waits(
    gateway, payer, chain, rpc
):
    gateway.services.payments.outcome_s = float(PATIENCE_S)
    timing = gateway.services.settlements.timing
    gateway.services.settlements.timing = attrs.evolve(timing, drive_s=float(PATIENCE_S))
    rpc.broken.add(SEND)
    signed = payer.authorization()
    dropped = asyncio.create_task(buy(gateway, _header(chain, payer, signed), "key"))
    await until(gateway.services.store.open_payments)
    repeats = [asyncio.create_task(buy(gateway, payer.header(), "key")) for _ in range(5)]
    await asyncio.sleep(0.2)  # most of them wait by now; whoever comes later is served as well
    cancel(chain, payer, signed.nonce)
    rpc.broken.clear()
    assert (await dropped).status_code == 402
    bodies = [await (await answer).get_json() for answer in repeats]
    assert len({body["taskId"] for body in bodies}) == 1
    assert (await gateway.wait(bodies[0]["taskId"]))["status"] == "completed"
    assert chain.usdc_balance(WALLET) == 20_000
    assert await payments(gateway) == {"released": 1, "settled": 1}


async def test_an_expired_first_payment_frees_its_key(gateway, payer, chain, rpc, clock):
    rpc.broken.add(SEND)
    await bought(gateway, payer.header(), "key")
    clock.offset_s += 700
    chain.advance(700)
    await until(lambda: is_released(gateway))
    rpc.broken.clear()
    later = payer.authorization().valid_before + 700
    second = await bought(gateway, payer.header(valid_before=later), "key")
    assert (await gateway.wait(second))["status"] == "completed"
    assert chain.usdc_balance(WALLET) == 20_000


# Each returns the condition that a payment has come this far.


def _never_sent(gateway, rpc, chain):
    rpc.broken.add(SEND)
    return lambda: SEND in [method for method, _ in rpc.seen]


def _never_signed(gateway, rpc, chain):
    gateway.services.settlements.settler.submit = never
    return lambda: True


def _never_mined(gateway, rpc, chain):
    chain.set_automine(False)
    return lambda: waiting(chain)


def _never_seen(gateway, rpc, chain):
    rpc.broken |= {"eth_getTransactionReceipt", "eth_getLogs"}
    return lambda: chain.usdc_balance(WALLET) == 20_000


@pytest.mark.parametrize(
    ("stop", "state"),
    [
        (_never_signed, PaymentState.RESERVED),
        (_never_sent, PaymentState.SETTLING),
        (_never_mined, PaymentState.SETTLING),
        (_never_seen, PaymentState.SETTLING),
    ],
    ids=["after T1", "after T2", "after sending", "after mining"],
)
async def test_after_a_crash_a_fresh_signature_gets_the_task_of_its_key(
    settings, provider, clock, chain, payer, rpc, stop, state
):
    async with abandoned(settings, provider, clock) as gateway:
        has_come_so_far = stop(gateway, rpc, chain)
        first = await bought(gateway, payer.header(), "key")
        await until(has_come_so_far)
        assert await payments(gateway) == {state: 1}
    rpc.broken.clear()
    chain.set_automine(True)
    async with running(settings, provider, now=clock) as gateway:
        assert await bought(gateway, payer.header(), "key") == first
        assert (await gateway.wait(first))["status"] == "completed"
        assert await payments(gateway) == {"settled": 1}
    assert chain.usdc_balance(WALLET) == 20_000
    assert len(provider.requests) == 1


def _header(chain, payer, signed) -> str:
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    return header_of(payload_of(signed, signature))
