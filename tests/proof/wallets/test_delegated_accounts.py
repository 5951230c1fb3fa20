"""POST /api/x402/{slug} paid by plain accounts that delegate to code (EIP-7702).

The delegations are real transactions of type 4, under py-evm's Prague rules.
"""

import attrs
import pytest
from eth_account import Account

from gateway.chain.smart_wallets import KEY_GAS
from gateway_demo.chain import FAUCET_KEY
from gateway_demo.chain import contracts as chain_contracts
from gateway_demo.token import call_data
from tests.authorizations import header_of, payload_of
from tests.conftest import WALLET, buy, running
from tests.proof.wallets.accounts import MAGIC, SmartPayer, answering, hostile
from tests.proof.wallets.buying import (
    SIGNATURE,
    SPENT,
    bought,
    is_completed,
    newest_settlement,
    refused,
)

VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture
def chain(delegating_chain):
    return delegating_chain


def delegate(chain, account, target: str, data: bytes = b"") -> None:
    """Let an account's own address run the code at `target`, and call it."""
    nonce = int(chain.rpc.result("eth_getTransactionCount", account.address, "latest"), 16)
    permit = {"chainId": chain.chain_id, "address": target, "nonce": nonce + 1}
    transaction = {
        "chainId": chain.chain_id,
        "to": account.address,
        "value": 0,
        "data": data,
        "gas": 300_000,
        "nonce": nonce,
        "maxFeePerGas": 10**9,
        "maxPriorityFeePerGas": 1,
        "authorizationList": [account.sign_authorization(permit)],
    }
    raw = bytes(account.sign_transaction(transaction).raw_transaction)
    assert chain.receipt(chain.send_raw(raw))["status"] == "0x1"


def delegated(chain, owner) -> SmartPayer:
    """Return an account whose delegate accepts the owner's signatures."""
    account = Account.create()
    chain.fund(account.address)
    code = chain.deploy(FAUCET_KEY, chain_contracts.load("SmartAccount"))
    delegate(chain, account, code, call_data("initialize", ["address"], (owner or account).address))
    designator = chain.rpc.result("eth_getCode", account.address, "latest")
    assert designator == "0xef0100" + code[2:].lower()
    return SmartPayer(chain, account.address, account)


@VERSIONS
async def test_a_delegated_account_buys_with_its_own_key(gateway, chain, version):
    """Its delegate knows that key; the gas limit is that of a plain key."""
    payer = delegated(chain, owner=None)
    header = payer.header(version=version)
    task_id = await bought(gateway, header, version)
    await is_completed(gateway, chain, task_id)
    assert newest_settlement(chain).gas == KEY_GAS
    assert await bought(gateway, header, version) == task_id


@VERSIONS
async def test_a_delegated_account_buys_with_the_key_that_its_delegate_knows(
    gateway, chain, version
):
    owner = Account.create()
    payer = delegated(chain, owner)
    payer.owner = owner
    task_id = await bought(gateway, payer.header(version=version), version)
    await is_completed(gateway, chain, task_id)


@VERSIONS
async def test_its_own_key_is_not_enough_where_the_delegate_does_not_know_it(
    gateway, chain, version
):
    """Recovery alone would accept this one, but the token would refuse it at our cost."""
    payer = delegated(chain, owner=Account.create())
    assert await refused(gateway, chain, payer.header(version=version), version) == SIGNATURE


async def test_delegating_to_nothing_accepts_nothing(gateway, chain):
    account = Account.create()
    chain.fund(account.address)
    delegate(chain, account, "0x" + "12" * 20)
    assert await refused(gateway, chain, SmartPayer(chain, account.address, account).header()) == (
        SIGNATURE
    )


async def test_a_delegation_that_ended_is_a_plain_account_again(gateway, chain):
    account = Account.create()
    payer = SmartPayer(chain, account.address, account)
    chain.fund(account.address)
    delegate(chain, account, hostile(chain, answering(b"")).address)
    header = payer.header()
    assert await refused(gateway, chain, header) == SIGNATURE
    delegate(chain, account, "0x" + "00" * 20)
    task_id = await bought(gateway, header)
    await is_completed(gateway, chain, task_id)


async def test_a_delegate_that_trusts_everybody_is_the_accounts_own_choice(gateway, chain):
    account = Account.create()
    chain.fund(account.address)
    delegate(chain, account, hostile(chain, answering(MAGIC)).address)
    payer = SmartPayer(chain, account.address, account)
    task_id = await bought(gateway, payer.header(wrap=lambda _: b"\7" * 80))
    await is_completed(gateway, chain, task_id)


async def test_who_only_saw_a_delegated_accounts_nonce_cannot_claim_its_payment(gateway, chain):
    payer = delegated(chain, owner=None)
    signed = payer.authorization()
    signature = payer.sign(signed)
    chain.send_transaction(FAUCET_KEY, chain.usdc, signed.call(signature))
    assert chain.usdc_balance(WALLET) == 20_000
    for forged in (b"", b"\1" * 65, b"\1" * 80):
        assert await refused(gateway, chain, header_of(payload_of(signed, forged))) == SPENT
    task_id = await bought(gateway, header_of(payload_of(signed, signature)))
    await is_completed(gateway, chain, task_id)


async def test_the_wallet_itself_may_be_a_delegated_account(settings, provider, chain, payer):
    """It still belongs to its key, so its money can be moved."""
    account = Account.create()
    chain.fund(account.address)
    delegate(chain, account, chain.deploy(FAUCET_KEY, chain_contracts.load("SmartAccount")))
    async with running(attrs.evolve(settings, wallet=account.address), provider) as gateway:
        answer = await buy(gateway, payer.header(to=account.address))
    assert answer.status_code == 200
