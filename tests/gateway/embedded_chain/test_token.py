"""Play USDC moves money as USDC does."""

from __future__ import annotations

import secrets

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from web3 import Web3
from web3.contract import Contract
from web3.exceptions import ContractLogicError

from gateway_demo.chain import FAUCET_KEY, PlayChain
from gateway_demo.chain import contracts as chain_contracts
from gateway_demo.token import Authorization, domain_separator

HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
FIELDS = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]


def signed(payer: LocalAccount, usdc: str, permit: Authorization, kind: str = "Transfer") -> bytes:
    """Sign like a wallet, with eth_account's implementation of EIP-712."""
    domain = {"name": "USD Coin", "version": "2", "chainId": 8453, "verifyingContract": usdc}
    message = dict(zip((field["name"] for field in FIELDS), permit._values, strict=True))
    types = {f"{kind}WithAuthorization": FIELDS}
    return bytes(payer.sign_typed_data(domain, types, message).signature)


def why_refused(web3: Web3, chain: PlayChain, data: bytes) -> str:
    with pytest.raises(ContractLogicError) as refused:
        web3.eth.call({"to": chain.usdc, "data": data})
    return str(refused.value)


def cancelled(payer: LocalAccount, usdc: str, nonce: bytes) -> bytes:
    domain = {"name": "USD Coin", "version": "2", "chainId": 8453, "verifyingContract": usdc}
    fields = [{"name": "authorizer", "type": "address"}, {"name": "nonce", "type": "bytes32"}]
    message = {"authorizer": payer.address, "nonce": nonce}
    types = {"CancelAuthorization": fields}
    return bytes(payer.sign_typed_data(domain, types, message).signature)


@pytest.mark.parametrize("name", chain_contracts.CONTRACT_NAMES)
def test_the_committed_artefact_is_what_the_source_compiles_to(name):
    pytest.importorskip("vyper", reason="the Vyper compiler is not installed")
    assert chain_contracts.build(name) == chain_contracts.load(name)


def test_the_artefact_names_the_source_it_was_built_from():
    abi = chain_contracts.load("PlayUSDC").abi
    overloads = [entry for entry in abi if entry.get("name") == "transferWithAuthorization"]
    assert [entry["inputs"][-1]["type"] for entry in overloads] == ["bytes32", "bytes"]


def test_the_domain_separator_is_that_of_usdc_on_base(usdc: Contract):
    expected = "02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"
    assert usdc.functions.DOMAIN_SEPARATOR().call().hex() == expected
    assert usdc.functions.name().call() == "USD Coin"
    assert usdc.functions.decimals().call() == 6


def test_base_sepolia_has_its_own_address_and_domain():
    with PlayChain(chain_id=84532) as chain:
        answer = chain.call(chain.usdc, bytes.fromhex("3644e515"))  # DOMAIN_SEPARATOR()
        assert answer == domain_separator(84532, chain.usdc)
        known = "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"
        assert answer.hex() == known


def test_a_transfer_moves_money_and_says_so(chain, usdc, payer, wallet):
    receipt = chain.receipt(chain.transfer_usdc(payer.key, wallet, 250_000))
    assert chain.usdc_balance(wallet) == 250_000
    assert chain.usdc_balance(payer.address) == 99_750_000
    (event,) = usdc.events.Transfer().get_logs(from_block=int(receipt["blockNumber"], 16))
    assert event["args"] == {"from": payer.address, "to": wallet, "value": 250_000}


def test_a_transfer_without_enough_money_reverts(chain, payer, wallet):
    receipt = chain.receipt(chain.transfer_usdc(payer.key, wallet, 100_000_001))
    assert receipt["status"] == "0x0"
    assert receipt["logs"] == []


def test_minted_money_comes_from_nobody(chain, usdc, wallet):
    receipt = chain.receipt(chain.mint(wallet, 5))
    assert int(receipt["logs"][0]["topics"][1], 16) == 0
    assert usdc.functions.balanceOf(wallet).call() == 5


def test_an_allowance_can_be_spent(chain, usdc, payer, wallet):
    spender = Account.from_key(secrets.token_bytes(32))
    chain.fund(spender.address)
    approve = usdc.encode_abi("approve", [spender.address, 10])
    chain.send_transaction(payer.key, chain.usdc, Web3.to_bytes(hexstr=approve))
    move = usdc.encode_abi("transferFrom", [payer.address, wallet, 10])
    for status in ("0x1", "0x0"):
        done = chain.send_transaction(spender.key, chain.usdc, Web3.to_bytes(hexstr=move))
        assert chain.receipt(done)["status"] == status
    assert chain.usdc_balance(wallet) == 10


@pytest.mark.parametrize("overload", ["call", "call_with_bytes"])
def test_an_authorization_pays_once(chain, web3, usdc, payer, wallet, overload):
    permit = Authorization(sender=payer.address, to=wallet, units=10_000)
    data = getattr(permit, overload)(signed(payer, chain.usdc, permit))
    receipt = chain.receipt(chain.send_transaction(FAUCET_KEY, chain.usdc, data))
    assert receipt["status"] == "0x1"
    assert chain.usdc_balance(wallet) == 10_000
    used, moved = receipt["logs"]  # in this order, as USDC logs them
    assert used["topics"][0] == Web3.to_hex(Web3.keccak(text="AuthorizationUsed(address,bytes32)"))
    assert used["topics"][2] == "0x" + permit.nonce.hex()
    assert int(moved["data"], 16) == 10_000
    assert usdc.functions.authorizationState(payer.address, permit.nonce).call()
    assert "authorization is used or canceled" in why_refused(web3, chain, data)


def test_our_own_signature_is_eth_accounts(chain, payer, wallet):
    permit = Authorization(sender=payer.address, to=wallet, units=1)
    assert permit.sign(payer.key, 8453, chain.usdc) == signed(payer, chain.usdc, permit)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"valid_before": 1}, "authorization is expired"),
        ({"valid_after": 2**40}, "authorization is not yet valid"),
        ({"units": 100_000_001}, "transfer amount exceeds balance"),
    ],
)
def test_a_bad_authorization_is_refused(chain, web3, payer, wallet, change, reason):
    permit = Authorization(**{"sender": payer.address, "to": wallet, "units": 1, **change})
    data = permit.call(signed(payer, chain.usdc, permit))
    assert reason in why_refused(web3, chain, data)


def test_an_authorization_expires_with_the_chains_clock(chain, web3, payer, wallet):
    permit = Authorization(sender=payer.address, to=wallet, units=1)
    data = permit.call(signed(payer, chain.usdc, permit))
    web3.eth.call({"to": chain.usdc, "data": data})
    chain.advance(301)
    assert "authorization is expired" in why_refused(web3, chain, data)


def test_a_signature_for_other_terms_is_refused(chain, web3, payer, wallet):
    permit = Authorization(sender=payer.address, to=wallet, units=1)
    other = Authorization(sender=payer.address, to=wallet, units=2, nonce=permit.nonce)
    data = other.call(signed(payer, chain.usdc, permit))
    assert "FiatTokenV2: invalid signature" in why_refused(web3, chain, data)


def test_a_signature_that_ecrecover_alone_would_take_is_refused(chain, web3, payer, wallet):
    permit = Authorization(sender=payer.address, to=wallet, units=1)
    good = signed(payer, chain.usdc, permit)
    high_s = ORDER - int.from_bytes(good[32:64], "big")
    assert high_s > HALF_ORDER
    malleable = good[:32] + high_s.to_bytes(32, "big") + bytes([55 - good[64]])
    assert "invalid signature 's' value" in why_refused(web3, chain, permit.call(malleable))
    small_v = good[:64] + bytes([good[64] - 27])
    assert "invalid signature 'v' value" in why_refused(web3, chain, permit.call(small_v))
    short = permit.call_with_bytes(good[:64])
    assert "invalid signature length" in why_refused(web3, chain, short)


def test_a_cancelled_authorization_never_pays(chain, web3, usdc, payer, wallet):
    permit = Authorization(sender=payer.address, to=wallet, units=1)
    seal = cancelled(payer, chain.usdc, permit.nonce)
    arguments = [payer.address, permit.nonce, seal[64], seal[:32], seal[32:64]]
    cancel = usdc.encode_abi("cancelAuthorization", arguments)
    done = chain.send_transaction(FAUCET_KEY, chain.usdc, Web3.to_bytes(hexstr=cancel))
    assert chain.receipt(done)["status"] == "0x1"
    assert usdc.functions.authorizationState(payer.address, permit.nonce).call()
    data = permit.call(signed(payer, chain.usdc, permit))
    assert "authorization is used or canceled" in why_refused(web3, chain, data)


def test_only_the_payee_can_receive_with_an_authorization(chain, web3, usdc, payer, wallet):
    permit = Authorization(sender=payer.address, to=wallet, units=3)
    seal = signed(payer, chain.usdc, permit, kind="Receive")
    arguments = [*permit._values, seal[64], seal[:32], seal[32:64]]
    call = usdc.functions.receiveWithAuthorization(*arguments)
    assert call.call({"from": wallet}) == []
    with pytest.raises(ContractLogicError, match="caller must be the payee"):
        call.call({"from": payer.address})
