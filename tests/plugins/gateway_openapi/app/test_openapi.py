"""/openapi.json: valid, true about every route, and rebuilt once per change."""

import json
from collections import Counter

import attrs
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from gateway.domain.description import request_example
from gateway_openapi import document as openapi
from tests.cases import each
from tests.conftest import PNG, buy, running
from tests.gateway.web.descriptions import BASE, Priced

PATH = "/openapi.json"


async def described(gateway) -> dict:
    answer = await gateway.client.get(PATH)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    return await answer.get_json()


def resolve(document: dict, node: dict) -> dict:
    """Follow a reference within the document."""
    while "$ref" in node:
        target = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def operation_of(document: dict, path: str) -> dict:
    ((_, operation),) = document["paths"][path].items()
    return operation


def check_answer(document: dict, path: str, status: int, body: dict) -> None:
    """Assert that the document describes this response of a path, and its body."""
    response = resolve(document, operation_of(document, path)["responses"][str(status)])
    schema = response["content"]["application/json"]["schema"]
    whole = {**schema, "components": document["components"]}
    Draft202012Validator(whole).validate(body)


async def test_it_is_valid_openapi(gateway, settings, provider):
    OpenAPIV31SpecValidator(await described(gateway)).validate()
    full = attrs.evolve(
        settings,
        sandbox=True,
        contact_email="operator@example.com",
        ownership_proofs=("0xab",),
        require_payer_signature=True,
        plugin_values={"openai_api_key": "k", "gemini_api_key": "k", "mistral_api_key": "k"},
    )
    async with running(full, provider, more=(Priced(),)) as other:
        document = await described(other)
        OpenAPIV31SpecValidator(document).validate()
        assert len(document["paths"]) == len(list(other.services.catalog)) + 2


async def test_a_gateway_that_sells_nothing_now_is_valid_openapi_too(gateway):
    for upstream in gateway.services.catalog.upstreams():
        upstream.circuit.trip("No credit.")
    document = await described(gateway)
    OpenAPIV31SpecValidator(document).validate()
    assert list(document["paths"]) == ["/api/task/{taskId}"]


async def test_the_price_is_fixed_or_has_its_bounds(settings, provider):
    async with running(settings, provider, more=(Priced(),)) as gateway:
        document = await described(gateway)
    prices = {
        path: operation["post"]["x-payment-info"]["price"]
        for path, operation in document["paths"].items()
        if "post" in operation
    }
    assert prices["/api/x402/picture"] == {"mode": "fixed", "currency": "USD", "amount": "0.02"}
    dynamic = {"mode": "dynamic", "currency": "USD"}
    assert prices["/api/x402/steps"] == dynamic | {"min": "0.02", "max": "0.12"}
    assert prices["/api/x402/pages"] == dynamic | {"min": "0.02", "max": "0.05"}
    assert prices["/api/x402/each-page"] == dynamic | {"min": "0.02", "max": "36"}
    assert prices["/api/proxy-generate"] == dynamic | {"min": "0.01", "max": "36"}


@pytest.mark.parametrize(
    ("units", "dollars"),
    [(1, "0.000001"), (20_000, "0.02"), (10_000_000, "10"), (1_500_000, "1.5")],
)
def test_amounts_are_plain_decimals(units, dollars):
    assert openapi._dollars(units) == dollars


async def test_every_operation_says_that_it_needs_no_key(gateway):
    for operations in (await described(gateway))["paths"].values():
        for operation in operations.values():
            assert operation["security"] == []
            assert operation["summary"]


async def test_operation_ids_are_unique(gateway):
    paths = (await described(gateway))["paths"].values()
    ids = Counter(one["operationId"] for operations in paths for one in operations.values())
    assert max(ids.values()) == 1


async def test_who_runs_the_gateway_is_told_by_settings(gateway, settings, provider):
    info = (await described(gateway))["info"]
    assert info["contact"] == {"name": "Generation Gateway", "url": BASE}
    assert "x-agentcash-provenance" not in await described(gateway)
    named = attrs.evolve(
        settings, name="Painter", contact_email="me@example.com", ownership_proofs=("0xab", "0xcd")
    )
    async with running(named, provider) as other:
        document = await described(other)
    contact = {"name": "Painter", "url": BASE, "email": "me@example.com"}
    assert document["info"]["contact"] == contact
    proofs = {"ownershipProofs": ["0xab", "0xcd"]}
    assert document["x-agentcash-provenance"] == document["x-discovery"] == proofs
    assert document["x-agentcash-guidance"] == {"llmsTxtUrl": f"{BASE}/llms.txt"}
    assert document["x-service-info"]["categories"] == ["ai", "document-parsing", "text-to-image"]


# -- responses match the document


async def test_a_purchase_answers_as_described(gateway, payer):
    document, path = await described(gateway), "/api/x402/picture"
    for body in ({"prompt": "a boat"}, {"prompt": 5}):
        answer = await gateway.client.post(path, json=body)
        check_answer(document, path, answer.status_code, await answer.get_json())
    header = payer.header()
    started = await (await buy(gateway, header)).get_json()
    check_answer(document, path, 200, started)
    conflict = await gateway.client.post(
        path,
        json={"prompt": "x"},
        headers={"X-PAYMENT": payer.header(), "Idempotency-Key": "one"},
    )
    assert conflict.status_code == 200
    conflict = await gateway.client.post(
        path,
        json={"prompt": "y"},
        headers={"X-PAYMENT": payer.header(), "Idempotency-Key": "one"},
    )
    check_answer(document, path, 409, await conflict.get_json())
    task = "/api/task/{taskId}"
    done = await gateway.wait(started["taskId"])
    assert done["result"]["outputs"][0]["bytes"] == len(PNG)
    check_answer(document, task, 200, done)
    for query in ("nothing", "nothing?wait=99"):
        answer = await gateway.client.get(f"/api/task/{query}")
        check_answer(document, task, answer.status_code, await answer.get_json())


async def test_a_direct_purchase_answers_as_described(gateway, payer):
    document, path = await described(gateway), "/api/proxy-generate"
    body = {"slug": "picture", "prompt": "a boat", "txHash": payer.transfer(20_000)}
    for expected in (200, 400):
        answer = await gateway.client.post(path, json=body)
        assert answer.status_code == expected
        check_answer(document, path, expected, await answer.get_json())
    answer = await gateway.client.post(path, json=body | {"slug": "none"})
    check_answer(document, path, 404, await answer.get_json())


async def test_every_example_gets_its_price(gateway):
    for endpoint in gateway.services.catalog:
        path = f"/api/x402/{endpoint.slug}"
        example = operation_of(await described(gateway), path)["requestBody"]["content"]
        body = example["application/json"]["example"]
        assert body == request_example(endpoint)
        answer = await gateway.client.post(path, json=body)
        assert answer.status_code == 402, await answer.get_json()


# -- caching

DOCUMENTS = [
    PATH,
    "/.well-known/x402.json",
    "/.well-known/agent-registration.json",
    "/robots.txt",
    "/favicon.ico",
]


@each("path", DOCUMENTS)
async def test_a_client_that_has_the_document_gets_304(gateway, path):
    first = await gateway.client.get(path)
    tag = first.headers["ETag"]
    assert first.headers["Cache-Control"].startswith("public, max-age=")
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = await gateway.client.get(path, headers={"If-None-Match": known})
        assert again.status_code == 304
        assert await again.get_data() == b""
        assert again.headers["ETag"] == tag
    other = await gateway.client.get(path, headers={"If-None-Match": '"other"'})
    assert await other.get_data() == await first.get_data()


async def test_a_change_of_what_is_on_sale_changes_the_tag(gateway):
    before = (await gateway.client.get(PATH)).headers["ETag"]
    circuit = gateway.services.catalog["picture"].upstream.circuit
    circuit.trip("No credit.")
    assert (await gateway.client.get(PATH)).headers["ETag"] != before
    circuit.try_again()
    assert (await gateway.client.get(PATH)).headers["ETag"] == before


async def test_it_is_made_once_for_each_change_of_what_is_on_sale(gateway, monkeypatch):
    made = Counter()

    def count(endpoint, *, callbacks):
        made[endpoint.slug] += 1
        return {"type": "object"}

    monkeypatch.setattr(openapi, "request_schema", count)
    circuit = gateway.services.catalog["picture"].upstream.circuit
    circuit.trip("No credit.")
    circuit.try_again()
    for _ in range(50):
        assert (await gateway.client.get(PATH)).status_code == 200
    assert set(made.values()) == {1}
    assert made["picture"] == 1


async def test_a_description_in_any_characters_is_json(gateway, settings, provider):
    odd = attrs.evolve(settings, name='"</script>\u2028\U0001f600')
    async with running(odd, provider) as other:
        text = (await (await other.client.get(PATH)).get_data()).decode()
    assert json.loads(text)["info"]["title"] == odd.name


@pytest.mark.parametrize(
    ("webhooks", "base_url", "named"),
    [
        ("on", "https://gateway.test", True),
        ("off", "https://gateway.test", False),
        # Only URLs of this machine are accepted, which the schema does not express.
        ("local", "http://127.0.0.1:8402", False),
    ],
)
async def test_a_callback_is_named_where_every_https_address_is_taken(
    settings, provider, webhooks, base_url, named
):
    changed = settings.changed(webhooks=webhooks, base_url=base_url)
    async with running(changed, provider) as gateway:
        paths = (await (await gateway.client.get(PATH)).get_json())["paths"]
    for path in ("/api/x402/picture", "/api/proxy-generate"):
        body = paths[path]["post"]["requestBody"]["content"]["application/json"]
        assert ("callbackUrl" in body["schema"]["properties"]) is named
