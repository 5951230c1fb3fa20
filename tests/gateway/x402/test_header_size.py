"""nginx turns an answer whose head has more than one page of memory (4,096 bytes) into a 502."""

import attrs
import pytest

from tests.conftest import decoded, running

NAME = "https://gateway-of-an-operator-with-a-long-name.example.com"
SHORT = ("picture",)
LONG = ("sandbox-image", "document-parser", "sandbox-image-edit", "sandbox-extract")


@pytest.fixture
def named(settings):
    return attrs.evolve(settings, base_url=NAME, sandbox=True)


@pytest.mark.parametrize("slug", [*SHORT, *LONG])
async def test_a_402_passes_nginx_with_its_defaults(named, provider, slug):
    async with running(named, provider) as gateway:
        headers = (await gateway.client.post(f"/api/x402/{slug}")).headers
    assert sum(len(name) + len(value) + 4 for name, value in headers.items()) < 4_000
    bazaar = decoded(headers["PAYMENT-REQUIRED"])["extensions"]["bazaar"]
    # The fields of a request are described where there is room for them.
    described = bazaar["schema"]["properties"]["input"]["properties"]["body"]
    assert ("properties" in described) == (slug in SHORT)
    assert bazaar["info"]["input"]["body"]
