"""`gateway serve` on a terminal prints addresses for people; programs get JSON lines only."""

import attrs
import pytest

import gateway_operator
import gateway_shop
from gateway.cli import addresses
from tests.conftest import running

PAGES = ("/", "/admin", "/.well-known/agent-manifest.json", "/llms.txt")


@pytest.mark.parametrize("is_terminal", [True, False])
async def test_a_person_reads_where_the_pages_are(
    settings, provider, monkeypatch, capsys, is_terminal
):
    monkeypatch.setattr(addresses, "is_terminal", lambda _: is_terminal)
    async with running(settings, provider) as gateway:
        addresses.print_addresses(gateway.services)
        output = capsys.readouterr().out
        assert bool(output.strip()) == is_terminal
        for path in PAGES if is_terminal else ():
            assert f" {settings.base_url}{path}\n" in output
            assert (await gateway.client.get(path)).status_code in (200, 401)


async def test_only_pages_that_exist_and_offers_on_sale_are_printed(settings, provider):
    without = [gateway_shop.__name__, gateway_operator.__name__]
    elsewhere = attrs.evolve(settings, plugins_disabled=without, bind="127.0.0.1:9")
    async with running(elsewhere, provider) as gateway:
        text = "\n".join(addresses.describe_addresses(gateway.services))
        offers = ", ".join(endpoint.slug for endpoint in gateway.services.catalog)
    assert "/admin" not in text
    assert "shop" not in text
    assert offers
    assert offers in text
    assert "listens at           127.0.0.1:9" in text
