"""Blocks replaced between two reads: no payment is lost or attributed to another one."""

import asyncio
import json
import time

import attrs
import pytest
from eth_account import Account

from gateway import ContentPolicy
from gateway.domain.eip3009 import transfer_calldata
from gateway.payments.refunds import RefundTiming
from gateway.payments.settlement import SettlementTiming
from gateway_demo.chain import FAUCET_KEY, MULTICALL
from gateway_operator.sql.payment_lists import unused
from tests.authorizations import multicall
from tests.conftest import WALLET, Payer, buy, running
from tests.waits import Waits, started_with

PRICE = 20_000
EVERYTHING = 100_000_000  # what a payer starts with
RECEIPT = "eth_getTransactionReceipt"


@pytest.fixture(autouse=True)
def _fast():
    waits = Waits(
        outcome_s=0.3,
        settlement=SettlementTiming(poll_s=0.02, full_check_s=0.1, late_poll_s=0.05, sweep_s=0.05),
        refunds=RefundTiming(sweep_s=0.05),
    )
    with started_with(waits):
        yield


@pytest.fixture
def settings(settings, proxy, chain):
    refund_key = Account.create()
    chain.fund(refund_key.address, eth_wei=10**18, usdc_units=1_000_000)
    return attrs.evolve(
        settings, rpc_urls=(proxy.url,), refunds="automatic", refund_key=refund_key.key.hex()
    )


def calldata(gateway, header) -> bytes:
    """Return the token call for the authorization in a header."""
    proof = gateway.services.payments.methods.first.read(header)
    return transfer_calldata(proof.authorization)


def of_the_other_fork(proxy, request, body):
    """The transaction is mined there too, but reverts: another call came first."""
    answer = json.loads(proxy.chain.rpc.answer(body))
    if answer["result"] is not None:
        answer["result"] |= {"status": "0x0", "logs": []}
    return 200, json.dumps(answer).encode()


def shifted(by):
    """Return a fault: in the current block, `by` more logs come before."""

    def answer(proxy, request, body):
        answer = json.loads(proxy.chain.rpc.answer(body))
        for log in (answer["result"] or {"logs": []})["logs"]:
            log["logIndex"] = hex(int(log["logIndex"], 16) + by)
        return 200, json.dumps(answer).encode()

    return answer


async def bought(gateway, header) -> str:
    answer = await buy(gateway, header)
    assert answer.status_code == 200, await answer.get_json()
    return (await answer.get_json())["taskId"]


async def test_an_event_of_one_fork_and_a_receipt_of_another_release_nothing(
    gateway, payer, chain, proxy
):
    header = payer.header()
    chain.set_automine(False)
    task_id = await bought(gateway, header)
    proxy.break_call(RECEIPT, of_the_other_fork)
    others = chain.send_transaction(FAUCET_KEY, chain.usdc, calldata(gateway, header))
    # The buyer may have a response before our own transaction was sent.
    async with asyncio.timeout(60):
        while not (ours := set(waiting_hashes(chain)) - {others}):  # noqa: ASYNC110 - polling
            await asyncio.sleep(0.02)
    # Meanwhile the gateway cannot resend the dropped transaction.
    with chain.node.lock:
        for sent in ours:
            chain.drop(sent)
        chain.set_automine(True)
    reads = proxy.seen.count(RECEIPT)
    deadline = time.monotonic() + 120
    while proxy.seen.count(RECEIPT) < reads + 3 and time.monotonic() < deadline:
        shown = await gateway.client.get(f"/api/task/{task_id}?wait=0.1")
        assert (await shown.get_json())["payment"]["state"] in ("reserved", "settling")
    assert proxy.seen.count(RECEIPT) >= reads + 3
    proxy.heal()
    task = await gateway.wait(task_id)
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == PRICE


def waiting_hashes(chain) -> list[str]:
    with chain.node.lock:
        return ["0x" + sent.hash.hex() for sent in chain.node.pool.waiting.values()]


async def test_an_event_whose_receipt_is_of_another_fork_is_asked_for_again(
    gateway, payer, chain, proxy
):
    """Before anything is stored, the buyer is asked to repeat the request."""
    header = payer.header()
    chain.send_transaction(FAUCET_KEY, chain.usdc, calldata(gateway, header))
    proxy.break_call(RECEIPT, of_the_other_fork)
    answer = await buy(gateway, header)
    assert (answer.status_code, (await answer.get_json())["code"]) == (500, "EXECUTION_ERROR")
    assert (await gateway.services.store.counts())["payments"] == {}
    proxy.heal()
    task = await gateway.wait(await bought(gateway, header))
    assert (task["status"], task["payment"]["state"]) == ("completed", "settled")
    assert chain.usdc_balance(WALLET) == PRICE


def batch(gateway, chain, headers) -> str:
    """Settle several authorizations in one transaction of a third party."""
    calls = [(chain.usdc, calldata(gateway, header)) for header in headers]
    return chain.send_transaction(FAUCET_KEY, MULTICALL, multicall(*calls), gas=1_000_000)


async def test_both_payments_of_a_batch_settle_though_its_logs_are_counted_anew(
    gateway, chain, proxy, provider
):
    """The second now has the index that was recorded for the first."""
    headers = [Payer(chain).header() for _ in range(2)]
    tx_hash = batch(gateway, chain, headers)
    transfers = [log for log in chain.receipt(tx_hash)["logs"] if len(log["data"]) > 2]
    first, second = (int(log["logIndex"], 16) for log in transfers)
    proxy.break_call(RECEIPT, shifted(second - first))
    tasks = [await gateway.wait(await bought(gateway, headers[0]))]
    proxy.heal()
    tasks += [await gateway.wait(await bought(gateway, headers[1]))]
    assert [task["payment"]["state"] for task in tasks] == ["settled", "settled"]
    rows = await gateway.services.store._rows("SELECT paid_tx, paid_log_index FROM payments")
    assert [tuple(row) for row in rows] == [(tx_hash, second)] * 2
    assert len(provider.requests) == 2


async def test_such_a_batch_holds_no_unused_transfer(gateway, chain, proxy, payer):
    """By its index in the block one of the two would seem unused, and be refunded by hand."""
    headers = [payer.header() for _ in range(2)]
    tx_hash = batch(gateway, chain, headers)
    proxy.break_call(RECEIPT, shifted(2))
    await gateway.wait(await bought(gateway, headers[0]))
    proxy.heal()
    lost = payer.transfer(PRICE)
    store, node = gateway.services.store, gateway.services.chain
    seen = await node.transfer_logs(WALLET, from_block=0, to_block=chain.block.number)
    assert [found.tx_hash for found in await store.sum(unused, seen)] == [tx_hash, lost]
    await gateway.wait(await bought(gateway, headers[1]))
    assert [found.tx_hash for found in await store.sum(unused, seen)] == [lost]


async def test_both_payments_of_such_a_batch_are_refunded(settings, provider, chain, proxy, clock):
    """A refund's nonce counts no logs: two payments of one index are two refunds."""
    payers = [Payer(chain) for _ in range(2)]
    provider.script = [ContentPolicy("No boats."), ContentPolicy("No boats.")]
    async with running(settings, provider, now=clock) as gateway:
        await gateway.services.payments.cutoff_block()
        headers = [payer.header() for payer in payers]
        batch(gateway, chain, headers)
        proxy.break_call(RECEIPT, shifted(2))
        first = await bought(gateway, headers[0])
        await gateway.wait(first)
        proxy.heal()
        second = await bought(gateway, headers[1])
        await gateway.wait(second)
        for task_id in (first, second):
            await refunded(gateway, task_id)
    assert [chain.usdc_balance(payer.account.address) for payer in payers] == [EVERYTHING] * 2


async def refunded(gateway, task_id) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        shown = await (await gateway.client.get(f"/api/task/{task_id}?wait=0.1")).get_json()
        if shown["refund"]["state"] == "refunded":
            return
    raise AssertionError(shown)
