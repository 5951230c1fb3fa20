"""Listings of an endpoint in a Bazaar, judged by the official validator of `x402`."""

import json

import attrs
import pytest
from x402.extensions.bazaar.facilitator import (
    extract_discovery_info,
    validate_discovery_extension,
    validate_discovery_extension_spec,
)
from x402.extensions.bazaar.types import parse_discovery_extension

from gateway import Choice, Quote
from gateway.domain.eip3009 import BASE
from gateway.domain.listing import bazaar_of, resource_of
from gateway_x402 import messages
from tests.authorizations import decoded
from tests.bundled_endpoints import bundled_endpoints

NAME = "Generation Gateway"
PAYMENT_REQUIRED = "PAYMENT-REQUIRED"
# Limit for the header's value. Proxies add headers, and all of them stay far below 8 KB.
MAX_CHARS = 3_500
every_endpoint = pytest.mark.parametrize(
    "endpoint", bundled_endpoints().values(), ids=bundled_endpoints().keys()
)


def header_of(endpoint, *, name: str = NAME, url: str = "") -> str:
    quote = Quote(
        endpoint=endpoint,
        price_units=endpoint.price_units,
        wallet="0x" + "11" * 20,
        network=BASE,
        resource_url=url or f"https://gateway.example.com/api/x402/{endpoint.slug}",
    )
    return messages.challenge(quote, None, 2, name=name).headers[PAYMENT_REQUIRED]


def listed(endpoint, **options):
    """What a Bazaar lists when a client sends the challenge back."""
    challenge = decoded(header_of(endpoint, **options))
    payload = {"x402Version": 2, **challenge, "accepted": challenge["accepts"][0], "payload": {}}
    return extract_discovery_info(payload, challenge["accepts"][0])


@every_endpoint
def test_the_official_validator_takes_every_declaration(endpoint):
    declared = decoded(header_of(endpoint))["extensions"]["bazaar"]
    for found in (
        validate_discovery_extension_spec(declared),
        validate_discovery_extension(parse_discovery_extension(declared)),
    ):
        assert found.valid, found.errors


@every_endpoint
def test_a_bazaar_lists_each_endpoint_at_its_own_address_with_every_label(endpoint):
    found = listed(endpoint)
    assert found.resource_url == f"https://gateway.example.com/api/x402/{endpoint.slug}"
    assert found.method == "POST"
    assert found.description == endpoint.description
    assert found.service_name == NAME
    assert found.tags == decoded(header_of(endpoint))["resource"]["tags"]
    assert found.tags[0] == endpoint.capability
    assert found.icon_url == "https://gateway.example.com/favicon.ico"


@every_endpoint
def test_the_header_is_short_enough_for_every_proxy(endpoint):
    assert len(header_of(endpoint)) < MAX_CHARS


# -- texts by an operator or the author of a plugin

PICTURE = bundled_endpoints()["sandbox-image"]
NAMES = {
    "": None,
    "Café Möller": "Caf Mller",
    "生成": None,
    "x" * 40: "x" * 32,
    "tab\there": "tabhere",
}


@pytest.mark.parametrize(("name", "shown"), NAMES.items())
def test_the_name_is_shown_in_printable_ascii(name, shown):
    assert listed(PICTURE, name=name).service_name == shown


def test_a_label_that_says_nothing_new_is_left_out():
    same = attrs.evolve(PICTURE, model=PICTURE.capability, provider="生成")
    assert listed(same).tags == [PICTURE.capability]


@pytest.mark.parametrize(
    "origin",
    ["http://gateway.example.com", "https://192.0.2.7", "https://localhost", "https://[::1]:8443"],
)
def test_an_icon_needs_https_and_a_host_with_a_name(origin):
    assert "iconUrl" not in resource_of(PICTURE, f"{origin}/api/x402/picture", NAME)


@pytest.mark.parametrize("text", ["long " * 200, "長い" * 300, "\U0001f5bc" * 300, "\x7f" * 600])
def test_a_long_description_is_cut(text):
    endpoint = attrs.evolve(PICTURE, description=text)
    shown = listed(endpoint).description
    assert 40 <= len(shown) <= 500
    assert text.startswith(shown.removesuffix("…"))
    assert len(header_of(endpoint)) < MAX_CHARS


def test_an_endpoint_without_a_description_is_called_by_its_title():
    assert listed(attrs.evolve(PICTURE, description="")).description == PICTURE.title


def test_a_declaration_that_is_too_long_leaves_the_fields_out_and_stays_valid():
    sizes = tuple(f"{number}K" for number in range(400))
    endpoint = attrs.evolve(PICTURE, resolution=Choice(values=sizes, default="1K"))
    declared = bazaar_of(endpoint)
    assert validate_discovery_extension(parse_discovery_extension(declared)).valid
    assert "399K" not in json.dumps(declared)
    assert len(header_of(endpoint)) < MAX_CHARS


def test_an_endpoint_that_is_gone_is_named_but_not_described():
    url = "https://gateway.example.com/api/x402/gone"
    assert resource_of(None, url, NAME) == {
        "url": url,
        "description": NAME,
        "mimeType": "application/json",
        "serviceName": NAME,
        "iconUrl": "https://gateway.example.com/favicon.ico",
    }
