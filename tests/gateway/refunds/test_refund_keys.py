"""Refunds signed for another address, or begun by another key."""

import attrs
import pytest
from eth_account import Account

from gateway import ContentPolicy
from gateway.errors import RefundRefused
from gateway.payments.refunds import RefundTiming
from gateway_demo.chain import FAUCET_KEY
from tests.conftest import Payer, buy, running
from tests.gateway.refunds.conftest import fail_once
from tests.gateway.refunds.steps import (
    EVERYTHING,
    by_hand,
    refused_by_the_token,
    state_of,
    until_settling,
)
from tests.gateway.refunds.test_refunds import (
    PRICE,
    approve,
    case_of,
    until_problem,
    until_state,
)
from tests.proof.faults.proxy import never_lands


@pytest.fixture
def swapped(proxied, gas_key, refund_key, chain):
    """The two keys change places."""
    chain.fund(gas_key.address, eth_wei=0, usdc_units=1_000_000)
    return attrs.evolve(proxied, settlement_key=refund_key.key.hex(), refund_key=gas_key.key.hex())


async def test_a_refund_that_was_signed_is_never_signed_for_another_address(
    settings, provider, payer, chain, clock, refund_key
):
    """Both signatures would exist, and the nonce would decide between them, not the operator."""
    async with running(settings, provider, now=clock) as gateway:
        gateway.services.refunds.timing = RefundTiming(sweep_s=0.05, lag_s=0.0)
        task, _ = await refused_by_the_token(gateway, payer, provider, chain, refund_key)
        with pytest.raises(RefundRefused, match="was signed for"):
            await approve(gateway, task, to=Account.create().address.lower())
        case = await case_of(gateway, task)
        assert (case.payment.state, case.recipient) == ("refund_failed", case.payment.payer)
        chain.fund(refund_key.address, eth_wei=10**18, usdc_units=PRICE)
        await approve(gateway, task, to=case.recipient)
        gateway.services.refunds.start()
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == EVERYTHING


async def test_what_one_key_began_is_closed_under_another_and_not_paid_by_it(
    settings, provider, payer, chain, clock, refund_key
):
    async with running(settings, provider, now=clock) as gateway:
        gateway.services.refunds.timing = RefundTiming(sweep_s=0.05, lag_s=0.0)
        task, signed = await refused_by_the_token(gateway, payer, provider, chain, refund_key)
    new = Account.create()
    chain.fund(new.address, eth_wei=10**18, usdc_units=1_000_000)
    changed = attrs.evolve(settings, refund_key=new.key.hex())
    async with running(changed, provider, now=clock) as gateway:
        await approve(gateway, task)
        await until_problem(gateway, task, "another refund key")
        chain.fund(refund_key.address, eth_wei=0, usdc_units=PRICE)
        paid = chain.send_transaction(FAUCET_KEY, chain.usdc, signed)  # anybody may
        refund = await until_state(gateway, task, "refunded")
        assert refund["transaction"] == paid
        assert (await case_of(gateway, task)).sender == refund_key.address.lower()
    assert chain.usdc_balance(payer.account.address) == EVERYTHING
    assert chain.usdc_balance(new.address) == 1_000_000


async def test_a_refund_key_that_was_the_settlement_key_sends_also_what_it_left_unmined(
    proxied, swapped, proxy, provider, payer, chain, clock
):
    """Its stuck settlement blocks every refund, and is replaced by the same settlement."""
    async with running(proxied, provider, now=clock) as gateway:
        gateway.services.payments.outcome_s = 0.2
        failed = await fail_once(gateway, Payer(chain), provider)
        proxy.break_call("eth_sendRawTransaction", never_lands)
        bought = (await (await buy(gateway, payer.header())).get_json())["taskId"]
        await until_settling(gateway, bought)
    proxy.heal()
    clock.offset_s += 16
    async with running(swapped, provider, now=clock) as gateway:
        await approve(gateway, failed)
        await until_state(gateway, failed, "refunded")
        assert (await gateway.wait(bought))["status"] == "completed"
    assert chain.usdc_balance(payer.account.address) == EVERYTHING - PRICE


async def test_a_stuck_settlement_of_the_key_is_never_replaced_by_a_refund_nobody_approved(
    proxied, swapped, proxy, provider, payer, chain, clock
):
    """A third party has settled the payment, whose task failed, so its refund is due."""
    provider.script = [ContentPolicy("No boats.")]
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    async with running(proxied, provider, now=clock) as gateway:
        gateway.services.payments.outcome_s = 0.2
        proxy.break_call("eth_sendRawTransaction", never_lands)
        task = await (await buy(gateway, header)).get_json()
        await until_settling(gateway, task["taskId"])
        signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
        chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
        failed = await gateway.wait(task["taskId"])
    clock.offset_s += 16
    async with running(swapped, provider, now=clock) as gateway:
        refunds = await by_hand(gateway)
        # The first sweep sees the transaction; a later one notices a block without it.
        for _ in range(3):
            await refunds.sweep()
            chain.mine()
        proxy.heal()
        await refunds.sweep()
        chain.mine()
        await refunds.sweep()
        assert await state_of(gateway, failed) == "refund_due"
    assert chain.usdc_balance(payer.account.address) == EVERYTHING - PRICE
