"""Who must sign a `payerSignature`:

smart accounts, relayers, several transfers in a transaction.
"""

from eth_account import Account

from gateway_demo.chain import MULTICALL
from gateway_demo.token import call_data
from tests.authorizations import multicall
from tests.conftest import WALLET, Payer, nothing_charged
from tests.gateway.payer_proof.purchases import (
    UNPROVEN,
    SmartPayer,
    accepted,
    column,
    refusal,
    request,
    signed,
    submit,
)

# -- smart accounts, and several transfers in one transaction


async def test_a_smart_account_proves_itself_by_its_own_code(strict, chain, payer):
    smart = SmartPayer(chain)
    body = request(smart.transfer(20_000))
    async with nothing_charged(strict, chain):
        assert await refusal(await submit(strict, signed(payer.account, body))) == UNPROVEN
        other = signed(smart.owner, body, prompt="another")
        assert await refusal(await submit(strict, other)) == UNPROVEN
    await accepted(strict, signed(smart.owner, body))
    assert await column(strict, "payer_proven") == [1]
    assert await column(strict, "payer") == [smart.address.lower()]


async def test_the_key_that_sent_the_transaction_is_not_who_paid(strict, chain):
    """It pays gas; the money came from the account, which has another owner."""
    owner, relayer = Account.create(), Payer(chain)
    smart = SmartPayer(chain, owner)
    body = request(_pull(chain, relayer, (smart, 20_000)))
    assert await refusal(await submit(strict, signed(relayer.account, body))) == UNPROVEN
    await accepted(strict, signed(owner, body))


async def test_a_sender_whose_code_knows_no_signatures_proves_nothing(gateway, chain, payer):
    chain.mint(MULTICALL, 50_000)
    transfer = call_data("transfer", ["address", "uint256"], WALLET, 20_000)
    tx_hash = chain.send_transaction(
        payer.account.key, MULTICALL, multicall((chain.usdc, transfer))
    )
    assert await refusal(await submit(gateway, signed(payer.account, request(tx_hash)))) == UNPROVEN
    await accepted(gateway, request(tx_hash))


async def test_only_the_transfers_of_who_signed_count(gateway, chain):
    small, large = Payer(chain), Payer(chain)
    body = request(_pull(chain, small, (small, 19_999), (large, 50_000)))
    assert await refusal(await submit(gateway, signed(small.account, body))) == (
        400,
        "INSUFFICIENT_PAYMENT",
    )
    reply = await accepted(gateway, signed(large.account, body))
    assert reply["paidAmount"] == 0.05
    assert await column(gateway, "payer") == [large.account.address.lower()]


async def test_of_many_senders_only_some_accounts_are_asked(gateway, chain, rpc):
    payers = [Payer(chain) for _ in range(10)]
    body = request(_pull(chain, payers[0], *((one, 20_000) for one in payers)))
    rpc.seen.clear()
    assert await refusal(await submit(gateway, signed(Account.create(), body))) == UNPROVEN
    senders = {payer.account.address.lower() for payer in payers}
    asked = [call["to"] for method, call in rpc.seen if method == "eth_call"]
    asked = [to for to in asked if to.lower() in senders]  # the token is looked at beside that
    assert len(asked) == 8
    rpc.seen.clear()
    await accepted(gateway, signed(payers[-1].account, body))
    assert "eth_call" not in {method for method, _ in rpc.seen}


async def test_a_smart_account_that_cannot_be_asked_is_a_500_and_its_hash_stays_good(
    gateway, chain, rpc
):
    smart = SmartPayer(chain)
    body = signed(smart.owner, request(smart.transfer(20_000)))
    rpc.broken.add("eth_call")
    async with nothing_charged(gateway, chain):
        assert await refusal(await submit(gateway, body)) == (500, "INTERNAL_ERROR")
    rpc.broken.clear()
    await accepted(gateway, body)


def _pull(chain, relayer, *shares) -> str:
    """Pay several transfers in one transaction, each from an account that approved it."""
    calls = []
    for one, units in shares:
        approval = call_data("approve", ["address", "uint256"], MULTICALL, units)
        if isinstance(one, SmartPayer):
            types, address = ["address", "uint256", "bytes"], one.address
            execute = call_data("execute", types, chain.usdc, 0, approval)
            chain.send_transaction(one.owner.key, address, execute)
        else:
            address = one.account.address
            chain.send_transaction(one.account.key, chain.usdc, approval)
        types = ["address", "address", "uint256"]
        calls.append((chain.usdc, call_data("transferFrom", types, address, WALLET, units)))
    gas = 200_000 + 100_000 * len(calls)
    return chain.send_transaction(relayer.account.key, MULTICALL, multicall(*calls), gas=gas)
