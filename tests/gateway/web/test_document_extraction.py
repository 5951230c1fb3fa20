"""Data is extracted from a document for a buyer: priced by pages, checked before the payment."""

import base64
import json

import pytest

from gateway import Endpoint, Output, PriceStep, Result, hookimpl, usdc
from tests.cases import each
from tests.conftest import nothing_charged, running
from tests.plugins.gateway_mcp.app.agent import Agent
from tests.proof.providers.documents_pdf import Page, write

EXTRACT = Endpoint(
    slug="extract",
    title="An extraction",
    description="Data of a document.",
    model="reader-1",
    provider="scripted",
    capability="document-extraction",
    price_units=usdc("0.02"),
    price_steps=(PriceStep(price_units=usdc("0.05"), min_pages=3),),
    required_fields=("prompt", "fileBase64", "fileName"),
    file_extensions=(".pdf", ".txt"),
    max_pages=5,
)
QUESTION = "When is it due?"
SCHEMA = json.dumps({"type": "object", "properties": {"due": {"type": "string"}}})
FOUND = '{"due": "2026-10-30", "total": 12.5}'


def pdf_of(pages):
    return write([Page() for _ in range(pages)])


def body(data=None, name="a.pdf", prompt=QUESTION, **fields) -> dict:
    encoded = base64.b64encode(pdf_of(1) if data is None else data).decode()
    return {"prompt": prompt, "fileBase64": encoded, "fileName": name, **fields}


class ExtractPlugin:
    __name__ = "extract-plugin"

    def __init__(self, provider) -> None:
        self.provider = provider

    @hookimpl
    def register_endpoints(self, register, settings) -> None:
        register(EXTRACT, self.provider)


@pytest.fixture
async def desk(settings, provider, chain, clock):
    provider.script = [Result(text=FOUND) for _ in range(3)]
    async with running(settings, more=[ExtractPlugin(provider)], now=clock) as started:
        started.chain = chain
        await started.services.payments.cutoff_block()
        yield started


async def ask(desk, sent, header=None):
    headers = {"X-PAYMENT": header} if header else {}
    return await desk.client.post("/api/x402/extract", json=sent, headers=headers)


async def buy(desk, payer, sent, units=20_000):
    answer = await ask(desk, sent, payer.header(units))
    assert answer.status_code == 200, await answer.get_json()
    return await desk.wait((await answer.get_json())["taskId"])


@pytest.mark.parametrize("prompt", [QUESTION, SCHEMA], ids=["question", "schema"])
async def test_the_result_is_json_as_text_and_as_a_file(desk, payer, provider, prompt):
    task = await buy(desk, payer, body(prompt=prompt))
    assert (task["status"], task["capability"]) == ("completed", "document-extraction")
    assert task["result"]["text"] == FOUND
    (output,) = task["result"]["outputs"]
    assert output["mimeType"] == "application/json"
    file = await desk.client.get(output["url"].removeprefix(desk.services.settings.base_url))
    assert (file.mimetype, await file.get_data()) == ("application/json", FOUND.encode())
    assert ".json" in file.headers["Content-Disposition"]
    (request,) = provider.requests
    assert (request.prompt, request.attachment.name, request.pages) == (prompt, "a.pdf", 1)


async def test_its_price_is_that_of_its_pages(desk, payer):
    for pages, units in ((2, "20000"), (3, "50000")):
        quoted = await (await ask(desk, body(pdf_of(pages)))).get_json()
        assert quoted["accepts"][0]["amount"] == units
    assert (await buy(desk, payer, body(pdf_of(3)), 50_000))["status"] == "completed"


async def test_a_transfer_pays_for_it_too(desk, payer):
    sent = body(slug="extract", txHash=payer.transfer(20_000), prompt=SCHEMA)
    started = await (await desk.client.post("/api/proxy-generate", json=sent)).get_json()
    assert (await desk.wait(started["taskId"]))["result"]["text"] == FOUND


NO_SCHEMA = "prompt begins as JSON, but is no JSON Schema of an object that can be used"
REFUSED = {
    "no prompt": ({"prompt": None}, "prompt is missing."),
    "no file": ({"fileBase64": None}, "fileBase64 is missing."),
    "half a schema": (
        {"prompt": SCHEMA[:-1]},
        f"{NO_SCHEMA}: it is not whole, valid JSON.",
    ),
    "an address": (
        {"prompt": SCHEMA.replace('"type": "string"', '"$ref": "https://a.example"')},
        f'{NO_SCHEMA}: a "$ref" leads to none of its own "$defs".',
    ),
    "too long": (
        body(pdf_of(6)),
        "The document has 6 pages; this endpoint takes up to 5.",
    ),
}


@each("fault", list(REFUSED))
@each("is_paid", [False, True])
async def test_a_doomed_request_is_refused_in_one_sentence_and_nothing_is_charged(
    desk, payer, chain, fault, is_paid
):
    changes, sentence = REFUSED[fault]
    async with nothing_charged(desk, chain):
        answer = await ask(desk, body() | changes, payer.header() if is_paid else None)
        reply = await answer.get_json()
    assert (answer.status_code, reply["code"]) == (400, "VALIDATION_ERROR")
    assert reply["error"] == sentence


@pytest.mark.parametrize(
    "made",
    [
        Result(text="It is due on 30 October."),
        Result(text="[1, 2]"),
        Result(text='{"due": '),
        Result(text='{"due": NaN}'),
        Result(text="{" + '"a":{' * 50_000),
        Result(text=""),
        Result(),
        Result(outputs=(Output(data=b"{}", media_type="application/json"),)),
        Result(text='{"a": "' + "x" * 5_000_000 + '"}'),
    ],
    ids=["words", "list", "half", "NaN", "deep", "empty", "nothing", "a file", "long"],
)
async def test_what_is_no_json_object_is_not_sold(desk, payer, provider, made):
    provider.script = [made]
    task = await buy(desk, payer, body())
    assert (task["status"], task["details"]) == ("failed", "provider_error")
    assert task["refund"] is not None


async def test_every_document_for_agents_offers_it(desk):
    manifest = await (await desk.client.get("/.well-known/agent-manifest.json")).get_json()
    assert "document-extraction" in manifest["agentCapabilities"]
    (listed,) = [one for one in manifest["availableEndpoints"] if one["slug"] == "extract"]
    assert listed["requiredFields"] == ["prompt", "fileBase64", "fileName"]
    api = await (await desk.client.get("/openapi.json")).get_json()
    asked = api["paths"]["/api/x402/extract"]["post"]["requestBody"]["content"]["application/json"]
    assert set(asked["schema"]["required"]) == {"prompt", "fileBase64", "fileName"}
    assert "a JSON Schema of type object" in asked["schema"]["properties"]["prompt"]["description"]
    assert (await ask(desk, asked["example"])).status_code == 402
    text = await (await desk.client.get("/llms.txt")).get_data(as_text=True)
    assert "capability: document-extraction" in text
    assert "a question in words, or a JSON Schema of type object" in text


async def test_an_agent_buys_it_by_its_tool_and_reads_the_json(desk, payer):
    agent = Agent(desk)
    bought = await agent.call("extract", payer.payload(20_000, version=2), **body())
    assert bought["structuredContent"]["result"]["text"] == FOUND
    assert FOUND in [part.get("text") for part in bought["content"]]
    refused = await agent.call("extract", **body(prompt="{"))
    assert "no JSON Schema" in json.loads(refused["content"][0]["text"])["error"]


async def test_its_page_asks_for_both_and_has_ideas_for_either(desk):
    page = await (await desk.client.get("/play/extract")).get_data(as_text=True)
    assert '<label class="label" for="file">Document</label>' in page
    ideas = [part.split('"')[0] for part in page.split('data-idea="')[1:]]
    assert len(ideas) == 2
    for idea in ideas:
        prompt = idea.replace("&#34;", '"')
        assert (await ask(desk, body(prompt=prompt))).status_code == 402
