"""Unpaid discovery: manifest, sitemap, health; headers of every response."""

import re
from xml.etree import ElementTree as ET

import attrs
import pytest
from document_sales import buy_parsing, pdf_of

from gateway import Choice, PriceStep, hookimpl, usdc
from gateway.errors import SettingsError
from gateway.running.readiness import TTL_S
from gateway.settings import EndpointOverride
from gateway_testing.facts import ENDPOINT
from tests.cases import each
from tests.conftest import WALLET, ScriptedProvider, running

BASE = "http://gateway.test"
MANIFEST = "/.well-known/agent-manifest.json"
PUBLIC = (
    MANIFEST,
    "/.well-known/did.json",
    "/.well-known/x402.json",
    "/.well-known/agent-registration.json",
    "/llms.txt",
    "/openapi.json",
    "/sitemap.xml",
    "/favicon.ico",
    "/api/health",
)


async def get_json(gateway, path):
    answer = await gateway.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    return await answer.get_json()


async def slugs(gateway) -> list[str]:
    manifest = await get_json(gateway, MANIFEST)
    return [endpoint["slug"] for endpoint in manifest["availableEndpoints"]]


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
        documents = gateway.services.documents if is_served else []
        monkeypatch.setattr(type(gateway.services), "documents", documents)
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


# -- prices by request, and limits


class Priced:
    """Sells a picture priced by resolution, and a document priced by pages."""

    __name__ = "priced-plugin"

    @hookimpl
    def register_endpoints(self, register) -> None:
        provider = ScriptedProvider()
        picture = attrs.evolve(
            ENDPOINT,
            slug="steps",
            resolution=Choice(values=("1K", "2K", "4K"), default="1K"),
            price_steps=(
                PriceStep(price_units=usdc("0.05"), resolution="2K"),
                PriceStep(price_units=usdc("0.12"), resolution="4K"),
            ),
            max_prompt_chars=1500,
        )
        register(picture, provider)
        document = attrs.evolve(
            ENDPOINT,
            slug="pages",
            capability="document-parsing",
            required_fields=("fileBase64", "fileName"),
            file_extensions=(".pdf",),
            price_steps=(PriceStep(price_units=usdc("0.05"), min_pages=51),),
            max_pages=1200,
        )
        register(document, provider)
        by_page = {"slug": "each-page", "price_steps": (), "price_per_page": usdc("0.03")}
        register(attrs.evolve(document, **by_page), provider)


@pytest.fixture
async def priced(settings, provider):
    async with running(settings, provider, more=(Priced(),)) as gateway:
        yield gateway


async def entry_of(gateway, slug) -> dict:
    listed = (await get_json(gateway, MANIFEST))["availableEndpoints"]
    (found,) = [entry for entry in listed if entry["slug"] == slug]
    return found


async def section_of(gateway, slug) -> str:
    """Return the section about an endpoint in /llms.txt."""
    text = (await (await gateway.client.get("/llms.txt")).get_data()).decode()
    return re.search(rf"### {slug}: .*?(?=\n\n|\n###|\nWhere)", text, re.DOTALL)[0]


async def test_a_price_per_page_is_told_and_quoted(priced):
    entry = await entry_of(priced, "each-page")
    assert (entry["price"], entry["pricePerPage"]) == (0.02, 0.03)
    section = await section_of(priced, "each-page")
    assert "- 0.03 USDC for each page of the document, and 0.02 USDC at least" in section
    for pages, amount in ((1, "30000"), (7, "210000")):
        answer = await buy_parsing(priced, None, "each-page", pdf_of(pages))
        assert (await answer.get_json())["accepts"][0]["amount"] == amount


async def test_the_manifest_tells_price_steps_and_limits(priced):
    entry = await entry_of(priced, "steps")
    assert entry["price"] == 0.02
    assert entry["priceSteps"] == [
        {"price": 0.05, "resolution": "2K"},
        {"price": 0.12, "resolution": "4K"},
    ]
    assert entry["maxPromptChars"] == 1500
    entry = await entry_of(priced, "pages")
    assert entry["priceSteps"] == [{"price": 0.05, "minPages": 51}]
    assert entry["maxPages"] == 1200
    assert "optionalFields" not in entry
    assert "priceSteps" not in await entry_of(priced, "picture")


def price_of(entry: dict, wanted: dict) -> float:
    """Return the price of a request by the manifest alone."""
    default = entry["optionalFields"]["resolution"]["default"]
    asked = wanted.get("resolution", default)
    fitting = [step["price"] for step in entry["priceSteps"] if step["resolution"] == asked]
    return [entry["price"], *fitting][-1]


@pytest.mark.parametrize("wanted", [{}, *({"resolution": value} for value in ("1K", "2K", "4K"))])
async def test_the_manifest_and_the_402_give_the_price_that_a_transfer_must_pay(
    priced, payer, wanted
):
    await priced.services.payments.cutoff_block()
    units = round(price_of(await entry_of(priced, "steps"), wanted) * 10**6)
    body = {"slug": "steps", "prompt": "a boat", **wanted}
    answer = await priced.client.post("/api/x402/steps", json=body)
    assert (await answer.get_json())["accepts"][0]["amount"] == str(units)
    for paid, status in ((units - 1, 400), (units, 200)):
        answer = await priced.client.post(
            "/api/proxy-generate", json=body | {"txHash": payer.transfer(paid)}
        )
        assert answer.status_code == status


async def test_llms_txt_tells_price_steps_and_limits(priced):
    assert (await section_of(priced, "steps")).splitlines()[2:] == [
        "- capability: text-to-image; model: pixel",
        "- 0.05 USDC instead with resolution 2K",
        "- 0.12 USDC instead with resolution 4K",
        "- required fields: prompt",
        "- prompt: at most 1,500 characters",
        "- resolution (optional): 1K, 2K, 4K; default 1K",
    ]
    assert (await section_of(priced, "pages")).splitlines()[2:] == [
        "- capability: document-parsing; model: pixel",
        "- 0.05 USDC instead for a document of 51 pages or more",
        "- required fields: fileBase64, fileName",
        "- fileBase64: the file in Base64, up to 7.5 MB decoded; fileName ends in one of .pdf",
        "- at most 1,200 pages",
    ]
    assert "instead" not in await section_of(priced, "picture")
    text = (await (await priced.client.get("/llms.txt")).get_data()).decode()
    assert "the last one that fits a request is its price" in text


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


# -- health


async def test_health_counts_and_never_asks_the_chain(gateway, chain, payer):
    chain.stop()
    body = await get_json(gateway, "/api/health")
    assert body.pop("uptimeSeconds") >= 0
    assert isinstance(body.pop("version"), str)
    assert body == {
        "status": "ok",
        "network": "base",
        "tasks": {"queued": 0, "processing": 0},
        "endpoints": len(await slugs(gateway)),
    }


async def _ready(gateway) -> tuple[int, dict[str, bool]]:
    answer = await gateway.client.get("/api/ready")
    body = await answer.get_json()
    return answer.status_code, {row["name"]: row["ok"] for row in body["checks"]}


async def test_ready_tells_check_by_check(gateway, chain, clock):
    status, checks = await _ready(gateway)
    assert status == 200
    assert all(checks.values())
    assert {"database", "disk", "draining", "rpc"} <= set(checks)
    chain.stop()
    clock.offset_s += TTL_S
    status, checks = await _ready(gateway)
    assert (status, checks["rpc"], checks["database"]) == (200, False, True)
    gateway.services.readiness.is_draining = True
    status, checks = await _ready(gateway)
    assert (status, checks["draining"]) == (503, False)


async def test_ready_has_a_row_for_a_provider_that_is_off_sale(gateway):
    circuit = gateway.services.catalog["picture"].upstream.circuit
    circuit.trip("No credit.")
    answer = await gateway.client.get("/api/ready")
    body = await answer.get_json()
    (row,) = [row for row in body["checks"] if row["name"].startswith("provider")]
    assert row == {
        "name": "provider scripted",
        "ok": False,
        "stops": "picture, paper",
        "problem": "off sale",
    }
    assert (answer.status_code, body["ready"]) == (200, True)
    circuit.try_again()
    assert "provider scripted" not in (await _ready(gateway))[1]


async def test_the_operators_page_quotes_no_value_of_a_plugins_settings(settings, provider):
    values = {**settings.plugin_values, "acme_api_key": "MARKER-KEY"}
    keyed = attrs.evolve(settings, plugin_values=values)
    async with running(keyed, provider) as gateway:
        circuit = gateway.services.catalog["picture"].upstream.circuit
        circuit.trip("The key MARKER-KEY is not known." + "x" * 1000)
        await gateway.client.post("/admin/login", json={"password": "correct horse"})
        page = (await (await gateway.client.get("/admin/ready")).get_data()).decode()
    assert "MARKER" not in page
    assert "The key … is not known." in page
    assert "x" * 500 not in page


async def test_a_gateway_without_disk_is_not_ready(settings, provider):
    async with running(attrs.evolve(settings, min_free_disk_mb=10**9), provider) as gateway:
        status, checks = await _ready(gateway)
    assert (status, checks["disk"]) == (503, False)


# -- errors and headers of every response


@each(
    "path",
    [
        "/play",
        "/play/",
        "/web/",
        "/nothing",
        "/api",
        "/api/x402",
        "/api/x402/",
        "/api/task/",
        "/files/",
        "/%00",
        "/api/health/",
        "/api//health",
    ],
)
async def test_an_unknown_path_is_a_json_404(gateway, path):
    answer = await gateway.client.get(path)
    assert answer.status_code == 404
    body = await answer.get_json()
    assert body["code"] == "NOT_FOUND"
    assert body["error"]


@each(
    "method, path, allowed",
    [
        ("PUT", "/api/x402/picture", "POST"),
        ("GET", "/api/proxy-generate", "POST"),
        ("POST", "/api/task/x", "GET"),
        ("DELETE", "/api/task/x", "GET"),
        ("POST", MANIFEST, "GET"),
        ("PUT", "/api/health", "GET"),
        ("GET", "/admin/login", "POST"),
    ],
)
async def test_a_wrong_method_is_a_json_405(gateway, method, path, allowed):
    answer = await gateway.client.open(path, method=method)
    assert answer.status_code == 405
    assert (await answer.get_json())["code"] == "METHOD_NOT_ALLOWED"
    assert allowed in answer.headers["Allow"]


async def test_what_goes_wrong_inside_stays_inside(gateway, monkeypatch):
    async def fail(_) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(type(gateway.services.store.queue), "depth", fail)
    answer = await gateway.client.get("/api/health")
    assert answer.status_code == 500
    assert await answer.get_json() == {"error": "Internal error", "code": "INTERNAL_ERROR"}
    assert answer.headers["Access-Control-Allow-Origin"] == "*"


ALLOWED = (
    "Content-Type, X-PAYMENT, PAYMENT-SIGNATURE, Idempotency-Key, Access-Control-Expose-Headers"
)
EXPOSED = "PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, Retry-After"


def _words(header: str) -> set[str]:
    return {word.strip().lower() for word in header.split(",")}


@each(
    "path", ["/api/x402/picture", "/api/proxy-generate", "/api/task/x", MANIFEST, "/openapi.json"]
)
async def test_a_browser_may_ask_from_anywhere(gateway, path):
    origin = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    answer = await gateway.client.options(path, headers=origin)
    assert answer.status_code in (200, 204)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert _words(answer.headers["Access-Control-Allow-Headers"]) >= _words(ALLOWED)
    assert {"get", "post"} <= _words(answer.headers["Access-Control-Allow-Methods"])
    answer = await gateway.client.post(path, headers=origin)
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert _words(answer.headers["Access-Control-Expose-Headers"]) >= _words(EXPOSED)


@pytest.mark.parametrize("path", ["/admin", "/admin/login", "/admin/nothing"])
async def test_the_admin_pages_are_for_no_other_origin(gateway, path):
    origin = {"Origin": "https://evil.example"}
    for answer in (
        await gateway.client.options(path, headers=origin),
        await gateway.client.get(path, headers=origin),
        await gateway.client.post(path, headers=origin, json={"password": "x"}),
    ):
        assert not [
            name for name, _ in answer.headers.items() if name.lower().startswith("access-control")
        ]


@each("path", [*PUBLIC, "/admin", "/nothing", "/api/x402/picture"])
async def test_every_answer_has_an_id_and_is_not_sniffed(gateway, path):
    first, second = [await gateway.client.get(path) for _ in range(2)]
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
    assert "Strict-Transport-Security" not in first.headers


async def test_a_plain_request_id_is_kept_and_an_odd_one_is_not(gateway):
    for given, kept in (("abc-123", True), ("a b", False), ("x" * 65, False), ("a\u00e9", False)):
        answer = await gateway.client.get("/api/health", headers={"X-Request-Id": given})
        assert (answer.headers["X-Request-Id"] == given) == kept


async def test_over_https_browsers_are_told_to_stay_there(settings, provider):
    secure = attrs.evolve(settings, base_url="https://gateway.example.com")
    async with running(secure, provider) as gateway:
        for path in (*PUBLIC, "/nothing"):
            headers = (await gateway.client.get(path)).headers
            assert "max-age=" in headers["Strict-Transport-Security"]
