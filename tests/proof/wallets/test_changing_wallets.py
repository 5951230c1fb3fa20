"""Wallets that accept in our checks and revert in our transaction: the cost for us is bounded."""

import asyncio

import attrs
from eth_abi.abi import encode

from gateway_demo.chain import FAUCET_KEY
from tests.conftest import WALLET, Payer, buy, running
from tests.proof.wallets.accounts import hostile, smart_payer, yes_after
from tests.proof.wallets.buying import SIGNATURE, bought, is_completed, refused, until

ONLY_IN_SIMULATIONS = yes_after("3a15600a5760006000fd5b")  # reverts unless the gas price is zero

# Called with one word it stores it; asked for a signature it accepts while that word is zero.
FLIPPED = bytes.fromhex(
    "3660201460" + "1d" + "57"  # CALLDATASIZE == 32: jump to the write
    "6000546025" + "57"  # a word that is not zero: jump to the revert
    "631626ba7e60e01b60005260206000f3"  # the magic of EIP-1271
    "5b60003560005500"
    "5b60006000fd"
)


def sent(chain, gas_key) -> int:
    return int(chain.rpc.result("eth_getTransactionCount", gas_key.address, "latest"), 16)


def flip(chain, wallet, says_no: bool) -> None:
    """Let the owner change the wallet's behaviour, in a transaction of his own."""
    chain.send_transaction(FAUCET_KEY, wallet.address, encode(["uint256"], [int(says_no)]))


async def betrayed(gateway, chain, wallet) -> str:
    """Buy; the owner's change is mined just before our transaction, which reverts."""
    chain.set_automine(False)
    flip(chain, wallet, says_no=True)
    task_id = await bought(gateway, wallet.header())
    await until(lambda: len(chain.node.pool.waiting) > 1)
    chain.set_automine(True)
    await reverted(gateway)
    return task_id


async def reverted(gateway):
    async def failures():
        return await gateway.services.store.payers.failures(since=0)

    for _ in range(3000):
        if found := await failures():
            return found
        await asyncio.sleep(0.02)
    raise AssertionError("no failure was noted")


async def test_a_wallet_that_sees_a_simulation_by_its_gas_price_is_refused_unpaid(
    gateway, chain, gas_key
):
    assert await refused(gateway, chain, hostile(chain, ONLY_IN_SIMULATIONS).header()) == SIGNATURE
    assert sent(chain, gas_key) == 0


async def test_a_wallet_that_is_flipped_before_its_block_burns_one_transaction(
    gateway, chain, gas_key, clock
):
    wallet = hostile(chain, FLIPPED)
    task_id = await betrayed(gateway, chain, wallet)
    assert sent(chain, gas_key) == 1
    flip(chain, wallet, says_no=False)
    clock.offset_s += 700
    chain.advance(700)
    task = await gateway.wait(task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    reason = await refused(gateway, chain, wallet.header(valid_before=int(clock()) + 300))
    assert "x402 is closed to it until" in reason
    assert "direct USDC transfer works" in reason
    assert sent(chain, gas_key) == 1


async def test_a_second_wallet_is_refused_once_the_hour_s_gas_is_burned(
    settings, provider, chain, gas_key, clock
):
    poor = attrs.evolve(settings, failed_gas_per_hour=0.000000000001)
    async with running(poor, provider, now=clock) as gateway:
        await betrayed(gateway, chain, hostile(chain, FLIPPED))
        honest = smart_payer(chain)
        answer = await buy(gateway, honest.header())
        assert answer.status_code == 500
        assert "smart accounts failed in this hour" in (await answer.get_json())["error"]
        await bought(gateway, Payer(chain).header())
        clock.offset_s += 3700
        chain.advance(3700)
        await bought(gateway, honest.header(valid_before=int(clock()) + 300))


async def test_an_honest_smart_account_is_sold_several_things_one_after_the_other(
    gateway, chain, smart
):
    ids = await asyncio.gather(
        *(bought(gateway, smart.header(), prompt=f"boat {number}") for number in range(4))
    )
    assert len(set(ids)) == 4
    for task_id in ids:
        await gateway.wait(task_id)
    await is_completed(gateway, chain, ids[-1], 4 * 20_000)
    assert chain.usdc_balance(WALLET) == 4 * 20_000
