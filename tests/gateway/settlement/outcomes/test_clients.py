"""Clients that leave, repeat a payment, or race for it."""

import asyncio

import pytest

from gateway import ChainUnavailable
from gateway.payments import Reconciler
from gateway.running.timing import Timing
from gateway_demo.chain import FAUCET_KEY
from tests.authorizations import decoded as header_json
from tests.conftest import running
from tests.gateway.settlement.outcomes.purchases import (
    PRICE,
    bought,
    buy,
    ended_as_one_task,
    pay_directly,
    until_paid,
    waiting,
)
from tests.patience import PATIENCE_S, until


async def test_a_client_that_leaves_while_we_settle_has_bought_all_the_same(gateway, payer, chain):
    chain.set_automine(False)
    # It leaves before it has a response.
    gateway.services.payments.outcome_s = PATIENCE_S
    header = payer.header()
    request = asyncio.create_task(buy(gateway, header))

    async def is_sent():
        return waiting(chain)

    await until(is_sent)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    chain.set_automine(True)
    await ended_as_one_task(gateway, chain, await bought(gateway, header))


async def test_a_client_may_leave_at_any_moment(gateway, payer, chain):
    header = payer.header()
    for pause_s in (0, 0.001, 0.005, 0.01, 0.02, 0.03, 0.05):
        request = asyncio.create_task(buy(gateway, header))
        await asyncio.sleep(pause_s)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
    await ended_as_one_task(gateway, chain, await bought(gateway, header))


async def test_fifty_times_the_same_header_at_once_is_one_task(
    settings, payer, chain, provider, clock
):
    header = payer.header()
    async with running(settings, provider, now=clock) as gateway:
        answers = await asyncio.gather(*(buy(gateway, header) for _ in range(50)))
        assert {answer.status_code for answer in answers} == {200}
        ids = {(await answer.get_json())["taskId"] for answer in answers}
        assert len(ids) == 1
        await ended_as_one_task(gateway, chain, ids.pop())
    assert len(provider.requests) == 1


async def test_of_fifty_requests_with_one_hash_at_once_one_is_served(
    settings, payer, chain, provider, clock
):
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.payments.cutoff_block()
        tx_hash = payer.transfer(PRICE)
        answers = await asyncio.gather(
            *(pay_directly(gateway, tx_hash, f"boat {number}") for number in range(50))
        )
    assert sorted(answer.status_code for answer in answers) == [200] + 49 * [400]
    codes = [(await answer.get_json()).get("code") for answer in answers]
    assert codes.count("TX_ALREADY_USED") == 49


@pytest.mark.parametrize("moment", ["while it settles", "after it settled"])
async def test_the_hash_of_a_settlement_buys_nothing(
    gateway, payer, chain, provider, monkeypatch, moment
):
    if moment == "while it settles":

        async def unknown(*_):
            raise ChainUnavailable("silent")

        monkeypatch.setattr(Reconciler, "close", unknown)
        monkeypatch.setattr(Reconciler, "close_by_receipt", unknown)
    else:
        gateway.services.payments.outcome_s = PATIENCE_S
    task_id = await bought(gateway, payer.header())
    await until_paid(chain)
    rows = await gateway.services.store._rows("SELECT tx_hash FROM sent_transactions")
    refusal = await pay_directly(gateway, rows[0][0])
    assert (refusal.status_code, (await refusal.get_json())["code"]) == (400, "TX_ALREADY_USED")
    monkeypatch.undo()
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_hash_and_its_authorization_race_and_pay_once(gateway, payer, chain, provider):
    """A third party submitted the authorization; its hash and its header arrive together."""
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    tx_hash = chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    answers = await asyncio.gather(buy(gateway, header), pay_directly(gateway, tx_hash))
    served, refused = sorted(answer.status_code for answer in answers)
    assert served == 200
    assert refused in (400, 402)
    assert sum((await gateway.services.store.counts())["tasks"].values()) == 1


async def test_a_closing_gateway_leaves_an_open_payment_to_the_next(
    settings, provider, clock, chain, payer
):
    chain.set_automine(False)
    timing = Timing(drain_payments_s=0.1)
    async with running(settings, provider, now=clock, timing=timing) as gateway:
        task_id = await bought(gateway, payer.header())
    chain.set_automine(True)
    async with running(settings, provider, now=clock) as gateway:
        await ended_as_one_task(gateway, chain, task_id)


async def test_the_receipt_of_a_200_names_the_transaction_that_paid(gateway, payer, chain):
    gateway.services.payments.outcome_s = PATIENCE_S
    answer = await buy(gateway, payer.header())
    decoded = header_json(answer.headers["X-PAYMENT-RESPONSE"])
    receipt = chain.receipt(decoded["transaction"])
    assert receipt["status"] == "0x1"
