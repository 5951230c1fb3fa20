"""Unpaid discovery: manifest, sitemap, health; headers of every response."""

import re
from xml.etree import ElementTree as ET

import attrs
import pytest

from gateway.errors import SettingsError
from gateway.settings import EndpointOverride
from tests.conftest import WALLET, running
from tests.gateway.web.descriptions import BASE, MANIFEST, get_json, slugs

# -- the manifest, spec §2.7


async def test_the_manifest_has_the_fields_of_the_specification(gateway):
    manifest = await get_json(gateway, MANIFEST)
    assert set(manifest) == {
        "did",
        "name",
        "version",
        "specVersion",
        "selling",
        "authentication",
        "endpoints",
        "agentCapabilities",
        "availableEndpoints",
        "identity",
        "refundPolicy",
        "created",
        "updated",
    }
    assert manifest["did"] == "did:web:gateway.test"
    assert isinstance(manifest["name"], str)
    assert isinstance(manifest["version"], str)
    assert manifest["specVersion"] == "1.0"
    assert manifest["identity"] == {"walletAddress": WALLET, "network": "base"}
    for name in ("created", "updated"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", manifest[name])
    assert {"document-parsing", "text-to-image"} <= set(manifest["agentCapabilities"])
    manifest["endpoints"].pop("mcp", None)
    assert manifest["endpoints"] == {
        "generate": BASE + "/api/x402/{slug}",
        "generateDirect": BASE + "/api/proxy-generate",
        "taskStatus": BASE + "/api/task/{taskId}",
        "llmstxt": BASE + "/llms.txt",
        "endpointList": BASE + "/sitemap.xml",
        "openapi": BASE + "/openapi.json",
    }


async def test_the_manifest_names_both_ways_to_pay(gateway):
    x402, direct = (await get_json(gateway, MANIFEST))["authentication"]
    for way in (x402, direct):
        assert isinstance(way.pop("description"), str)
    assert x402.pop("docs").startswith("https://")
    common = {"network": "base", "asset": "USDC"}
    assert x402 == {"type": "X402", "paymentHeader": "X-PAYMENT", **common}
    assert direct == {
        "type": "DirectUSDC",
        "endpoint": BASE + "/api/proxy-generate",
        "requiredFields": ["slug", "prompt", "txHash"],
        **common,
    }


async def test_the_manifest_lists_what_is_on_sale(gateway):
    listed = (await get_json(gateway, MANIFEST))["availableEndpoints"]
    endpoints = {endpoint["slug"]: endpoint for endpoint in listed}
    assert endpoints["picture"] == {
        "slug": "picture",
        "title": "A picture",
        "description": "One pixel.",
        "price": 0.02,
        "priceCurrency": "USDC",
        "model": "pixel-1",
        "provider": "scripted",
        "capability": "text-to-image",
        "url": BASE + "/api/x402/picture",
        "requiredFields": ["prompt"],
        "optionalFields": {
            "aspect_ratio": {"values": ["1:1", "16:9"], "default": "1:1"},
            "output_format": {"values": ["png", "jpg", "webp"], "default": "png"},
            "resolution": {"values": ["1K", "2K"], "default": "1K"},
        },
    }
    assert endpoints["paper"]["fileExtensions"] == [".pdf", ".txt"]
    assert endpoints["paper"]["requiredFields"] == ["fileBase64", "fileName"]
    assert endpoints["paper"]["capability"] == "document-parsing"


async def test_the_dates_are_the_operators(settings, provider):
    dated = attrs.evolve(settings, created="2025-01-02", updated="2026-03-04")
    async with running(dated, provider) as gateway:
        manifest = await get_json(gateway, MANIFEST)
    assert (manifest["created"], manifest["updated"]) == ("2025-01-02", "2026-03-04")


async def test_the_did_resolves(settings, provider):
    local = attrs.evolve(settings, base_url="http://127.0.0.1:8080")
    async with running(local, provider) as gateway:
        did = (await get_json(gateway, MANIFEST))["did"]
        document = await get_json(gateway, "/.well-known/did.json")
    assert did == document["id"] == "did:web:127.0.0.1%3A8080"
    (method,) = document["verificationMethod"]
    assert method["controller"] == did
    assert method["blockchainAccountId"] == f"eip155:8453:{WALLET}"


async def test_the_sitemap_lists_the_endpoints(gateway):
    answer = await gateway.client.get("/sitemap.xml")
    assert "xml" in answer.headers["Content-Type"]
    root = ET.fromstring(await answer.get_data())
    locations = [element.text for element in root.iter() if element.tag.endswith("}loc")]
    slugs_now = await slugs(gateway)
    assert locations == [f"{BASE}/", *(f"{BASE}/api/x402/{slug}" for slug in slugs_now)]


async def test_llms_txt_names_what_is_on_sale_its_price_and_the_wallet(gateway):
    answer = await gateway.client.get("/llms.txt")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    text = (await answer.get_data()).decode()
    listed = (await get_json(gateway, MANIFEST))["availableEndpoints"]
    for endpoint in listed:
        assert endpoint["slug"] in text
        assert str(endpoint["price"]) in text
    assert WALLET in text


async def test_mcp_is_named_only_where_it_is_served(gateway, monkeypatch):
    circuit = gateway.services.catalog["picture"].upstream.circuit

    async def told(is_served: bool) -> list[bool]:
        discovery = gateway.services.discovery if is_served else []
        monkeypatch.setattr(type(gateway.services), "discovery", discovery)
        for change in (circuit.trip, lambda _: circuit.try_again()):
            change("a change of the catalogue")
        manifest = await get_json(gateway, MANIFEST)
        text = (await (await gateway.client.get("/llms.txt")).get_data()).decode()
        return [manifest["endpoints"].get("mcp") == BASE + "/mcp", BASE + "/mcp" in text]

    assert await told(True) == [True, True]
    assert await told(False) == [False, False]


@pytest.mark.parametrize("path", ["/llms.txt", MANIFEST])
async def test_what_agents_open_first_links_to_the_descriptions(gateway, path):
    link = (await gateway.client.get(path)).headers["Link"]
    assert '</openapi.json>; rel="service-desc"' in link
    assert '</llms.txt>; rel="describedby"' in link
    for target in re.findall("<(.+?)>", link):
        assert (await gateway.client.get(target)).status_code == 200


# -- endpoints that cannot be bought now


async def shown(gateway) -> list[bool]:
    """Return which of the documents show the picture; health counts the manifest's offers."""
    listed = await slugs(gateway)
    described = (await get_json(gateway, "/openapi.json"))["paths"]
    resources = (await get_json(gateway, "/.well-known/x402.json"))["items"]
    agent = (await get_json(gateway, "/.well-known/agent-registration.json"))["description"]
    sitemap = (await (await gateway.client.get("/sitemap.xml")).get_data()).decode()
    text = (await (await gateway.client.get("/llms.txt")).get_data()).decode()
    counted = (await get_json(gateway, "/api/health"))["endpoints"]
    assert counted == len(listed)
    return [
        "picture" in listed,
        "/api/x402/picture<" in sitemap,
        "### picture:" in text,
        "/api/x402/picture" in described,
        BASE + "/api/x402/picture" in [item["resource"]["url"] for item in resources],
        "A picture" in agent,
    ]


async def test_what_is_off_sale_is_gone_everywhere_and_comes_back(gateway):
    circuit = gateway.services.catalog["picture"].upstream.circuit
    assert await shown(gateway) == [True] * 6
    circuit.trip("No credit.")
    assert await shown(gateway) == [False] * 6
    circuit.try_again()
    assert await shown(gateway) == [True] * 6


# -- the operator's changes


async def test_title_price_and_model_are_the_operators(settings, provider, payer):
    changes = EndpointOverride(
        title="Bild", price="0.000001", model="m", description='<"&> in every form'
    )
    async with running(attrs.evolve(settings, endpoints={"picture": changes}), provider) as gateway:
        listed = (await get_json(gateway, MANIFEST))["availableEndpoints"]
        (shown,) = [endpoint for endpoint in listed if endpoint["slug"] == "picture"]
        assert (shown["title"], shown["price"], shown["model"]) == ("Bild", 0.000001, "m")
        answer = await gateway.client.post("/api/x402/picture")
        body = await answer.get_json()
        assert body["accepts"][0]["amount"] == "1"
        assert "0.000001 USDC" in body["error"]
        text = (await (await gateway.client.get("/llms.txt")).get_data()).decode()
        assert "0.000001" in text
        assert '<"&> in every form' in text
        for units, status in ((20_000, 402), (1, 200)):
            headers = {"X-PAYMENT": payer.header(units)}
            answer = await gateway.client.post(
                "/api/x402/picture", json={"prompt": "a"}, headers=headers
            )
            assert answer.status_code == status


async def test_what_is_switched_off_is_gone_everywhere(settings, provider, payer):
    off = {"picture": EndpointOverride(enabled=False)}
    async with running(settings, provider) as gateway:
        before = await slugs(gateway)
    async with running(attrs.evolve(settings, endpoints=off), provider) as gateway:
        assert await slugs(gateway) == [slug for slug in before if slug != "picture"]
        sitemap = (await (await gateway.client.get("/sitemap.xml")).get_data()).decode()
        assert "picture" not in sitemap
        text = (await (await gateway.client.get("/llms.txt")).get_data()).decode()
        assert "### picture" not in text
        assert (await get_json(gateway, "/api/health"))["endpoints"] == len(before) - 1
        body = {"slug": "picture", "prompt": "a", "txHash": payer.transfer(20_000)}
        for path in ("/api/x402/picture", "/api/proxy-generate"):
            headers = {"X-PAYMENT": payer.header()}
            answer = await gateway.client.post(path, json=body, headers=headers)
            assert answer.status_code == 404
            assert (await answer.get_json())["code"] == "NOT_FOUND"


@pytest.mark.parametrize(
    ("endpoints", "message"),
    [
        ({"pictur": EndpointOverride(price="1")}, "pictur"),
        ({"picture": EndpointOverride(price="0")}, "price"),
        ({"picture": EndpointOverride(price="0.0000001")}, "price"),
        ({"picture": EndpointOverride(price="free")}, "price"),
    ],
)
async def test_a_wrong_change_stops_the_start(settings, provider, endpoints, message):
    with pytest.raises(SettingsError, match=message):
        async with running(attrs.evolve(settings, endpoints=endpoints), provider):
            pass
