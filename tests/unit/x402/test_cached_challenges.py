"""A challenge is cached for the next buyer, and never used after a change."""

import attrs
import pytest

from gateway import Choice, Quote
from gateway.domain.eip3009 import BASE, NETWORKS
from gateway.domain.refund_promise import RefundPromise
from gateway_testing.facts import ENDPOINT
from gateway_x402 import messages
from gateway_x402.verifier import NOT_SHOWN, X402Verifier

WALLET = "0x" + "11" * 20
QUOTE = Quote(
    endpoint=ENDPOINT,
    price_units=20_000,
    wallet=WALLET,
    network=BASE,
    resource_url="https://gateway.test/api/x402/picture",
)


PROMISE = RefundPromise(on_failure="review", policy_url="https://gateway.test/llms.txt")
# Another value for each field.
OTHERS = {
    name: {name: value}
    for name, value in {
        "endpoint": attrs.evolve(ENDPOINT, title="Another title"),
        "price_units": 30_000,
        "wallet": "0x" + "22" * 20,
        "network": NETWORKS["base-sepolia"],
        "resource_url": "https://elsewhere.test/api/x402/picture",
        "earlier_units": (10_000,),
        "body_digest": "sha-256=:0:",
        "refund": PROMISE,
        "selling": "nothing",
        "maker": attrs.evolve(ENDPOINT, slug="fallback"),
        "names_model": True,
    }.items()
}


@pytest.fixture
def x402():
    return X402Verifier(BASE, None)


@pytest.mark.parametrize("version", [1, 2])
def test_a_kept_challenge_is_the_challenge_that_would_be_made(x402, version):
    for _ in range(3):
        made = messages.challenge(QUOTE, None, version)
        assert x402.challenge(QUOTE, None, version) == made


def test_the_next_buyer_gets_the_kept_challenge(x402):
    again = attrs.evolve(QUOTE)
    assert x402.challenge(QUOTE, None, 2) is x402.challenge(again, None, 2)


@pytest.mark.parametrize(
    "change",
    [
        *OTHERS.values(),
        {"endpoint": attrs.evolve(ENDPOINT, resolution=Choice(values=("1K",), default="1K"))},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_a_challenge_says_is_never_older_than_its_quote(x402, change):
    changed = attrs.evolve(QUOTE, **change)
    for quote in (QUOTE, changed, QUOTE, changed):
        assert x402.challenge(quote, None, 2) == messages.challenge(quote, None, 2)


# A new field of a quote must be shown, or be named as not shown.
@pytest.mark.parametrize("name", [field.name for field in attrs.fields(Quote)])
def test_each_field_of_a_quote_makes_a_new_challenge_or_is_named(x402, name):
    changed = attrs.evolve(QUOTE, **OTHERS[name])
    is_kept = x402.challenge(QUOTE, None, 2) is x402.challenge(changed, None, 2)
    assert is_kept == (name in NOT_SHOWN)
    if is_kept:
        assert messages.challenge(QUOTE, None, 2) == messages.challenge(changed, None, 2)


def test_a_sentence_about_today_is_neither_kept_nor_hidden_by_a_kept_challenge(x402):
    plain = x402.challenge(QUOTE, None, 2)
    assert x402.challenge(QUOTE, "USDC is paused.", 2).body["error"] == "USDC is paused."
    assert x402.challenge(QUOTE, None, 2) == plain


def test_each_version_has_its_own_challenge(x402):
    first, second = x402.challenge(QUOTE, None, 1), x402.challenge(QUOTE, None, 2)
    assert first.body["accepts"] == second.body["accepts"][::-1]


def test_the_number_of_kept_challenges_is_bounded():
    x402 = X402Verifier(BASE, None, cache_size=10)
    for price in range(1, 101):
        quote = attrs.evolve(QUOTE, price_units=price)
        assert x402.challenge(quote, None, 2).body["accepts"][0]["amount"] == str(price)
        assert len(x402._kept) <= 10
