"""nginx returns a 502 if the head of a response exceeds a page of memory (4,096 bytes)."""

import attrs
import pytest

from tests.authorizations import decoded
from tests.bundled_endpoints import ALL_SET_UP
from tests.conftest import running

# 60 characters.
NAME = f"https://{'long-name-of-an-operator.' * 2}com"
# Added by servers and proxies: `Date`, `Server`, and an `X-Request-Id` of 64 characters.
THEIRS = 37 + 27 + 32
MAX_BYTES = 4_000


@pytest.fixture
def named(settings):
    return attrs.evolve(
        settings,
        name="A gateway with a name of forty letters.",
        base_url=NAME,
        refund_key="0x" + "5f" * 32,
        limit_price="10000/60s",
        plugin_values={**ALL_SET_UP, "mpp_enabled": True},
        sandbox=True,
    )


async def test_every_402_passes_nginx_with_its_defaults(named, provider):
    async with running(named, provider) as gateway:
        slugs = [registered.endpoint.slug for registered in gateway.services.catalog.everything()]
        sizes = {}
        for slug in slugs:
            answer = await gateway.client.post(
                f"/api/x402/{slug}", headers={"Origin": "https://shop.example"}
            )
            assert answer.status_code == 402
            assert "WWW-Authenticate" in answer.headers
            challenge = decoded(answer.headers["PAYMENT-REQUIRED"])
            assert "refund-policy" in challenge["extensions"]
            assert challenge["extensions"]["bazaar"]["info"]["input"]["body"]
            lines = answer.headers.items()
            sizes[slug] = sum(len(name) + len(value) + 4 for name, value in lines) + THEIRS
    assert len(sizes) > 45
    assert {slug: size for slug, size in sizes.items() if size >= MAX_BYTES} == {}


async def test_fields_are_described_where_there_is_room(settings, provider):
    async with running(settings, provider) as gateway:
        answer = await gateway.client.post("/api/x402/picture")
    bazaar = decoded(answer.headers["PAYMENT-REQUIRED"])["extensions"]["bazaar"]
    assert "properties" in bazaar["schema"]["properties"]["input"]["properties"]["body"]
    assert "output" in bazaar["info"]


async def test_a_long_description_gives_way_to_the_response(settings, provider):
    """A checker of x402scan requires the response."""
    network = attrs.evolve(settings, base_url="https://shop.example.com", sandbox=True)
    async with running(network, provider) as gateway:
        endpoint = gateway.services.catalog["sandbox-image-edit"].endpoint
        answer = await gateway.client.post("/api/x402/sandbox-image-edit")
        openapi = await (await gateway.client.get("/openapi.json")).get_json()
    challenge = decoded(answer.headers["PAYMENT-REQUIRED"])
    assert challenge["extensions"]["bazaar"]["info"]["output"]
    shown = challenge["resource"]["description"]
    assert shown.endswith(".")
    assert endpoint.description.startswith(f"{shown} ")
    assert (
        endpoint.description
        in openapi["paths"]["/api/x402/sandbox-image-edit"]["post"]["description"]
    )
