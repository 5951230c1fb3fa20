"""A payment ends as one task or with nothing taken, whatever becomes of its transaction."""

import asyncio

import pytest
from eth_account import Account

from gateway.store.nonces import open_by_signer
from tests.conftest import Payer
from tests.gateway.settlement.faulty_rpc import (
    answer_lost,
    forgetful,
    hangs,
    nonsense,
    refuses,
    says,
    silent,
)
from tests.gateway.settlement.outcomes.purchases import (
    bought,
    done,
    ended_as_one_task,
    held,
    later,
    shown,
    until_paid,
    until_waiting,
    waiting,
)
from tests.patience import until


def time_out_sending(gateway, rpc, monkeypatch):
    """Let a transaction that the endpoint does not accept time out; wait for correct responses."""
    chain = gateway.services.chain
    send = chain.send

    async def sends(raw):
        (endpoint,) = await chain._rpc.connect()
        endpoint.timeout_s = 0.4 if rpc.faults else gateway.services.settings.rpc_timeout
        try:
            await send(raw)
        finally:
            endpoint.timeout_s = gateway.services.settings.rpc_timeout

    monkeypatch.setattr(chain, "send", sends)


@pytest.mark.parametrize(
    "fault",
    [silent, hangs, answer_lost, nonsense, forgetful, refuses("internal error")],
    ids=["silent", "hangs", "answer lost", "nonsense", "forgetful", "refuses"],
)
async def test_an_unknown_outcome_of_sending_is_a_held_task_that_completes(
    gateway, payer, chain, rpc, fault, monkeypatch
):
    if fault is hangs:
        time_out_sending(gateway, rpc, monkeypatch)
    rpc.faults["eth_sendRawTransaction"] = fault
    header = payer.header()
    task_id = await bought(gateway, header)
    await until(lambda: "eth_sendRawTransaction" in rpc.seen)
    rpc.heal()
    await ended_as_one_task(gateway, chain, task_id)
    assert await bought(gateway, header) == task_id


async def test_after_sending_a_dead_rpc_is_an_unknown_outcome(gateway, payer, chain, rpc):
    def dies(rpc, request, body):
        rpc.faults["*"] = silent
        return rpc.chain.rpc.answer(body)

    rpc.faults["eth_sendRawTransaction"] = dies
    task_id = await bought(gateway, payer.header())
    await until(lambda: "eth_sendRawTransaction" in rpc.seen)
    await held(gateway, task_id)
    store = gateway.services.store
    # `gateway check` warns that its key may not be removed yet.
    assert list((await store.sum(open_by_signer)).values()) == [1]
    rpc.heal()
    await ended_as_one_task(gateway, chain, task_id)
    assert await store.sum(open_by_signer) == {}
    assert "decidedBy" not in await shown(gateway, task_id)


async def test_a_stale_head_delays_and_decides_nothing(gateway, payer, chain, rpc, clock):
    old = chain.rpc.result("eth_getBlockByNumber", "latest", False)
    header = payer.header()
    rpc.faults |= {
        "eth_getBlockByNumber": says(old),
        "eth_getTransactionReceipt": says(None),
        "eth_getLogs": says([]),
    }
    task_id = await bought(gateway, header)
    await until_paid(chain)
    later(chain, clock, 700)
    await asyncio.sleep(0.5)
    await held(gateway, task_id)
    rpc.heal()
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_dropped_transaction_is_sent_again(gateway, payer, chain):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    (sent,) = await until_waiting(chain, 1)
    assert chain.drop("0x" + sent.hash.hex())

    async def sent_again():
        return waiting(chain)

    (again,) = await until(sent_again)
    assert again.hash == sent.hash
    chain.mine()
    await ended_as_one_task(gateway, chain, task_id)


def mine_without_waiting(chain):
    """Mine a block without the pending transactions."""
    chain.fund(Account.create().address)


async def swept(rpc, times=4):
    """Let the sweep run some more times."""
    began = rpc.seen.count("eth_getTransactionCount")

    async def passed():
        return rpc.seen.count("eth_getTransactionCount") >= began + times

    await until(passed)


async def test_fees_are_not_raised_while_the_chain_makes_no_blocks(
    gateway, payer, chain, clock, rpc
):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())

    async def is_sent():
        return waiting(chain)

    (first,) = await until(is_sent)
    clock.offset_s += 50
    await swept(rpc)
    clock.offset_s += 50
    await swept(rpc)
    assert [tx.hash for tx in waiting(chain)] == [first.hash]
    rows = await gateway.services.store._rows("SELECT 1 FROM sent_transactions")
    assert len(rows) == 1
    chain.mine()
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_stuck_transaction_is_replaced_by_a_dearer_one_of_its_nonce(
    gateway, payer, chain, clock
):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())

    async def is_sent():
        return waiting(chain)

    (first,) = await until(is_sent)
    clock.offset_s += 16

    async def replaced():
        mine_without_waiting(chain)
        (now,) = waiting(chain)
        return now if now.hash != first.hash else None

    second = await until(replaced)
    assert (second.nonce, second.data) == (first.nonce, first.data)
    for fee in ("max_fee_per_gas", "max_priority_fee_per_gas"):
        assert getattr(second, fee) * 1000 >= getattr(first, fee) * 1125
    stored = await gateway.services.store._rows("SELECT tx_hash FROM sent_transactions")
    assert {row[0] for row in stored} == {"0x" + tx.hash.hex() for tx in (first, second)}
    chain.mine()
    await ended_as_one_task(gateway, chain, task_id)
    task = await shown(gateway, task_id)
    assert task["payment"]["transaction"] == "0x" + second.hash.hex()


async def test_the_replaced_transaction_may_be_the_one_that_is_mined(
    gateway, payer, chain, clock, rpc
):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    # From now on only the first one can be mined.
    await until_waiting(chain, 1)
    rpc.faults["eth_sendRawTransaction"] = silent
    clock.offset_s += 16

    async def replaced():
        mine_without_waiting(chain)
        return await gateway.services.store._rows(
            "SELECT 1 FROM sent_transactions LIMIT 1 OFFSET 1"
        )

    await until(replaced)
    chain.mine()
    rpc.heal()
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_nonce_that_the_key_used_elsewhere_is_replaced(gateway, payer, chain, gas_key):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    (ours,) = await until_waiting(chain, 1)
    dearer = {"max_fee_wei": 50 * 10**9, "tip_wei": 10**9, "gas": 21_000}
    chain.send_transaction(gas_key.key, payer.account.address, nonce=ours.nonce, **dearer)
    chain.set_automine(True)
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_key_that_was_used_before_starts_after_it(gateway, payer, chain, gas_key):
    for _ in range(3):
        chain.send_transaction(gas_key.key, payer.account.address, gas=21_000)
    await ended_as_one_task(gateway, chain, await bought(gateway, payer.header()))


async def test_after_a_reorganisation_the_key_still_settles(gateway, payer, chain, gas_key):
    """The block with nonce 0 vanishes after it was read; later payments must not wait for ever."""
    before = chain.snapshot()
    await done(gateway, await bought(gateway, payer.header()))

    async def seen():
        return not await gateway.services.store.unmined(
            Account.from_key(gas_key.key).address.lower()
        )

    await until(seen)
    chain.revert(before)
    task_id = await bought(gateway, payer.header())
    assert (await done(gateway, task_id))["status"] == "completed"


async def test_an_endpoint_that_once_counted_too_many_nonces_leaves_no_gap_for_ever(
    gateway, rpc, chain, payer, clock
):
    rpc.faults["eth_getTransactionCount"] = says("0x63")
    stuck = await bought(gateway, payer.header())
    rpc.heal()
    next_one = await done(gateway, await bought(gateway, Payer(chain).header()))
    assert (next_one["status"], next_one["payment"]["state"]) == ("completed", "settled")
    later(chain, clock, 301)
    assert (await done(gateway, stuck))["code"] == "PAYMENT_NOT_SETTLED"
