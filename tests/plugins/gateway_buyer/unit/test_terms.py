"""A 402 is signed only if it asks for exactly a payment in a known USDC."""

import base64
import json

import pytest

from gateway.domain.eip3009 import BASE_SEPOLIA, checksum_address
from gateway_buyer.errors import NotBought
from gateway_buyer.terms import check_price, format_usdc, read_terms
from tests.conftest import WALLET

GOOD = {
    "scheme": "exact",
    "network": "eip155:8453",
    "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    "amount": "20000",
    "payTo": WALLET,
    "maxTimeoutSeconds": 300,
    "extra": {"name": "USD Coin", "version": "2"},
}


def header(*entries, **challenge):
    written = json.dumps({"x402Version": 2, "accepts": entries} | challenge)
    return base64.b64encode(written.encode()).decode()


def test_price_payee_and_network_are_read():
    terms = read_terms(header(GOOD))
    assert (terms.price_units, terms.payee) == (20_000, checksum_address(WALLET))
    assert (terms.network.name, terms.valid_s) == ("base", 300)
    assert terms.accepted == GOOD


@pytest.mark.parametrize(
    ("flow", "is_upfront"),
    [({}, False), ({"paymentFlow": "authorization"}, False), ({"paymentFlow": "upfront"}, True)],
)
def test_when_the_money_moves_is_read(flow, is_upfront):
    terms = read_terms(header(GOOD | {"extra": GOOD["extra"] | flow}))
    assert terms.is_upfront is is_upfront


@pytest.mark.parametrize(
    ("extensions", "message"),
    [
        ({"refund-policy": {"info": {"onFailure": "automatic"}}}, "sends the price back"),
        ({"refund-policy": {"info": {"onFailure": "review"}}}, "the operator decides"),
        ({"refund-policy": {"info": {"onFailure": "none"}}}, "no refund is promised"),
        ({"refund-policy": {"info": {"onFailure": ["automatic"]}}}, "no refund is promised"),
        ({"refund-policy": "automatic"}, "no refund is promised"),
        ([], "no refund is promised"),
    ],
    ids=str,
)
def test_the_refund_promise_is_read_and_never_more_than_it(extensions, message):
    assert message in read_terms(header(GOOD, extensions=extensions)).refund


def test_usdc_on_base_sepolia_is_known():
    test_money = GOOD | {"network": "eip155:84532", "asset": BASE_SEPOLIA.token.upper()}
    assert read_terms(header(test_money | {"asset": BASE_SEPOLIA.token})).network == BASE_SEPOLIA


@pytest.mark.parametrize(
    "wrong",
    [
        {"scheme": "upto"},
        {"network": "eip155:1"},
        {"network": "base"},
        {"network": 8453},
        # USDC of the other network.
        {"asset": BASE_SEPOLIA.token},
        {"asset": "0x" + "99" * 20},
        {"asset": "USDC"},
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "2e4"},
        {"amount": 20_000},
        {"amount": "9" * 19},
        {"payTo": "0x12"},
        {"payTo": None},
        {"maxTimeoutSeconds": 0},
        {"maxTimeoutSeconds": "300"},
        {"maxTimeoutSeconds": True},
        {"extra": {"assetTransferMethod": "permit2"}},
        {"extra": GOOD["extra"] | {"paymentFlow": "escrow"}},
        {"extra": GOOD["extra"] | {"paymentFlow": None}},
        {"extra": GOOD["extra"] | {"paymentFlow": ["upfront"]}},
    ],
    ids=str,
)
def test_what_this_program_cannot_pay_is_refused_with_what_was_asked(wrong):
    with pytest.raises(NotBought, match="It pays USDC on base and base-sepolia by the scheme"):
        read_terms(header(GOOD | wrong))


def test_an_offer_that_cannot_be_paid_is_passed_over():
    assert read_terms(header({"network": "solana"}, GOOD)).price_units == 20_000


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "not Base64!",
        base64.b64encode(b"[" * 40_000).decode(),
        base64.b64encode(b"[]").decode(),
        base64.b64encode(b"\xff").decode(),
        header(accepts={"a": 1}),
        header(GOOD, padding="x" * 64_000),
    ],
    ids=["none", "empty", "text", "brackets", "list", "bytes", "object", "huge"],
)
def test_what_is_no_challenge_is_refused(value):
    with pytest.raises(NotBought, match="PAYMENT-REQUIRED"):
        read_terms(value)


def test_a_signature_can_be_used_for_ten_minutes_at_most():
    assert read_terms(header(GOOD | {"maxTimeoutSeconds": 10**9})).valid_s == 600


def test_a_price_above_the_limit_is_refused_with_the_way_out():
    terms = read_terms(header(GOOD | {"amount": "100001"}))
    with pytest.raises(NotBought, match=r"0\.100001 USDC, above .* 0\.10 USDC.* --max 0\.100001"):
        check_price(terms, 100_000)
    check_price(terms, 100_001)


def test_what_a_stranger_asks_for_is_shown_shortened():
    with pytest.raises(NotBought) as refused:
        read_terms(header(*[GOOD | {"network": "n" * 5_000}] * 9))
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize(
    ("units", "text"), [(1, "0.000001"), (20_000, "0.02"), (100_000, "0.10"), (12_000_000, "12.00")]
)
def test_amounts_are_written_in_full(units, text):
    assert format_usdc(units) == text
