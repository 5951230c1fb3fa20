"""Others submit, cancel or spend an authorization while it settles."""

import asyncio
import functools

from eth_account import Account

from gateway_demo.chain import FAUCET_KEY
from tests.authorizations import cancel_call, multicall
from tests.conftest import WALLET, Payer
from tests.gateway.settlement.faulty_rpc import forgetful, refuses
from tests.gateway.settlement.outcomes.purchases import (
    PRICE,
    before_ours_is_sent_again,
    bought,
    buy,
    done,
    ended_as_one_task,
    held,
    later,
    pay_directly,
    until_waiting,
    waiting,
)

SPENT = "invalid_exact_evm_nonce_already_used"


async def test_who_submits_the_authorization_while_we_settle_pays_for_the_task(
    gateway, payer, chain
):
    chain.set_automine(False)
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    task_id = await bought(gateway, header)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    (ours,) = await until_waiting(chain, 1)
    dearer = {"max_fee_wei": 50 * 10**9, "tip_wei": 10**9}
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature), **dearer)
    with before_ours_is_sent_again(chain):
        chain.drop("0x" + ours.hash.hex())
        chain.mine()
        chain.set_automine(True)
    await ended_as_one_task(gateway, chain, task_id)


async def test_a_batch_with_two_authorizations_settles_both(gateway, chain):
    from gateway_demo.chain import MULTICALL

    payers = [Payer(chain), Payer(chain)]
    chain.set_automine(False)
    calls, ids = [], []
    for payer, prompt in zip(payers, ("a boat", "a house"), strict=True):
        signed = payer.authorization()
        header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
        answer = await buy(gateway, header, prompt)
        ids.append((await answer.get_json())["taskId"])
        signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
        calls.append((chain.usdc, signed.call(signature)))
    # A buyer may have the response before our transaction is sent.
    await until_waiting(chain, 2)
    with before_ours_is_sent_again(chain):
        for ours in waiting(chain):
            chain.drop("0x" + ours.hash.hex())
        tx_hash = chain.send_transaction(FAUCET_KEY, MULTICALL, multicall(*calls))
        chain.set_automine(True)
    tasks = [await done(gateway, task_id) for task_id in ids]
    assert {task["payment"]["transaction"] for task in tasks} == {tx_hash}
    assert chain.usdc_balance(WALLET) == 2 * PRICE
    refusal = await (await pay_directly(gateway, tx_hash)).get_json()
    assert refusal["code"] == "TX_ALREADY_USED"


async def diverted_or_cancelled(gateway, payer, chain, call):
    """Let the payer spend the nonce otherwise before our transaction is mined."""
    chain.set_automine(False)
    nonce = bytes(range(32))
    header = payer.header(nonce=nonce)
    task_id = await bought(gateway, header)
    await until_waiting(chain, 1)
    with before_ours_is_sent_again(chain):
        for ours in waiting(chain):
            chain.drop("0x" + ours.hash.hex())
        chain.send_transaction(payer.account.key, chain.usdc, call(nonce))
        chain.mine()
        chain.set_automine(True)
    task = await done(gateway, task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    assert (task["payment"]["state"], task["refund"]) == ("released", None)
    again = await buy(gateway, header)
    assert (again.status_code, (await again.get_json())["error"]) == (402, SPENT)


async def test_an_authorization_that_paid_somebody_else_drops_the_task(
    gateway, payer, chain, provider
):
    def elsewhere(nonce):
        signed = payer.authorization(nonce=nonce, to=Account.create().address)
        return signed.call(signed.sign(payer.account.key, chain.chain_id, chain.usdc))

    await diverted_or_cancelled(gateway, payer, chain, elsewhere)
    assert (chain.usdc_balance(WALLET), provider.requests) == (0, [])


async def test_an_authorization_that_was_cancelled_drops_the_task(gateway, payer, chain, provider):
    await diverted_or_cancelled(gateway, payer, chain, functools.partial(cancel_call, chain, payer))
    assert (chain.usdc_balance(WALLET), provider.requests) == (0, [])


async def test_an_authorization_that_expired_unused_drops_the_task(
    gateway, payer, chain, clock, rpc, provider
):
    rpc.faults["eth_sendRawTransaction"] = forgetful
    header = payer.header()
    task_id = await bought(gateway, header)
    later(chain, clock, 280)
    await asyncio.sleep(0.4)
    await held(gateway, task_id)
    later(chain, clock, 21)
    task = await done(gateway, task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    assert (await buy(gateway, header)).status_code == 402
    assert (chain.usdc_balance(WALLET), provider.requests) == (0, [])


async def test_the_payers_money_may_be_gone_by_the_time_we_send(
    gateway, payer, chain, clock, provider
):
    chain.set_automine(False)
    task_id = await bought(gateway, payer.header())
    poorer = chain.sign_transaction(
        payer.account.key, chain.usdc, _spend_all(payer, chain), tip_wei=10**9, max_fee_wei=10**11
    )
    (ours,) = await until_waiting(chain, 1)
    with before_ours_is_sent_again(chain):
        chain.drop("0x" + ours.hash.hex())
        chain.send_raw(poorer)
        chain.set_automine(True)
    later(chain, clock, 301)
    task = await done(gateway, task_id)
    assert (task["status"], task["code"]) == ("failed", "PAYMENT_NOT_SETTLED")
    assert (chain.usdc_balance(WALLET), provider.requests) == (0, [])


def _spend_all(payer, chain):
    from gateway_demo.token import transfer_call

    return transfer_call(Account.create().address, chain.usdc_balance(payer.account.address))


async def test_where_sending_is_refused_who_submits_first_still_pays_for_the_task(
    gateway, payer, chain, rpc
):
    """Sending always fails (for lack of gas); reading works, and closes a payment."""
    rpc.faults["eth_sendRawTransaction"] = refuses("insufficient funds for gas * price + value")
    signed = payer.authorization()
    header = payer.header(nonce=signed.nonce, valid_before=signed.valid_before)
    task_id = await bought(gateway, header)
    signature = signed.sign(payer.account.key, chain.chain_id, chain.usdc)
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    await ended_as_one_task(gateway, chain, task_id)


async def test_where_sending_is_refused_an_expired_authorization_is_released(
    gateway, payer, chain, rpc, clock
):
    rpc.faults["eth_sendRawTransaction"] = refuses("insufficient funds for gas * price + value")
    task_id = await bought(gateway, payer.header())
    later(chain, clock, 301)
    assert (await done(gateway, task_id))["code"] == "PAYMENT_NOT_SETTLED"
