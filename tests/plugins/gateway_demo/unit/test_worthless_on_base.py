"""A signature made in the demo is worth nothing on Base."""

from pathlib import Path

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from gateway import Quote
from gateway.domain.eip3009 import BASE, NETWORKS, play_network
from gateway_demo.tour.place import NETWORK, PLAY_KEY, Place
from gateway_demo.tour.wallet import AUTHORIZATION_TYPES, Wallet, from_header
from gateway_sandbox_image import ENDPOINT
from gateway_x402.messages import challenge

PLACE = Place(port=8402, rpc_port=8545, output=Path(), folder=Path())
# As deployed by Circle: https://basescan.org/address/0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913
ON_BASE = {
    "name": "USD Coin",
    "version": "2",
    "chainId": 8453,
    "verifyingContract": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
}
IN_THE_DEMO = {
    "name": NETWORK.token_name,
    "version": NETWORK.token_version,
    "chainId": NETWORK.chain_id,
    "verifyingContract": NETWORK.token,
}


def signer_of(payload: dict, domain: dict) -> str:
    """Return the account whose signature a token with this domain reads."""
    message = dict(payload["authorization"])
    message |= {name: int(message[name]) for name in ("value", "validAfter", "validBefore")}
    signed = encode_typed_data(domain, AUTHORIZATION_TYPES, message)
    return Account.recover_message(signed, signature=payload["signature"])


@pytest.fixture
def payment() -> dict:
    """A payment that the demo's buyer signs for the demo's 402."""
    quote = Quote(
        endpoint=ENDPOINT,
        price_units=20_000,
        wallet=PLACE.wallet,
        network=play_network(NETWORKS[PLACE.settings["network"]]),
        resource_url=f"{PLACE.base_url}/api/x402/sandbox-image",
    )
    priced = from_header(challenge(quote, None, 2).headers["PAYMENT-REQUIRED"])
    return Wallet.of(PLAY_KEY).sign_payment(priced)


def test_the_chain_of_the_demo_is_not_base():
    assert NETWORKS[PLACE.settings["network"]].chain_id != BASE.chain_id == 8453
    assert PLACE.chain_options[PLACE.chain_options.index("--chain-id") + 1] == "84532"


def test_a_payment_signed_in_the_demo_is_the_payers_there_and_nobodys_on_base(payment):
    payer = Wallet.of(PLAY_KEY).address
    assert signer_of(payment["payload"], IN_THE_DEMO) == payer
    assert signer_of(payment["payload"], ON_BASE) != payer


@pytest.mark.parametrize("changed", ["name", "chainId", "verifyingContract"])
def test_it_is_not_one_lucky_field_that_differs(payment, changed):
    """Also a token that shares all of the demo's domain but one field refuses it."""
    domain = IN_THE_DEMO | {changed: ON_BASE[changed]}
    assert signer_of(payment["payload"], domain) != Wallet.of(PLAY_KEY).address
