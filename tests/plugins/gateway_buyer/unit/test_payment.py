"""The token accepts a buyer's signature, which covers only the terms."""

import base64
import json

from gateway.chain.smart_wallets import recover_signer
from gateway.domain.eip3009 import BASE, authorization_digest
from gateway_buyer.purchase import authorize, payment_header
from gateway_buyer.terms import read_terms
from tests.conftest import WALLET
from tests.plugins.gateway_buyer.unit.test_terms import GOOD, header

SECRET = bytes.fromhex("1" * 64)
ADDRESS = "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a"
# A domain with another name would be a signature for another contract.
LIE = GOOD | {"extra": {"name": "Dogecoin", "version": "9", "verifyingContract": WALLET}}


def test_the_terms_are_signed_for_the_usdc_that_is_known():
    signed = authorize(read_terms(header(LIE)), SECRET, now=1_000.9)
    assert recover_signer(authorization_digest(signed, BASE), signed.signature) == ADDRESS
    assert (signed.recipient, signed.value_units, signed.valid_before) == (WALLET, 20_000, 1_300)


def test_two_signatures_have_two_nonces():
    terms = read_terms(header(GOOD))
    assert authorize(terms, SECRET, now=0).nonce != authorize(terms, SECRET, now=0).nonce


def test_the_header_is_an_x402_payment_of_version_2():
    terms = read_terms(header(GOOD))
    signed = authorize(terms, SECRET, now=0)
    payload = json.loads(base64.b64decode(payment_header(terms, signed)))
    assert (payload["x402Version"], payload["accepted"]) == (2, GOOD)
    assert payload["payload"]["authorization"] == {
        "from": ADDRESS,
        "to": WALLET,
        "value": "20000",
        "validAfter": "0",
        "validBefore": "300",
        "nonce": signed.nonce,
    }
