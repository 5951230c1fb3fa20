"""Challenges of the scheme `Payment`, byte for byte as `pympp` 0.16.0 makes them."""

import attrs
import pytest

from gateway import PaymentRequired, Quote
from gateway.domain.eip3009 import BASE, BASE_SEPOLIA
from gateway_mpp.challenges import ChallengeEcho, ChallengeMaker, encode, encode_request, read_echo
from gateway_testing.facts import ENDPOINT

SECRET, REALM = "5e" * 32, "gateway.example"
DIGEST = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"
NOW = 1_800_000_000
QUOTE = Quote(
    endpoint=attrs.evolve(ENDPOINT, slug="picture"),
    price_units=20_000,
    wallet="0x" + "b2" * 20,
    network=BASE,
    resource_url="https://gateway.example/api/x402/picture",
    body_digest=DIGEST,
)
# Made by `mpp.Challenge.create(…).to_www_authenticate(realm)` and `challenge_hash(id, realm)`.
REQUEST = (
    "eyJhbW91bnQiOiIyMDAwMCIsImN1cnJlbmN5IjoiMHg4MzM1ODlmQ0Q2ZURiNkUwOGY0YzdDMzJENGY3MWI1NGJkQTAyO"
    "TEzIiwibWV0aG9kRGV0YWlscyI6eyJjaGFpbklkIjo4NDUzLCJjcmVkZW50aWFsVHlwZXMiOlsiYXV0aG9yaXphdGlvbi"
    "JdLCJkZWNpbWFscyI6Nn0sInJlY2lwaWVudCI6IjB4YjJiMmIyYjJiMkIyYjJCMkIyYjJiMkIyQjJiMkIyQjJiMmIyYjJ"
    "iMiJ9"
)
OPAQUE = "eyJfbXBwX25vbmNlIjoiMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAiLCJzbHVnIjoicGljdHVyZSJ9"
THEIRS = (
    'Payment id="pXQfyctPirQxTiOx_BkUvUhoryUKWfUHk0Z_FOcAr40", realm="gateway.example", '
    f'method="evm", intent="charge", request="{REQUEST}", digest="{DIGEST}", '
    f'expires="2027-01-15T08:05:00Z", opaque="{OPAQUE}"'
)
THEIR_NONCE = "0x637c5563c1261fbc5e167b74b1b606616356aeaa38ae944e44426165a5172e8e"


@pytest.fixture
def maker():
    return ChallengeMaker(REALM, SECRET)


@pytest.fixture
def unchanging(monkeypatch):
    monkeypatch.setattr("gateway_mpp.challenges.secrets.token_hex", lambda count: "00" * count)


def test_a_challenge_is_the_one_that_pympp_makes(maker, unchanging):
    made = maker.make(QUOTE, NOW)
    assert made.header == THEIRS
    assert made.nonces[0] == THEIR_NONCE


def test_each_challenge_is_another_one(maker):
    made = {maker.make(QUOTE, NOW).nonces for _ in range(100)}
    assert len({nonce for pair in made for nonce in pair}) == 200


def test_a_challenge_is_known_again_for_the_same_quote(maker):
    made = maker.make(QUOTE, NOW)
    assert ChallengeMaker(REALM, SECRET).is_ours(made)
    assert maker.is_for(made, QUOTE)


@pytest.mark.parametrize("name", [each.name for each in attrs.fields(ChallengeEcho)])
@pytest.mark.parametrize("change", [lambda text: text + "x", lambda text: "", lambda text: "|"])
def test_one_other_letter_is_not_ours(maker, name, change):
    made = maker.make(QUOTE, NOW)
    assert not maker.is_ours(attrs.evolve(made, **{name: change(getattr(made, name))}))


def test_a_text_that_moves_to_the_next_slot_is_for_another_request(maker):
    made = maker.make(QUOTE, NOW)
    moved = attrs.evolve(made, realm=f"{made.realm}|evm", method="charge", intent=made.request)
    moved = attrs.evolve(moved, request=made.expires, expires=made.digest, digest=made.opaque)
    moved = attrs.evolve(moved, opaque="")
    assert not (maker.is_ours(moved) and maker.is_for(moved, QUOTE))


def test_another_secret_or_realm_knows_no_challenge(maker):
    made = maker.make(QUOTE, NOW)
    assert not ChallengeMaker(REALM, "5f" * 32).is_ours(made)
    assert not ChallengeMaker("elsewhere.example", SECRET).is_for(made, QUOTE)


@pytest.mark.parametrize(
    "change",
    [
        {"price_units": 20_001},
        {"wallet": "0x" + "b3" * 20},
        {"network": BASE_SEPOLIA},
        {"endpoint": attrs.evolve(ENDPOINT, slug="another")},
        {"body_digest": DIGEST.replace("47", "48")},
        {"body_digest": ""},
    ],
    ids="-".join,
)
def test_another_request_is_not_what_the_challenge_is_for(maker, change):
    made = maker.make(QUOTE, NOW)
    assert not maker.is_for(made, attrs.evolve(QUOTE, **change))


def test_a_challenge_for_no_body_in_particular_is_for_each(maker):
    made = maker.make(attrs.evolve(QUOTE, body_digest=""), NOW)
    assert "digest=" not in made.header
    assert maker.is_for(made, QUOTE)


def test_the_request_names_addresses_by_their_checksum():
    assert encode_request(QUOTE) == encode_request(attrs.evolve(QUOTE, wallet="0x" + "B2" * 20))
    assert encode_request(QUOTE) == REQUEST


@pytest.mark.parametrize("value", [5, ["a"], {"a": 1}, True])
def test_a_field_of_another_type_is_a_credential_that_cannot_be_read(value):
    with pytest.raises(PaymentRequired) as refusal:
        read_echo({"id": value})
    assert refusal.value.reason == "invalid_payload"


@pytest.mark.parametrize("text", ["é", "\ud800", "٣"])
def test_letters_that_no_challenge_has_are_not_ours(maker, text):
    made = attrs.asdict(maker.make(QUOTE, NOW))
    for name in made:
        assert not maker.is_ours(read_echo(made | {name: text}))


def test_json_is_canonical():
    assert encode({"b": "1", "a": {"d": 2, "c": []}}) == "eyJhIjp7ImMiOltdLCJkIjoyfSwiYiI6IjEifQ"
