"""Data of documents by Mistral's annotations, as its SDK describes them."""

import base64
import json

import attrs
import pytest
from document_sales import document, pdf_of, selling
from test_mistral import KEY, PATH, Mistral
from vendor_site import Vendor

import gateway_mistral
from gateway import InvalidInput, ResultMissing, SettingsError, SubmitUncertain
from tests.conftest import running

SLUG = "mistral-extract"
QUESTION = "Wann ist sie fällig?"
SCHEMA = {"type": "object", "properties": {"due": {"type": "string"}}}
FOUND = '{"due": "2026-10-30"}'
READING = {
    "pages": [{"index": n, "markdown": "text"} for n in range(3)],
    "model": "mistral-ocr-4-1",
    "document_annotation": FOUND,
    "usage_info": {"pages_processed": 3},
}


class Extraction(Mistral):
    slug = SLUG
    request = attrs.evolve(document(), prompt=QUESTION)

    def on_sale(self, **values):
        return Vendor.on_sale(self, **values)


@pytest.fixture
def api(httpserver):
    return Extraction(httpserver)


@pytest.mark.parametrize("pages", range(1, 9))
def test_it_is_sold_above_the_bill_even_if_both_rates_are_billed(api, pages):
    """docs.mistral.ai names 4 US dollars for 1,000 pages and 5 for 1,000 annotated ones."""
    endpoint, _ = api.on_sale()[SLUG]
    assert endpoint.capability == "document-extraction"
    assert endpoint.required_fields == ("prompt", "fileBase64", "fileName")
    assert endpoint.max_pages == 8
    assert endpoint.page_cost_micros == 5_000
    assert endpoint.price_of(document(pages=pages)) >= 1.2 * 9_000 * pages


def test_the_operator_decides_about_prices_and_pages(api):
    endpoint, _ = api.on_sale(
        mistral_extract_price="0.5",
        mistral_extract_page_prices="2:0.9",
        mistral_extract_max_pages="12",
        mistral_extract_page_cost="0.01",
        mistral_extensions=".pdf",
    )[SLUG]
    assert [endpoint.price_of(document(pages=n)) for n in (1, 2)] == [500_000, 900_000]
    assert (endpoint.max_pages, endpoint.page_cost_micros) == (12, 10_000)
    assert endpoint.file_extensions == (".pdf",)


@pytest.mark.parametrize(
    ("name", "value"),
    [("price", "free"), ("page_prices", "6=1"), ("page_cost", "cheap"), ("max_pages", "0")],
)
def test_a_wrong_setting_is_named_with_an_example(api, name, value):
    with pytest.raises(SettingsError) as wrong:
        api.on_sale(**{f"mistral_extract_{name}": value})
    variable = f"GATEWAY_MISTRAL_EXTRACT_{name.upper()}"
    assert str(wrong.value).startswith(f"{variable} ")
    assert f"Example: {variable}=" in str(wrong.value)


async def test_a_schema_is_sent_as_the_buyer_wrote_it(api):
    api.answers("POST", PATH, (200, READING))
    asked = attrs.evolve(Extraction.request, prompt=json.dumps(SCHEMA))
    result = await api.submit(asked)
    assert result.text == FOUND
    (seen,) = api.seen
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.json["document_annotation_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "document", "schema": SCHEMA, "strict": False},
    }
    assert "document_annotation_prompt" not in seen.json
    assert (seen.json["model"], seen.json["pages"]) == ("mistral-ocr-4-1", "0-2")
    assert not seen.json["include_blocks"]


async def test_a_question_goes_beside_a_schema_of_an_answer(api):
    """mistralai 3.7.0: a prompt is allowed only with a format."""
    api.answers("POST", PATH, (200, READING))
    await api.submit()
    (seen,) = api.seen
    assert seen.json["document_annotation_prompt"] == QUESTION
    form = seen.json["document_annotation_format"]["json_schema"]
    assert set(form["schema"]["properties"]) == {"answer", "found", "quotes"}


async def test_reading_asks_for_no_data(api):
    api.answers("POST", PATH, (200, READING))
    await api.submit(document(), slug="mistral-ocr")
    assert not [name for name in api.seen[0].json if "annotation" in name]


@pytest.mark.parametrize(("page_cost", "micros"), [("", None), ("0.007", 21_000)])
async def test_the_cost_is_that_of_annotated_pages(api, page_cost, micros):
    api.answers("POST", PATH, (200, READING))
    result = await api.submit(mistral_extract_page_cost=page_cost)
    assert (result.cost_micros, result.is_cost_told) == (micros, False)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((200, READING | {"document_annotation": None}), ResultMissing),
        ((200, READING | {"document_annotation": ""}), ResultMissing),
        ((200, READING | {"pages": []}), SubmitUncertain),
        ((400, {"type": "invalid_request_json_schema", "code": "3300"}), InvalidInput),
    ],
)
async def test_what_brings_no_data_is_told_apart(api, answer, kind):
    api.answers("POST", PATH, answer)
    with pytest.raises(kind):
        await api.submit()


async def test_data_is_bought_as_json_and_a_cut_answer_is_not_sold(api, settings, payer):
    api.answers("GET", "/v1/models", (200, {}))
    api.answers("POST", PATH, (200, READING), (200, READING | {"document_annotation": FOUND[:-2]}))
    values = {"mistral_api_key": KEY, "mistral_base_url": f"{api.url}/v1"}
    shop, options = selling(settings, gateway_mistral, **values)
    body = {"prompt": json.dumps(SCHEMA), "fileName": "a.pdf"}
    async with running(shop, **options) as gateway:
        tasks = []
        for _ in range(2):
            answer = await gateway.client.post(
                f"/api/x402/{SLUG}",
                json=body | {"fileBase64": encoded(pdf_of(pages=4))},
                headers={"X-PAYMENT": payer.header(100_000)},
            )
            tasks.append(await gateway.wait((await answer.get_json())["taskId"]))
    sold, cut = tasks
    assert sold["result"]["text"] == FOUND
    assert sold["result"]["outputs"][0]["mimeType"] == "application/json"
    assert (cut["status"], cut["details"]) == ("failed", "provider_error")
    assert [one.json["pages"] for one in api.asked("POST")] == ["0-3", "0-3"]


def encoded(data):
    return base64.b64encode(data).decode()
