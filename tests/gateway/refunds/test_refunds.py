"""Refunds: each is paid once, to the right address, or waits with a reason."""

import asyncio
import sqlite3

import attrs
import pytest
from eth_account import Account

from gateway.domain import Decision
from gateway.errors import SettingsError
from gateway.payments.refunds import Refunds
from gateway.settings import check_settings
from tests.conftest import Payer, running
from tests.gateway.refunds.conftest import fail_directly, fail_once
from tests.gateway.refunds.steps import (
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


async def test_an_automatic_refund_reaches_the_payer_and_shows_in_the_task(
    automatic, provider, payer, chain, clock, refund_key
):
    async with running(automatic, provider, now=clock) as gateway:
        before = chain.usdc_balance(payer.account.address)
        task = await fail_once(gateway, payer, provider)
        refund = await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == before
    assert chain.usdc_balance(refund_key.address) == 1_000_000 - PRICE
    assert refund["amount"] == 0.02
    receipt = chain.rpc.result("eth_getTransactionReceipt", refund["transaction"])
    assert receipt["status"] == "0x1"
    assert receipt["from"].lower() == refund_key.address.lower()


async def test_by_hand_the_operator_decides(settings, provider, payer, chain, clock):
    async with running(settings, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        await gateway.services.refunds.sweep()
        assert (await refund_of(gateway, task))["state"] == "refund_due"
        await approve(gateway, task)
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == 100_000_000


async def test_who_sent_a_plain_transfer_is_not_trusted_unasked(
    automatic, provider, payer, chain, clock
):
    """An exchange or a router may have sent it: the money would be lost."""
    async with running(automatic, provider, now=clock) as gateway:
        task = await fail_directly(gateway, payer, provider)
        await gateway.services.refunds.sweep()
        assert (await refund_of(gateway, task))["state"] == "refund_due"
        other = Account.create().address.lower()
        await approve(gateway, task, to=other)
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(other) == PRICE


async def test_automatic_refunds_stop_at_the_days_cap(automatic, provider, chain, clock):
    capped = attrs.evolve(automatic, refund_daily_cap="0.05")
    async with running(capped, provider, now=clock) as gateway:
        tasks = [await fail_once(gateway, Payer(chain), provider) for _ in range(3)]
        await until_state(gateway, tasks[0], "refunded")
        await until_state(gateway, tasks[1], "refunded")
        await until_problem(gateway, tasks[2], "cap")
        assert (await refund_of(gateway, tasks[2]))["state"] == "refund_due"
        clock.offset_s += 86_401
        await until_state(gateway, tasks[2], "refunded")


async def test_an_empty_refund_key_pays_once_it_is_filled(automatic, provider, payer, chain, clock):
    poor = Account.create()
    chain.fund(poor.address, eth_wei=10**18, usdc_units=0)
    settings = attrs.evolve(automatic, refund_key=poor.key.hex())
    async with running(settings, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        await until_problem(gateway, task, "holds only 0 USDC")
        chain.fund(poor.address, eth_wei=0, usdc_units=PRICE)
        await until_state(gateway, task, "refunded")


async def test_a_key_without_gas_says_so(automatic, provider, payer, chain, clock):
    poor = Account.create()
    chain.fund(poor.address, eth_wei=0, usdc_units=PRICE)
    settings = attrs.evolve(automatic, refund_key=poor.key.hex())
    async with running(settings, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        await until_problem(gateway, task, "too little ETH")


async def test_a_refund_that_is_on_its_way_survives_a_restart(
    automatic, provider, payer, chain, clock
):
    async with running(automatic, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        await until_state(gateway, task, "refunded")
        chain.set_automine(False)
        second = await late(gateway, payer, provider, chain)
        await until_state(gateway, second, "refunding")
    chain.mine()
    chain.set_automine(True)
    async with running(automatic, provider, now=clock) as gateway:
        await until_state(gateway, second, "refunded")
    assert chain.usdc_balance(payer.account.address) == 100_000_000


async def test_a_dropped_refund_is_sent_again(automatic, provider, payer, chain, clock, refund_key):
    async with running(automatic, provider, now=clock) as gateway:
        task = await late(gateway, payer, provider, chain)
        await until_state(gateway, task, "refunding")
        await until_sent(chain, refund_key)
        sent = await gateway.services.store._rows("SELECT tx_hash FROM sent_transactions")
        chain.rpc.result("anvil_dropTransaction", sent[-1]["tx_hash"])
        chain.set_automine(True)
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == 100_000_000


async def test_two_processes_pay_a_refund_once(settings, provider, payer, chain, clock, refund_key):
    """The operator's command runs beside the gateway."""
    async with running(settings, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        services = gateway.services
        from gateway.contracts import PluginContext

        context = PluginContext(
            settings=settings, chain=services.chain, journal=services.store, now=clock
        )
        other = Refunds(services.store, context, bytes(refund_key.key))
        await approve(gateway, task)
        await asyncio.gather(*(sender.sweep() for sender in (other, services.refunds) * 3))
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == 100_000_000
    assert chain.usdc_balance(refund_key.address) == 1_000_000 - PRICE


async def test_a_database_that_forgot_a_refund_cannot_pay_it_twice(
    settings, provider, payer, chain, clock, refund_key
):
    """As after a restored backup: the ledger has it as due, the chain as paid."""
    async with running(settings, provider, now=clock) as gateway:
        task = await fail_once(gateway, payer, provider)
        await approve(gateway, task)
        paid = await until_state(gateway, task, "refunded")
        await gateway.services.store._write(forget, task["taskId"])
        again = await until_state(gateway, task, "refunded")
    assert again["transaction"] == paid["transaction"]
    assert chain.usdc_balance(refund_key.address) == 1_000_000 - PRICE


def forget(db, task_id) -> None:
    on_table = "" if isinstance(db, sqlite3.Connection) else " ON payments"
    db.execute(f"DROP TRIGGER payments_legal{on_table}")
    db.execute("UPDATE payments SET state = 'refund_due'")
    db.execute(
        "UPDATE refunds SET tx_hash = NULL, sender = NULL, begun_at = NULL, "
        "search_from_block = NULL, decision = 'approved'"
    )
    db.execute("DELETE FROM sent_transactions WHERE signer IN (SELECT sender FROM refunds)")


async def test_a_new_refund_key_does_not_touch_what_the_old_one_sent(
    automatic, provider, payer, chain, clock, refund_key
):
    async with running(automatic, provider, now=clock) as gateway:
        task = await late(gateway, payer, provider, chain)
        await until_state(gateway, task, "refunding")
        await until_sent(chain, refund_key)
    new = Account.create()
    chain.fund(new.address, eth_wei=10**18, usdc_units=1_000_000)
    changed = attrs.evolve(automatic, refund_key=new.key.hex())
    async with running(changed, provider, now=clock) as gateway:
        await until_problem(gateway, task, "another refund key")
        chain.mine()  # the old key's transaction lands: seen all the same
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(new.address) == 1_000_000


async def test_a_rejected_refund_is_not_paid_until_it_is_approved(
    automatic, provider, payer, chain, clock
):
    async with running(automatic, provider, now=clock) as gateway:
        task = await late(gateway, payer, provider, chain)
        ledger = gateway.services.store.refunds
        await ledger.decide(
            task["taskId"], Decision.REJECTED, recipient=None, note="abuse", now=clock()
        )
        chain.set_automine(True)
        await gateway.services.refunds.sweep()
        assert (await refund_of(gateway, task))["state"] == "refund_failed"
        await approve(gateway, task)
        await until_state(gateway, task, "refunded")


async def test_refunds_wait_for_money_that_others_have_not_left(
    settings, provider, chain, clock, refund_key
):
    """Three are due and the key has two: no transaction is wasted on the third."""
    spend(chain, refund_key, 1_000_000 - 2 * PRICE)
    async with running(settings, provider, now=clock) as gateway:
        tasks = [await fail_once(gateway, Payer(chain), provider) for _ in range(3)]
        await gateway.services.refunds.close()
        for task in tasks:
            await approve(gateway, task)
        chain.set_automine(False)
        for _ in range(2):
            await gateway.services.refunds.sweep()
        states = [(await refund_of(gateway, task))["state"] for task in tasks]
        assert states == ["refunding", "refunding", "refund_due"]
        assert "holds only 0.04 USDC" in (await case_of(gateway, tasks[2])).problem
        chain.set_automine(True)
        gateway.services.refunds.start()
        for task in tasks[:2]:
            await until_state(gateway, task, "refunded")
        await until_problem(gateway, tasks[2], "holds only 0 USDC")
        chain.fund(refund_key.address, eth_wei=0, usdc_units=PRICE)
        await until_state(gateway, tasks[2], "refunded")
    assert await reverted(chain, refund_key) == 0


async def test_a_balance_of_an_older_block_does_not_count_as_money_for_the_next_refund(
    settings, provider, chain, proxy, clock, refund_key
):
    """The first refund is mined, but the node that returns the balance lacks its block."""
    spend(chain, refund_key, 1_000_000 - PRICE)
    behind = attrs.evolve(settings, rpc_urls=(proxy.url,))
    async with running(behind, provider, now=clock) as gateway:
        tasks = [await fail_once(gateway, Payer(chain), provider) for _ in range(2)]
        refunds = gateway.services.refunds
        await refunds.close()
        for task in tasks:
            await approve(gateway, task)
        chain.set_automine(False)
        await refunds.sweep([tasks[0]["taskId"]])
        assert (await refund_of(gateway, tasks[0]))["state"] == "refunding"
        chain.mine()
        proxy.break_call("eth_call balanceOf", one_block_behind)
        await refunds.sweep([tasks[1]["taskId"]])
        assert (await refund_of(gateway, tasks[1]))["state"] == "refund_due"
        assert "holds only 0 USDC" in (await case_of(gateway, tasks[1])).problem


def one_block_behind(proxy, request, body):
    """Respond like a node that lacks the newest block, unless another one is named."""
    older = f'"{hex(proxy.chain.block.number - 1)}"'.encode()
    return 200, proxy.chain.rpc.answer(body.replace(b'"latest"', older))


async def reverted(chain, account) -> int:
    """Return how many of an account's mined transactions reverted."""
    return sum(
        done.receipt.state_root == b""
        and done.transaction.sender == bytes.fromhex(account.address[2:])
        for block in chain.node.between(0, chain.block.number)
        for done in block.executed
    )


async def test_a_refund_that_lost_its_money_goes_on_after_a_top_up(
    settings, provider, payer, chain, clock, refund_key
):
    async with running(settings, provider, now=clock) as gateway:
        task = await without_its_money(gateway, payer, provider, chain, refund_key)
        await until_problem(gateway, task, "holds only 0 USDC")
        assert (await refund_of(gateway, task))["state"] == "refunding"
        chain.fund(refund_key.address, eth_wei=0, usdc_units=PRICE)
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == 100_000_000


async def test_a_refund_that_the_token_refuses_ends_with_its_reason(
    settings, provider, payer, chain, clock, refund_key
):
    async with running(settings, provider, now=clock) as gateway:
        task = await without_its_money(gateway, payer, provider, chain, refund_key)
        call_token(chain, "blacklist", payer.account.address)
        chain.fund(refund_key.address, eth_wei=0, usdc_units=PRICE)
        await until_state(gateway, task, "refund_failed")
        assert "The token refuses it" in (await case_of(gateway, task)).problem
        call_token(chain, "unBlacklist", payer.account.address)
        await approve(gateway, task)
        await until_state(gateway, task, "refunded")
    assert chain.usdc_balance(payer.account.address) == 100_000_000


SAME = "the settlement key"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"refunds": "automatic", "refund_key": ""}, "GATEWAY_REFUND_KEY is not set"),
        ({"refund_key": SAME}, "is the settlement key"),
        ({"refunds": "sometimes"}, "GATEWAY_REFUNDS is not right"),
        ({"refund_daily_cap": "lots"}, "GATEWAY_REFUND_DAILY_CAP is not right"),
    ],
)
async def test_settings_that_cannot_work_stop_the_start(settings, changes, words):
    wrong = attrs.evolve(settings, **changes)
    if wrong.refund_key == SAME:
        wrong = attrs.evolve(wrong, refund_key=settings.settlement_key)
    with pytest.raises(SettingsError, match=words):
        await start(wrong)


async def start(settings) -> None:
    check_settings(settings)
    async with running(settings):
        pass
