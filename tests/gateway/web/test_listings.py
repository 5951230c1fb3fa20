"""x402.json, the ERC-8004 file, robots.txt and the favicon have the shapes that readers expect."""

import io
import re

import attrs
import pytest
from PIL import Image

from gateway import Discovery
from gateway.errors import SettingsError
from gateway.settings.checks import check_settings
from tests.authorizations import decoded
from tests.conftest import WALLET, running
from tests.gateway.web.descriptions import BASE, get_json

RESOURCES = "/.well-known/x402.json"
AGENT = "/.well-known/agent-registration.json"
REGISTRY = "eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"


async def test_the_resources_have_the_shape_of_the_draft(gateway, clock):
    clock.frozen_at = 1_795_000_000.7
    listed = await get_json(gateway, RESOURCES)
    assert set(listed) == {"x402Version", "lastUpdated", "items"}
    assert (listed["x402Version"], listed["lastUpdated"]) == (2, 1_795_000_000)
    for item in listed["items"]:
        assert set(item) == {"resource", "type", "accepts", "input", "output"}
        assert item["type"] == "http"
        assert item["input"]["method"] == "POST"
        assert item["input"]["bodyType"] == "json"
        assert item["resource"]["url"] == BASE + item["input"]["routeTemplate"]
        assert item["input"]["body"]["type"] == "object"
        assert item["output"]["mimeType"] == "application/json"


async def test_the_terms_listed_are_those_of_the_402(gateway):
    for item in (await get_json(gateway, RESOURCES))["items"]:
        answer = await gateway.client.post(item["resource"]["url"].removeprefix(BASE))
        challenge = decoded(answer.headers["PAYMENT-REQUIRED"])
        assert item["accepts"] == challenge["accepts"]
        assert item["resource"] == challenge["resource"]
        assert item["accepts"][0]["payTo"] == WALLET


async def test_no_terms_are_listed_for_a_wallet_that_is_wrong(gateway):
    gateway.services.wallet.problem = "GATEWAY_WALLET is a contract."
    assert (await gateway.client.get(RESOURCES)).status_code == 500


async def test_the_legacy_list_is_not_published(gateway):
    assert (await gateway.client.get("/.well-known/x402")).status_code == 404


async def test_the_registration_file_has_the_shape_of_erc_8004(gateway, monkeypatch):
    discovery = [Discovery(openapi="/openapi.json")]
    monkeypatch.setattr(type(gateway.services), "discovery", discovery)
    agent = await get_json(gateway, AGENT)
    assert agent["type"] == "https://eips.ethereum.org/EIPS/eip-8004#registration-v1"
    assert set(agent) == {
        "type",
        "name",
        "description",
        "image",
        "services",
        "x402Support",
        "active",
        "registrations",
    }
    assert agent["name"] == "Generation Gateway"
    assert "A picture" in agent["description"]
    assert (agent["x402Support"], agent["active"], agent["registrations"]) == (True, True, [])
    services = {service["name"]: service["endpoint"] for service in agent["services"]}
    assert services == {
        "web": f"{BASE}/",
        "OpenAPI": f"{BASE}/openapi.json",
        "DID": "did:web:gateway.test",
    }
    assert agent["image"] == f"{BASE}/favicon.ico"


async def test_the_operator_names_registrations_and_an_address(settings, provider):
    known = attrs.evolve(
        settings, contact_email="me@example.com", agent_registrations=(f"{REGISTRY}/22",)
    )
    async with running(known, provider) as gateway:
        agent = await get_json(gateway, AGENT)
    assert agent["registrations"] == [{"agentId": 22, "agentRegistry": REGISTRY}]
    services = {service["name"]: service["endpoint"] for service in agent["services"]}
    assert (services["email"], services["MCP"]) == ("me@example.com", f"{BASE}/mcp")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agent_registrations": ("22",)}, "GATEWAY_AGENT_REGISTRATIONS is not right"),
        ({"agent_registrations": (f"{REGISTRY}/22", REGISTRY)}, "eip155:8453:0x8004"),
        ({"contact_email": "me"}, "GATEWAY_CONTACT_EMAIL is not right"),
        ({"contact_email": "Me <me@example.com>"}, "operator@example.com"),
    ],
)
def test_a_mistyped_registration_or_address_stops_the_start(settings, change, message):
    with pytest.raises(SettingsError, match=re.escape(message)):
        check_settings(attrs.evolve(settings, **change))


async def test_crawlers_leave_tasks_and_files_alone(gateway):
    answer = await gateway.client.get("/robots.txt")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert (await answer.get_data()).decode().splitlines() == [
        "User-agent: *",
        "Disallow: /admin",
        "Disallow: /task/",
        "Disallow: /purchases",
        "Disallow: /api/task/",
        "Disallow: /files/",
        "",
        f"Sitemap: {BASE}/sitemap.xml",
    ]


async def test_the_favicon_is_a_picture(gateway):
    answer = await gateway.client.get("/favicon.ico")
    assert answer.headers["Content-Type"] == "image/x-icon"
    with Image.open(io.BytesIO(await answer.get_data())) as picture:
        assert picture.format == "ICO"
        assert {(16, 16), (32, 32)} <= set(picture.info["sizes"])
