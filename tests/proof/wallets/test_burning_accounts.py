"""Code that uses up our gas in one block and is gone in the next: it counts, and bars its owner."""

import asyncio

import attrs
import pytest
from eth_abi.abi import encode

from gateway_demo.chain import FAUCET_KEY
from tests.conftest import WALLET, Payer, running
from tests.gateway.settlement.faulty_rpc import gated
from tests.gateway.settlement.test_batches import begin
from tests.proof.wallets.accounts import BURNS_ALL, hostile, yes_after
from tests.proof.wallets.buying import bought, until

PRICE = 20_000
# Uses up 200,000 gas, and accepts.
BURNS_MUCH = yes_after("5a62030d4090035b805a11600757")
# Called with one word it stores it; asked for a signature it burns all gas unless that word is
# zero.
SWITCHED = bytes.fromhex(
    "3660201460" + "1d" + "57"  # CALLDATASIZE == 32: jump to the write
    "6000546025" + "57"  # a word that is not zero: jump to the loop
    "631626ba7e60e01b60005260206000f3"  # the magic of EIP-1271
    "5b60003560005500"
    "5b602556"
)
NOTHING = "0x" + "00" * 20


@pytest.fixture
def chain(delegating_chain):
    return delegating_chain


def delegate(chain, account, target: str, changed: int) -> None:
    """Let the faucet give an account code, or remove it, after `changed` pending changes."""
    from eth_account import Account

    def count(address: str, until: str) -> int:
        return int(chain.rpc.result("eth_getTransactionCount", address, until), 16)

    faucet = Account.from_key(FAUCET_KEY)
    nonce = count(account.address, "latest") + changed
    permit = {"chainId": chain.chain_id, "address": target, "nonce": nonce}
    transaction = {
        "chainId": chain.chain_id,
        "to": "0x" + "12" * 20,
        "value": 0,
        "data": b"",
        "gas": 100_000,
        "nonce": count(faucet.address, "pending"),
        "maxFeePerGas": 10**11,
        "maxPriorityFeePerGas": 1,
        "authorizationList": [account.sign_authorization(permit)],
    }
    chain.send_raw(bytes(faucet.sign_transaction(transaction).raw_transaction))


def mine_between(chain, ours, before, after) -> None:
    """Mine a block with our pending transactions between those of others."""
    with chain.node.lock:
        for one in ours:
            chain.drop("0x" + one.hash.hex())
        before()
        for one in ours:
            chain.send_raw(one.encode())
        after()
        chain.mine(1)


def mine_with_code(chain, payer, code: str, *ours) -> None:
    """Mine ours in a block in which a plain account has code only while they run."""
    mine_between(
        chain,
        ours,
        before=lambda: delegate(chain, payer.account, code, 0),
        after=lambda: delegate(chain, payer.account, NOTHING, 1),
    )


def waiting_of(chain, gas_key) -> list:
    with chain.node.lock:
        waiting = list(chain.node.pool.waiting.values())
    return [one for one in waiting if "0x" + one.sender.hex() == gas_key.address.lower()]


async def burned(gateway) -> int:
    return await gateway.services.store.failed_gas(since=0)


async def until_burned(gateway) -> int:
    async with asyncio.timeout(60):
        while not (found := await burned(gateway)):  # noqa: ASYNC110 - the chain tells nobody
            await asyncio.sleep(0.02)
    return found


def fee_of(chain, tx_hash: str) -> int:
    receipt = chain.receipt(tx_hash)
    return int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)


async def causes(gateway) -> dict[str, str]:
    """Return by payer why settlements failed, alone or in a batch."""
    rows = await gateway.services.store._rows(
        """SELECT p.payer, s.failure FROM sent_transactions s JOIN payments p
           ON p.id = s.payment_id WHERE s.failure IS NOT NULL AND s.failure != 'burned'
           UNION ALL SELECT p.payer, s.failure FROM sent_payments s JOIN payments p
           ON p.id = s.payment_id WHERE s.failure IS NOT NULL"""
    )
    return {row["payer"]: row["failure"] for row in rows}


async def test_a_plain_account_with_code_for_one_block_is_barred_and_counts(
    gateway, chain, gas_key, payer
):
    code = hostile(chain, BURNS_ALL).address
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    (ours,) = await until(lambda: waiting_of(chain, gas_key))
    mine_with_code(chain, payer, code, ours)
    ours_hash = "0x" + ours.hash.hex()
    assert chain.receipt(ours_hash)["status"] == "0x0"
    assert chain.rpc.result("eth_getCode", payer.account.address, "latest") == "0x"
    assert await until_burned(gateway) == fee_of(chain, ours_hash)
    assert await causes(gateway) == {payer.account.address.lower(): "wallet"}
    chain.set_automine(True)
    assert (await gateway.wait(task_id))["status"] in ("completed", "failed")


async def test_a_wallet_that_burns_and_is_paid_for_by_others_counts(gateway, chain, gas_key):
    wallet = hostile(chain, SWITCHED)
    signed = wallet.authorization()
    header = wallet.header(nonce=signed.nonce, valid_before=signed.valid_before)
    chain.set_automine(False)
    task_id = await bought(gateway, header)
    (ours,) = await until(lambda: waiting_of(chain, gas_key))

    def send(to, data) -> None:
        chain.send_raw(chain.sign_transaction(FAUCET_KEY, to, data))

    def switch_back_and_pay() -> None:
        send(wallet.address, encode(["uint256"], [0]))
        send(chain.usdc, signed.call(wallet.sign(signed)))

    mine_between(
        chain,
        [ours],
        before=lambda: send(wallet.address, encode(["uint256"], [1])),
        after=switch_back_and_pay,
    )
    task = await gateway.wait(task_id)
    assert task["payment"]["state"] == "settled"
    ours_hash = "0x" + ours.hash.hex()
    assert chain.receipt(ours_hash)["status"] == "0x0"
    assert await until_burned(gateway) == fee_of(chain, ours_hash)


# -- batches


@pytest.fixture
def gate(chain):
    with gated(chain) as endpoint:
        yield endpoint


async def burned_batch(settings, provider, chain, gas_key, gate, clock, code, check):
    """Let four buy, three of them in a batch, one of which burns; then `check`."""
    code = hostile(chain, code).address
    batching = attrs.evolve(settings, rpc_urls=(gate.url,), settlement_batch=10)
    async with running(batching, provider, now=clock) as gateway:
        payers = [Payer(chain) for _ in range(4)]
        buying = await begin(gateway, payers)
        chain.set_automine(False)
        gate.heal()
        alone, batch = await until(lambda: len(found := waiting_of(chain, gas_key)) == 2 and found)
        batch, alone = sorted((alone, batch), key=lambda one: -one.gas)
        # The first of the batch leaves the others too little gas; the last one would leave them
        # theirs.
        places = {batch.data.find(bytes.fromhex(one.account.address[2:])): one for one in payers}
        burner = places[min(place for place in places if place >= 0)]
        mine_with_code(chain, burner, code, alone, batch)
        chain.set_automine(True)
        await check(gateway, "0x" + batch.hash.hex(), burner)
        answers = [await (await each).get_json() for each in buying]
        tasks = [await gateway.wait(answer["taskId"]) for answer in answers]
    assert {task["payment"]["state"] for task in tasks} == {"settled"}
    assert chain.usdc_balance(WALLET) == 4 * PRICE


async def test_a_batch_that_one_payer_burned_counts_as_a_whole(
    settings, provider, chain, gas_key, gate, clock
):
    async def check(gateway, batch: str, burner) -> None:
        assert chain.receipt(batch)["status"] == "0x0"
        assert await until_burned(gateway) >= fee_of(chain, batch)

    await burned_batch(settings, provider, chain, gas_key, gate, clock, BURNS_ALL, check)


async def test_a_batch_in_which_one_burned_and_paid_counts_with_the_excess(
    settings, provider, chain, gas_key, gate, clock
):
    async def check(gateway, batch: str, burner) -> None:
        assert chain.receipt(batch)["status"] == "0x1"
        fee = fee_of(chain, batch)
        assert fee // 10 < await until_burned(gateway) < fee
        assert await gateway.services.store.payers.failures(since=0) == []

    await burned_batch(settings, provider, chain, gas_key, gate, clock, BURNS_MUCH, check)
