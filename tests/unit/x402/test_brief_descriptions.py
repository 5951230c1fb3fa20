"""A challenge that is too long keeps a whole sentence of the description, and the disclosure."""

import attrs
import pytest

from gateway.catalog.fallbacks import name_fallback
from gateway.domain.eip3009 import BASE
from tests.authorizations import decoded
from tests.bundled_endpoints import bundled_endpoints
from tests.unit.x402 import test_notices_fit
from tests.unit.x402.test_notices_fit import header_of

FIRST = "Draws what the prompt describes, e.g. Boats, in 4K. Up to 80 languages are understood."
REST = "The result is a picture whose mood and motifs follow the words of the prompt. "
OFFER = bundled_endpoints()["openai-image"]
MAKER = attrs.evolve(OFFER, model="spare", provider="other")
DISCLOSURE = "In an outage of its provider, spare by other may make it."


@pytest.fixture
def short_address(monkeypatch):
    monkeypatch.setattr(test_notices_fit, "ADDRESS", "https://shop.example.com")


def shown(description: str, *, has_fallback: bool = False):
    """Return an offer's description in the 402, and whether the 402 has the response."""
    offer = attrs.evolve(OFFER, description=description.strip())
    header = header_of(name_fallback(offer, MAKER) if has_fallback else offer, BASE)
    challenge = decoded(header)
    has_output = "output" in challenge["extensions"]["bazaar"]["info"]
    return challenge["resource"]["description"], has_output


@pytest.mark.usefixtures("short_address")
def test_the_first_sentence_remains():
    assert shown(f"{FIRST} {REST}") == (f"{FIRST} {REST.strip()}", True)
    assert shown(f"{FIRST} {REST * 3}") == (FIRST, True)


@pytest.mark.usefixtures("short_address")
@pytest.mark.parametrize("count", [2, 5], ids=["at the end", "at the begin"])
def test_the_disclosure_of_a_fallback_remains(count):
    assert shown(f"{FIRST} {REST * count}", has_fallback=True) == (f"{FIRST} {DISCLOSURE}", True)


@pytest.mark.usefixtures("short_address")
def test_a_long_sentence_is_cut_at_a_word(monkeypatch):
    monkeypatch.setattr(test_notices_fit, "REFUND", None)
    text, has_output = shown("word " * 99)
    assert has_output
    assert text.endswith("word…")


def test_the_whole_description_remains_if_the_response_has_no_room():
    assert shown(f"{FIRST} {REST}", has_fallback=True) == (f"{FIRST} {REST}{DISCLOSURE}", False)
