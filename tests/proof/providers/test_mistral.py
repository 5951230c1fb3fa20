"""Mistral OCR against responses of docs.mistral.ai and its SDK."""

import base64

import pytest
from document_sales import PDF, buy_parsing, count, document, pdf_of, selling
from vendor_site import Vendor, on_sale, raising

import gateway_mistral
from gateway import (
    AccountProblem,
    Closing,
    InvalidInput,
    Polling,
    Probing,
    RateLimited,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from tests.conftest import running

KEY = "mk-never-to-be-seen"
PATH = "/v1/ocr"


def reading(*texts):
    """Return a response with the text of each page."""
    return {
        "pages": [
            {
                "index": index,
                "markdown": text,
                "images": [],
                "dimensions": {"dpi": 200, "height": 2200, "width": 1700},
            }
            for index, text in enumerate(texts)
        ],
        "model": "mistral-ocr-4-1",
        "document_annotation": None,
        "usage_info": {"pages_processed": len(texts), "doc_size_bytes": 30},
    }


READING = reading("# Report", "", "The end.")


class Mistral(Vendor):
    plugin = gateway_mistral
    request = document()

    def settings(self):
        return {
            "mistral_api_key": KEY,
            "mistral_base_url": f"{self.url}/v1/",
            "mistral_page_cost": "0.004",
        }

    def on_sale(self, **values):
        found = super().on_sale(**values)
        return {gateway_mistral.PARSER.slug: found["mistral-ocr"]}


@pytest.fixture
def api(httpserver):
    return Mistral(httpserver)


# -- offers


def test_nothing_is_on_sale_without_a_key():
    assert on_sale(gateway_mistral) == {}


def test_a_document_is_priced_by_its_pages_and_capped(api):
    ((endpoint, provider),) = api.on_sale().values()
    prices = [endpoint.price_of(document(pages=n)) for n in (1, 5, 6, 20, 21, 50, 51, 100)]
    assert prices == [30_000, 30_000, 120_000, 120_000, 300_000, 300_000, 600_000, 600_000]
    assert endpoint.max_pages == 100
    assert endpoint.required_fields == ("fileBase64", "fileName")
    assert endpoint.capability == "document-parsing"
    assert ".docx" not in endpoint.file_extensions
    assert isinstance(provider, Probing)
    assert isinstance(provider, Closing)
    assert not isinstance(provider, Polling)
    assert not provider.traits.idempotent_submit


def test_a_model_that_mistral_has_retired_is_not_sold(api):
    ((endpoint, _),) = api.on_sale(mistral_model="mistral-ocr-4-0").values()
    assert endpoint.retires == "2026-09-30"
    ((endpoint, _),) = api.on_sale().values()
    assert endpoint.retires is None


@pytest.mark.parametrize("pages", [1, 5, 6, 20, 21, 50, 51, 100])
def test_a_document_of_any_length_is_sold_for_more_than_it_costs(api, pages):
    # docs.mistral.ai (a stored copy, 2026-11): OCR 4.1 costs 4 US dollars per 1,000 pages.
    ((endpoint, _),) = api.on_sale().values()
    assert endpoint.model == "mistral-ocr-4-1"
    assert endpoint.price_of(document(pages=pages)) >= 1.2 * 4_000 * pages


def test_the_operator_decides_about_prices_endings_pages_and_places(api):
    ((endpoint, provider),) = api.on_sale(
        mistral_price="0.5",
        mistral_page_prices="10:0.9,2:0.7",
        mistral_max_pages="12",
        mistral_extensions="PDF, docx",
        mistral_max_concurrency="2",
        mistral_model="mistral-ocr-2505",
    ).values()
    prices = [endpoint.price_of(document(pages=n)) for n in (1, 2, 9, 10)]
    assert prices == [500_000, 700_000, 700_000, 900_000]
    assert endpoint.max_pages == 12
    assert endpoint.file_extensions == (".pdf", ".docx")
    assert endpoint.model == "mistral-ocr-2505"
    assert provider.traits.max_concurrency == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("price", "free"),
        ("page_prices", "6=0.06"),
        ("page_prices", "0:0.06"),
        ("page_prices", "six:0.06"),
        ("page_prices", "6:-1"),
        ("page_cost", "cheap"),
        ("max_pages", "0"),
        ("extensions", ".exe"),
        ("extensions", ""),
        ("max_concurrency", "-1"),
        ("base_url", "api.mistral.ai"),
    ],
)
def test_a_wrong_setting_is_named_with_an_example(api, name, value):
    with pytest.raises(SettingsError) as wrong:
        api.on_sale(**{f"mistral_{name}": value})
    sentence = str(wrong.value)
    assert sentence.startswith(f"GATEWAY_MISTRAL_{name.upper()} ")
    assert f"Example: GATEWAY_MISTRAL_{name.upper()}=" in sentence


# -- requests


async def test_one_document_is_read_and_its_pages_are_joined(api):
    api.answers("POST", PATH, (200, READING))
    result = await api.submit()
    assert result.text == "# Report\n\n\n\nThe end."
    assert result.outputs == ()
    assert result.cost_micros == 12_000
    (seen,) = api.seen
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.json == {
        "model": "mistral-ocr-4-1",
        "document": {
            "type": "document_url",
            "document_url": f"data:application/pdf;base64,{base64.b64encode(PDF).decode()}",
        },
        "include_image_base64": False,
        "include_blocks": False,
        "pages": "0-2",
    }


async def test_a_pdf_of_unknown_length_is_read_up_to_the_longest_that_is_sold(api):
    api.answers("POST", PATH, (200, READING))
    await api.submit(document(pages=None), mistral_max_pages="7")
    assert api.seen[0].json["pages"] == "0-6"


async def test_a_picture_is_sent_as_one(api):
    api.answers("POST", PATH, (200, READING))
    await api.submit(document("scan.JPG", b"jpeg", pages=None))
    assert api.seen[0].json["document"] == {
        "type": "image_url",
        "image_url": f"data:image/jpeg;base64,{base64.b64encode(b'jpeg').decode()}",
    }
    assert "pages" not in api.seen[0].json


async def test_a_model_before_ocr_4_is_not_sent_the_field_that_it_may_not_know(api):
    # mistralai 3.7.0 (PyPI, 2026-11-22) documents `include_blocks` for OCR 4 only.
    api.answers("POST", PATH, (200, READING))
    await api.submit(mistral_model="mistral-ocr-2512")
    assert "include_blocks" not in api.seen[0].json


async def test_of_an_office_file_no_pictures_are_asked_for(api):
    api.answers("POST", PATH, (200, READING))
    await api.submit(document("letter.docx", b"PK", pages=None), mistral_extensions=".docx")
    assert api.seen[0].json["image_limit"] == 0


async def test_an_office_file_is_read_no_further_than_was_paid(api):
    for pages, asked in ((4, "0-3"), (None, "0-99")):
        api.answers("POST", PATH, (200, READING))
        await api.submit(document("a.pptx", b"PK", pages=pages), mistral_extensions=".pptx")
        assert api.seen[-1].json["pages"] == asked


async def test_without_a_price_per_page_the_cost_is_not_known(api):
    api.answers("POST", PATH, (200, READING))
    assert (await api.submit(mistral_page_cost="")).cost_micros is None


async def test_a_strange_usage_costs_nobody_the_text(api):
    api.answers("POST", PATH, (200, READING | {"usage_info": {"pages_processed": "three"}}))
    result = await api.submit()
    assert result.text
    assert result.cost_micros is None


async def test_a_blank_page_is_an_empty_text(api):
    api.answers("POST", PATH, (200, {"pages": [{"index": 0, "markdown": ""}]}))
    result = await api.submit()
    assert result.text == ""
    assert result.cost_micros is None


async def test_a_large_answer_is_read_as_well(api):
    pages = [{"markdown": "é" * 100_000}] * 12
    api.answers("POST", PATH, (200, {"pages": pages}))
    assert len((await api.submit()).text) == 12 * 100_000 + 11 * 2


# -- errors


def error(kind, code, message="What the buyer sent is quoted here."):
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


ERRORS = {
    "broken file": (400, error("document_parser_invalid_file", "3740"), InvalidInput),
    "too many pages": (400, error("document_parser_too_many_pages", "3730"), InvalidInput),
    "bad file": (400, error("invalid_request_file", "3310"), InvalidInput),
    "unreadable file": (422, error("invalid_file", "1901"), InvalidInput),
    "no data URI": (422, {"detail": [{"type": "value_error", "loc": ["body"]}]}, InvalidInput),
    "too large": (413, "<html>", InvalidInput),
    "no such model": (400, error("invalid_model", "1500"), AccountProblem),
    "no model": (422, {"detail": [{"type": "missing", "loc": ["body", "model"]}]}, AccountProblem),
    "wrong key": (401, {"detail": "Unauthorized"}, AccountProblem),
    "no credit": (402, {"message": "Payment required"}, AccountProblem),
    "forbidden": (403, {}, AccountProblem),
    "wrong address": (404, {"message": "no Route matched with those values"}, AccountProblem),
    "too fast": (429, error("service_tier_capacity_exceeded", "3505"), RateLimited),
    "broken": (500, error("internal_server_error", "3000"), SubmitUncertain),
    "down": (503, "<html>", SubmitUncertain),
    "success without JSON": (200, "<html>", SubmitUncertain),
    "success without pages": (200, {"model": "m"}, SubmitUncertain),
    "success with no page": (200, {"pages": []}, SubmitUncertain),
    "success with a page of nothing": (200, {"pages": [{"index": 0}]}, SubmitUncertain),
    "success with nonsense": (200, "[1]", SubmitUncertain),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_an_error_has_its_class_and_nothing_is_sent_again(api, name):
    status, body, kind = ERRORS[name]
    api.answers("POST", PATH, (status, body))
    with pytest.raises(kind) as raised:
        await api.submit()
    assert type(raised.value) is kind
    assert count(api, "POST", PATH) == 1
    assert KEY not in str(raised.value)
    assert "buyer" not in str(raised.value)


async def test_a_wait_that_is_asked_for_is_kept(api):
    api.answers("POST", PATH, (429, {}, {"Retry-After": "7"}))
    with pytest.raises(RateLimited) as raised:
        await api.submit()
    assert raised.value.retry_after_s == 7


async def test_an_answer_that_never_comes_is_uncertain(api):
    api.answers("POST", PATH, (200, READING, {"Content-Encoding": "br"}))
    with pytest.raises(SubmitUncertain):
        await api.submit()
    assert count(api, "POST", PATH) == 1


# -- health


@pytest.mark.parametrize(("status", "kind"), [(200, None), (401, AccountProblem), (503, Transient)])
async def test_health_asks_for_the_models_which_costs_nothing(api, status, kind):
    api.answers("GET", "/v1/models", (status, {"data": []}))
    ((_, provider),) = api.on_sale().values()
    try:
        with raising(kind):
            await provider.health()
    finally:
        await provider.close()
    assert [one.path for one in api.seen] == ["/v1/models"]


# -- a complete sale


async def test_a_document_is_bought_and_no_page_more_is_read_than_was_paid(api, settings, payer):
    api.answers("GET", "/v1/models", (200, {}))
    api.answers("POST", PATH, (200, reading("# Report", "", "c", "d", "e", "The end.")))
    values = {"mistral_api_key": KEY, "mistral_base_url": f"{api.url}/v1"}
    shop, options = selling(settings, gateway_mistral, **values)
    async with running(shop, **options) as gateway:
        data = pdf_of(pages=6)
        answer = await buy_parsing(gateway, payer.header(30_000), "mistral-ocr", data)
        assert answer.status_code == 402
        answer = await buy_parsing(gateway, payer.header(120_000), "mistral-ocr", data)
        done = await gateway.wait((await answer.get_json())["taskId"])
    assert (done["status"], done["attempt"]) == ("completed", 1)
    assert done["result"]["text"] == "# Report\n\n\n\nc\n\nd\n\ne\n\nThe end."
    assert [one.json["pages"] for one in api.asked("POST")] == ["0-5"]


async def test_a_document_whose_answer_was_lost_is_not_read_again(api, settings, payer):
    api.answers("GET", "/v1/models", (200, {}))
    api.answers("POST", PATH, (200, "<html>"))
    values = {"mistral_api_key": KEY, "mistral_base_url": f"{api.url}/v1"}
    shop, options = selling(settings, gateway_mistral, **values)
    async with running(shop, **options) as gateway:
        answer = await buy_parsing(gateway, payer.header(30_000), "mistral-ocr", pdf_of(pages=1))
        done = await gateway.wait((await answer.get_json())["taskId"])
    assert (done["status"], done["details"]) == ("failed", "uncertain_submit")
    assert count(api, "POST", PATH) == 1
