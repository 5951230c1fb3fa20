"""Payments that are not plain transfers."""

from __future__ import annotations

import pytest
from web3 import Web3

from gateway_demo import token
from gateway_demo.chain import FAUCET_KEY, MULTICALL, OTHER_TOKEN
from gateway_demo.chain import contracts as chain_contracts
from gateway_demo.token import Authorization


def aggregate(web3, *calls: tuple[str, bytes], allow_failure: bool = False) -> bytes:
    """Encode one call of Multicall3 that makes several."""
    multicall = web3.eth.contract(MULTICALL, abi=chain_contracts.load("Multicall").abi)
    entries = [(target, allow_failure, data) for target, data in calls]
    return Web3.to_bytes(hexstr=multicall.encode_abi("aggregate3", [entries]))


def permit(chain, payer, wallet, units) -> bytes:
    authorization = Authorization(sender=payer.address, to=wallet, units=units)
    return authorization.call(authorization.sign(payer.key, 8453, chain.usdc))


def test_one_transaction_can_settle_two_authorizations(chain, web3, payer, wallet):
    calls = [(chain.usdc, permit(chain, payer, wallet, units)) for units in (10, 20)]
    tx_hash = chain.send_transaction(FAUCET_KEY, MULTICALL, aggregate(web3, *calls))
    logs = chain.receipt(tx_hash)["logs"]
    assert [log["logIndex"] for log in logs] == ["0x0", "0x1", "0x2", "0x3"]
    assert chain.usdc_balance(wallet) == 30


def test_a_batch_fails_whole_unless_it_allows_failures(chain, web3, payer, wallet):
    good, bad = permit(chain, payer, wallet, 10), permit(chain, payer, wallet, 10**12)
    calls = [(chain.usdc, good), (chain.usdc, bad)]
    tx_hash = chain.send_transaction(FAUCET_KEY, MULTICALL, aggregate(web3, *calls))
    assert chain.receipt(tx_hash)["status"] == "0x0"
    lenient = aggregate(web3, *calls, allow_failure=True)
    chain.send_transaction(FAUCET_KEY, MULTICALL, lenient)
    assert chain.usdc_balance(wallet) == 10


def test_another_token_looks_the_same_and_is_not_usdc(chain, payer, wallet):
    chain.mint(payer.address, 50, asset=OTHER_TOKEN)
    tx_hash = chain.transfer_usdc(payer.key, wallet, 50, asset=OTHER_TOKEN)
    (log,) = chain.receipt(tx_hash)["logs"]
    assert log["address"].lower() == OTHER_TOKEN.lower()
    assert chain.usdc_balance(wallet) == 0
    assert chain.usdc_balance(wallet, asset=OTHER_TOKEN) == 50


@pytest.fixture
def smart_account(chain, payer) -> str:
    """A contract that owns play USDC and obeys the payer."""
    address = chain.deploy(payer.key, chain_contracts.load("SmartAccount"))
    data = token.call_data("initialize", ["address"], payer.address)
    chain.send_transaction(payer.key, address, data)
    chain.fund(address)
    return address


def test_a_smart_account_pays_by_transfer(chain, payer, wallet, smart_account):
    inner = token.transfer_call(wallet, 40)
    types = ["address", "uint256", "bytes"]
    data = token.call_data("execute", types, chain.usdc, 0, inner)
    chain.send_transaction(payer.key, smart_account, data)
    assert chain.usdc_balance(wallet) == 40


@pytest.mark.parametrize("overload", ["call", "call_with_bytes"])
def test_a_smart_account_pays_by_its_owners_signature(
    chain, payer, wallet, smart_account, overload
):
    authorization = Authorization(sender=smart_account, to=wallet, units=40)
    signature = authorization.sign(payer.key, 8453, chain.usdc)
    data = getattr(authorization, overload)(signature)
    tx_hash = chain.send_transaction(FAUCET_KEY, chain.usdc, data)
    assert chain.receipt(tx_hash)["status"] == "0x1"
    assert chain.usdc_balance(wallet) == 40


@pytest.mark.parametrize("signature", [b"", b"\1" * 65, b"\1" * 700])
def test_a_smart_account_refuses_what_its_owner_did_not_sign(
    chain, wallet, smart_account, signature
):
    authorization = Authorization(sender=smart_account, to=wallet, units=40)
    data = authorization.call_with_bytes(signature)
    tx_hash = chain.send_transaction(FAUCET_KEY, chain.usdc, data)
    assert chain.receipt(tx_hash)["status"] == "0x0"
