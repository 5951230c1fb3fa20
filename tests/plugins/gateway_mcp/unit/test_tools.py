"""Every model accepts the tools' names, and each description has the price."""

import re

import attrs
import pytest

from gateway import Endpoint, PriceStep
from gateway.catalog.catalog import Catalog
from gateway.contracts.store import EndpointChange
from gateway.domain.eip3009 import BASE
from gateway_mcp.tools import input_schema, list_tools, slugs_of_tools

PICTURE = Endpoint(
    slug="picture",
    title="A picture",
    description="One pixel.",
    model="pixel-1",
    provider="p",
    capability="text-to-image",
    price_units=20_000,
)


class Provider:
    name = "p"

    async def submit(self, request, job):
        raise AssertionError


def catalog_of(*endpoints) -> Catalog:
    catalog = Catalog({})
    for endpoint in endpoints:
        catalog.register(endpoint, Provider(), "plugin")
    return catalog


def test_a_tools_name_has_no_hyphen_and_no_dot():
    slugs = ("gemini-2.5-flash", "a_b")
    catalog = catalog_of(*(attrs.evolve(PICTURE, slug=slug) for slug in slugs))
    assert slugs_of_tools(catalog) == {"gemini_2_5_flash": "gemini-2.5-flash", "a_b": "a_b"}


def test_two_slugs_never_share_a_tool_and_none_is_the_free_one():
    slugs = ("a-b", "a.b", "a_b", "get-task")
    catalog = catalog_of(*(attrs.evolve(PICTURE, slug=slug) for slug in slugs))
    named = slugs_of_tools(catalog)
    assert sorted(named.values()) == sorted(slugs)
    assert "get_task" not in named
    tools = [tool["name"] for tool in list_tools(catalog, BASE)]
    assert len(tools) == len(set(tools)) == 5
    assert all(re.fullmatch(r"[a-z0-9_]{1,64}", name) for name in tools)


def test_a_tool_names_the_fallback_as_the_offer_does():
    catalog = catalog_of(PICTURE, attrs.evolve(PICTURE, slug="spare", model="other-1"))
    catalog.change({"picture": EndpointChange(changed_at=1.0, fallback="spare")})
    words = [tool["description"] for tool in list_tools(catalog, BASE)[:2]]
    assert ["other-1 by p may make it." in each for each in words] == [True, False]


@pytest.mark.parametrize("length", [63, 64, 65, 100])
def test_a_long_slug_has_a_name_that_clients_take(length):
    slugs = ["a-" * (length // 2 - 1) + end for end in ("b" * 20, "c" * 20)]
    slugs = [slug[-length:].strip("-") for slug in slugs]
    named = slugs_of_tools(catalog_of(*(attrs.evolve(PICTURE, slug=slug) for slug in slugs)))
    assert sorted(named.values()) == sorted(slugs)
    assert all(re.fullmatch(r"[a-z0-9_]{1,64}", name) for name in named)
    if length > 64:
        assert {name[:50] for name in named} <= {slug.replace("-", "_")[:50] for slug in slugs}
    alone = slugs_of_tools(catalog_of(attrs.evolve(PICTURE, slug=slugs[0])))
    assert alone.items() <= named.items()


@pytest.mark.parametrize("gone", ["a-b", "a.b", "get-task"])
def test_a_name_never_changes_to_another_endpoint(gone):
    slugs = ("a-b", "a.b", "c" * 99, "get-task")
    catalog = catalog_of(*(attrs.evolve(PICTURE, slug=slug) for slug in slugs))
    before = slugs_of_tools(catalog)
    catalog.change({gone: EndpointChange(paused_since=1.0, changed_at=1.0)})
    after = slugs_of_tools(catalog)
    assert after == {name: slug for name, slug in before.items() if slug != gone}


def test_the_description_names_the_price_or_its_range():
    steps = (PriceStep(price_units=1_000_000, resolution="4K"),)
    dear = attrs.evolve(PICTURE, slug="dear", price_steps=steps)
    plain, ranged, free = list_tools(catalog_of(PICTURE, dear), BASE)
    assert plain["description"].endswith("Costs 0.02 USDC on base, paid by x402.")
    assert "Costs 0.02 to 1 USDC" in ranged["description"]
    assert free["description"].startswith("Free.")


def test_a_file_may_come_by_its_address_or_in_base64():
    fields = {"required_fields": ("fileBase64", "fileName"), "file_extensions": (".pdf",)}
    paper = attrs.evolve(PICTURE, capability="document-parsing", **fields)
    schema = input_schema(paper)
    assert schema["required"] == []
    assert schema["properties"]["fileUrl"]["pattern"] == "^https://"
    prompted = attrs.evolve(paper, required_fields=("prompt", "fileBase64", "fileName"))
    assert input_schema(prompted)["required"] == ["prompt"]
    assert "fileUrl" not in input_schema(PICTURE)["properties"]
