"""Edge cases of refunds: found late, decided again, begun by another key, refused by a node."""

import asyncio

import attrs
from eth_account import Account

from gateway import ContentPolicy
from gateway.payments.refunds import RefundTiming
from gateway_operator.state import Operator
from tests.conftest import Payer, buy, running
from tests.gateway.refunds.conftest import fail_directly, fail_once
from tests.gateway.refunds.steps import (
    EVERYTHING,
    PRICE,
    approve,
    by_hand,
    call_token,
    case_of,
    sent_hashes,
    spend,
    state_of,
    until_state,
    without_its_money,
)
from tests.proof.faults.proxy import error as internal_error

SPENT = "eth_call authorizationState"
BALANCE = "eth_call balanceOf"
SIMULATION = "eth_call simulation, signed"
LAG_S = 120.0


async def test_a_refund_is_found_however_late_it_is_mined(settings, provider, payer, chain, clock):
    """An approval after a weekend."""
    async with running(settings, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        chain.advance(3 * 86_400)
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


async def test_a_refund_is_found_by_its_own_transaction_without_any_log(
    proxied, proxy, provider, payer, chain, clock
):
    proxied = attrs.evolve(proxied, refunds="automatic")
    for method in ("eth_getLogs", "eth_getBlockReceipts"):
        proxy.break_call(method, internal_error)
    async with running(proxied, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == EVERYTHING


def _search_blocks(db) -> list[int]:
    rows = db.execute(
        """SELECT search_from_block FROM payments UNION ALL
           SELECT search_from_block FROM refunds WHERE search_from_block IS NOT NULL"""
    )
    return [row[0] for row in rows]


async def test_nodes_of_the_previous_release_search_further_back_than_a_signature_lives(
    settings, provider, payer, chain, clock
):
    """They search from the block that this release writes down with a payment and a refund."""
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.payments.cutoff_block()
    clock.offset_s = 4 * 3600
    chain.advance(clock.offset_s)
    async with running(settings, provider, now=clock) as gateway:
        await by_hand(gateway)
        provider.script = [ContentPolicy("No boats.")]
        answer = await buy(gateway, payer.header(valid_before=int(clock()) + 600))
        task = await gateway.wait((await answer.get_json())["taskId"])
        await approve(gateway, task)
        await gateway.services.refunds.sweep()
        found = await gateway.services.store.read(_search_blocks)
    assert len(found) == 2
    head = chain.block.number
    longest = 65 * 60 * 5  # blocks of 200 ms
    assert all(longest < head - block < 2 * longest for block in found)
