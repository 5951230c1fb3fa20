"""Edge cases of refunds: found late, decided again, begun by another key, refused by a node."""

import asyncio

import attrs
import pytest
from eth_account import Account

from gateway import ContentPolicy
from gateway.domain.eip3009 import transfer_calldata
from gateway.errors import RefundRefused
from gateway.payments.refunds import RefundTiming
from gateway_demo.chain import FAUCET_KEY
from gateway_operator.state import Operator
from tests.conftest import Payer, buy, running
from tests.gateway.refunds.conftest import fail_directly, fail_once
from tests.gateway.refunds.test_refunds import (
    PRICE,
    approve,
    call_token,
    case_of,
    late,
    refund_of,
    spend,
    until_problem,
    until_sent,
    until_state,
    without_its_money,
)
from tests.patience import until
from tests.proof.faults.proxy import error as internal_error
from tests.proof.faults.proxy import never_lands

SPENT = "eth_call authorizationState"
BALANCE = "eth_call balanceOf"
SIMULATION = "eth_call simulation, signed"
LAG_S = 120.0
EVERYTHING = 100_000_000  # what a payer starts with


@pytest.fixture
def proxied(settings, proxy):
    return attrs.evolve(settings, rpc_urls=(proxy.url,))


@pytest.fixture
def swapped(proxied, gas_key, refund_key, chain):
    """The two keys change places."""
    chain.fund(gas_key.address, eth_wei=0, usdc_units=1_000_000)
    return attrs.evolve(proxied, settlement_key=refund_key.key.hex(), refund_key=gas_key.key.hex())


async def until_settling(gateway, task_id):
    """Return once the transaction of a payment is signed: the response may come earlier."""

    async def is_settling():
        task = await (await gateway.client.get(f"/api/task/{task_id}")).get_json()
        return task["payment"]["state"] == "settling"

    await until(is_settling)


async def state_of(gateway, task) -> str:
    return (await refund_of(gateway, task))["state"]


async def by_hand(gateway):
    """Return the refunds of a gateway that sweeps only on demand."""
    await gateway.services.lifecycle.warmed.wait()  # its start begins to sweep
    await gateway.services.refunds.close()
    return gateway.services.refunds


async def sent_hashes(gateway) -> list[str]:
    rows = await gateway.services.store._rows(
        "SELECT tx_hash FROM sent_transactions WHERE signer = ? ORDER BY nonce",
        gateway.services.refunds.address,
    )
    return [row["tx_hash"] for row in rows]


async def refused_by_the_token(gateway, payer, provider, chain, refund_key) -> tuple[dict, bytes]:
    """Fail a task whose signed refund could not be paid; return it, and the signed bytes."""
    refunds = gateway.services.refunds
    task = await late(gateway, payer, provider, chain)
    await approve(gateway, task)
    await until_state(gateway, task, "refunding")
    await until_sent(chain, refund_key)
    await refunds.close()
    signed = transfer_calldata(refunds._sign(await case_of(gateway, task)))
    for tx_hash in await sent_hashes(gateway):
        chain.drop(tx_hash)
    chain.set_automine(True)
    spend(chain, refund_key, 0)
    call_token(chain, "blacklist", payer.account.address)
    await refunds.sweep()
    assert await state_of(gateway, task) == "refund_failed"
    call_token(chain, "unBlacklist", payer.account.address)
    return task, signed


async def test_a_refund_is_found_however_late_it_is_mined(
    settings, provider, payer, chain, clock, monkeypatch
):
    """An approval after a weekend: more blocks than an authorization's search spans."""
    for module in ("reconcile", "refunds"):
        for name in ("SPAN", "_SPAN"):
            monkeypatch.setattr(f"gateway.payments.{module}.{name}", 50, raising=False)
    async with running(settings, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        chain.mine(60)
        await approve(gateway, task)
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == EVERYTHING


async def test_a_refund_goes_where_the_ledger_says_also_when_that_changes_meanwhile(
    proxied, proxy, provider, payer, chain, clock
):
    """The operator corrects the address after the sweep has read its list."""
    other = Account.create().address.lower()
    loop = asyncio.get_running_loop()
    async with running(proxied, provider, now=clock) as gateway:
        task = await fail_directly(gateway, payer, provider)
        refunds = await by_hand(gateway)
        await approve(gateway, task)

        def corrected(proxy, request, body):
            proxy.heal()
            correction = approve(gateway, task, to=other)
            asyncio.run_coroutine_threadsafe(correction, loop).result(20)
            return 200, chain.rpc.answer(body)

        # Otherwise recently read fees would not be read again.
        gateway.services.chain._fees.ttl_s = 0.0
        proxy.break_call("eth_maxPriorityFeePerGas", corrected)
        await refunds.sweep()
        assert not proxy.faults
        await refunds.sweep()
        await refunds.sweep()
        case = await case_of(gateway, task)
        assert (case.payment.state, case.recipient) == ("refunded", other)
    assert chain.usdc_balance(other) == PRICE
    assert chain.usdc_balance(payer.account.address) == EVERYTHING - PRICE


async def test_a_lagging_endpoint_fails_no_refund_that_was_signed_long_ago(
    proxied, proxy, provider, payer, chain, clock, refund_key
):
    """It lacks the top-up, or the nonce's use, when it is asked."""
    async with running(proxied, provider, now=clock) as gateway:
        task = await mined_in_vain(gateway, payer, provider, chain, refund_key)
        chain.fund(refund_key.address, eth_wei=0, usdc_units=PRICE)
        # Refusals with such a long pause between them are not consecutive.
        for _ in range(2):
            clock.offset_s += 3600
            await sweep_refused(gateway, proxy)
            assert await state_of(gateway, task) == "refunding"
        await gateway.services.refunds.sweep()
        await gateway.services.refunds.sweep()
        assert await state_of(gateway, task) == "refunded"
    assert chain.usdc_balance(payer.account.address) == EVERYTHING


async def test_refusals_before_the_money_was_taken_again_do_not_count(
    proxied, proxy, provider, payer, chain, clock, refund_key
):
    async with running(proxied, provider, now=clock) as gateway:
        task = await mined_in_vain(gateway, payer, provider, chain, refund_key)
        for _ in range(3):
            clock.offset_s += LAG_S * 0.6
            chain.fund(refund_key.address, eth_wei=0, usdc_units=PRICE)
            await sweep_refused(gateway, proxy)
            spend(chain, refund_key, PRICE)
            await gateway.services.refunds.sweep()
            assert await state_of(gateway, task) == "refunding"
            assert "holds only 0 USDC" in (await case_of(gateway, task)).problem


async def test_money_that_goes_while_the_token_is_asked_is_waited_for(
    proxied, proxy, provider, payer, chain, clock, refund_key
):
    async with running(proxied, provider, now=clock) as gateway:
        task = await mined_in_vain(gateway, payer, provider, chain, refund_key)
        gateway.services.refunds.timing = RefundTiming(lag_s=0.0)
        chain.fund(refund_key.address, eth_wei=0, usdc_units=PRICE)

        def spent_meanwhile(proxy, request, body):
            proxy.heal()
            spend(chain, refund_key, PRICE)
            return 200, chain.rpc.answer(body)

        proxy.break_call(SIMULATION, spent_meanwhile)
        await gateway.services.refunds.sweep()
        assert not proxy.faults
        assert await state_of(gateway, task) == "refunding"
        assert "holds only 0 USDC" in (await case_of(gateway, task)).problem


async def test_a_refusal_that_outlasts_every_lag_is_the_tokens_own(
    settings, provider, payer, chain, clock, refund_key
):
    async with running(settings, provider, now=clock) as gateway:
        task = await mined_in_vain(gateway, payer, provider, chain, refund_key)
        call_token(chain, "blacklist", payer.account.address)
        chain.fund(refund_key.address, eth_wei=0, usdc_units=PRICE)
        clock.offset_s += 3600
        states = []
        for _ in range(3):
            await gateway.services.refunds.sweep()
            states.append(await state_of(gateway, task))
            clock.offset_s += LAG_S * 0.6
        assert states == ["refunding", "refunding", "refund_failed"]
        assert "The token refuses it" in (await case_of(gateway, task)).problem


async def mined_in_vain(gateway, payer, provider, chain, refund_key) -> dict:
    """Fail a task whose refund was signed, and whose nonce another transaction used."""
    task = await without_its_money(gateway, payer, provider, chain, refund_key)
    await gateway.services.refunds.close()
    gateway.services.refunds.timing = RefundTiming(lag_s=LAG_S)
    await gateway.services.refunds.sweep()
    assert "holds only 0 USDC" in (await case_of(gateway, task)).problem
    return task


def refused(proxy, request, body):
    status, answer = internal_error(proxy, request, body)
    return status, answer.replace(b"-32000", b"3").replace(b"internal error", b"execution reverted")


async def sweep_refused(gateway, proxy) -> None:
    """Sweep while the endpoint refuses every simulation."""
    proxy.break_call(SIMULATION, refused)
    await gateway.services.refunds.sweep()
    assert SIMULATION in proxy.seen
    proxy.heal()
    proxy.seen.clear()


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


def no_gas(proxy, request, body):
    status, answer = internal_error(proxy, request, body)
    return status, answer.replace(b"internal error", b"insufficient funds for gas * price + value")


async def test_one_refund_that_a_node_refuses_keeps_no_other_from_closing(
    proxied, proxy, provider, chain, clock
):
    async with running(proxied, provider, now=clock) as gateway:
        refunds = await by_hand(gateway)
        tasks = [await fail_once(gateway, Payer(chain), provider) for _ in range(2)]
        for task in tasks:
            await approve(gateway, task)
        chain.set_automine(False)
        await refunds.sweep()
        chain.drop((await sent_hashes(gateway))[-1])
        chain.mine()
        proxy.break_call("eth_sendRawTransaction", no_gas)
        await refunds.sweep()
        assert [await state_of(gateway, task) for task in tasks] == ["refunded", "refunding"]
        proxy.heal()
        chain.set_automine(True)
        await refunds.sweep()
        await refunds.sweep()
        assert await state_of(gateway, tasks[1]) == "refunded"


async def test_of_many_refunds_over_the_cap_only_one_is_asked_about(
    proxied, proxy, provider, chain, clock
):
    capped = attrs.evolve(proxied, refunds="automatic", refund_daily_cap="0.02")
    async with running(capped, provider, now=clock) as gateway:
        refunds = await by_hand(gateway)
        tasks = [await fail_once(gateway, Payer(chain), provider) for _ in range(5)]
        await refunds.sweep()
        await refunds.sweep()
        assert [await state_of(gateway, task) for task in tasks] == ["refunded"] + 4 * [
            "refund_due"
        ]
        proxy.seen.clear()
        await refunds.sweep()
        assert proxy.seen.count(SPENT) == 1
        problems = [(await case_of(gateway, task)).problem for task in tasks[1:]]
        assert all("cap" in problem for problem in problems)  # those not asked about say why too
        await approve(gateway, tasks[-1])  # the cap is not for what the operator said
        await refunds.sweep()
        await refunds.sweep()
        assert await state_of(gateway, tasks[-1]) == "refunded"
        assert await state_of(gateway, tasks[2]) == "refund_due"


async def test_of_many_refunds_without_the_money_only_the_first_asks_for_the_balance(
    proxied, proxy, provider, chain, clock, refund_key
):
    spend(chain, refund_key, 1_000_000 - PRICE + 1)
    poor = attrs.evolve(proxied, refunds="automatic")
    async with running(poor, provider, now=clock) as gateway:
        refunds = await by_hand(gateway)
        tasks = [await fail_once(gateway, Payer(chain), provider) for _ in range(4)]
        # These two read the balance, too.
        await gateway.services.refund_promises.stop()
        gateway.services.find(Operator).alarms.is_mine = lambda: False
        proxy.seen.clear()
        await refunds.sweep()
        assert proxy.seen.count(BALANCE) == 1
        problems = [(await case_of(gateway, task)).problem for task in tasks]
        assert all("holds only 0.019999 USDC" in problem for problem in problems)
        chain.fund(refund_key.address, eth_wei=0, usdc_units=3 * PRICE)
        await refunds.sweep()
        await refunds.sweep()
        assert [await state_of(gateway, task) for task in tasks] == 3 * ["refunded"] + [
            "refund_due"
        ]


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
