"""LlamaExtract against responses of llama-cloud 2.19.0's types."""

import contextlib
import json

import attrs
import pytest
from document_sales import PDF, document
from test_llamaparse import FILE, FILES, KEY, LlamaParse
from vendor_site import Vendor

from gateway import (
    AccountProblem,
    Handle,
    HandleLost,
    InvalidInput,
    JobFailed,
    Pending,
    ResultMissing,
    SettingsError,
    SubmitUncertain,
    Transient,
)

SLUG = "llama-extract"
ID = "exj-1f0e"
EXTRACT = "/api/v2/extract"
JOB = f"{EXTRACT}/{ID}"
CREATED = {"id": ID, "project_id": "p", "file_input": "dfl-77", "status": "PENDING"}
QUESTION = "Wann ist sie fällig?"
SCHEMA = {"type": "object", "properties": {"due": {"type": "string"}}}
FOUND = {"due": "30. Oktober — fällig"}


class LlamaExtract(LlamaParse):
    slug = SLUG
    request = attrs.evolve(document("Jane Doe.pdf"), prompt=QUESTION)
    handle = Handle(id=ID)

    def on_sale(self, **values):
        return Vendor.on_sale(self, **values)

    def answer_job(self, *replies):
        self.answers("POST", FILES, (200, FILE))
        self.answers("POST", EXTRACT, (200, CREATED))
        self.answers("GET", JOB, *replies)


@pytest.fixture
def api(httpserver):
    return LlamaExtract(httpserver)


def job(status, **more):
    return 200, CREATED | {"status": status} | more


def nested(levels):
    part = {"type": "string"}
    for _ in range(levels):
        part = {"type": "object", "properties": {"a": part}}
    return attrs.evolve(LlamaExtract.request, prompt=json.dumps(part))


# llama-cloud 2.19.0: 5, 15 and 50 credits a page; the glossary: 3, 10 and 45 for the parsing. 1,000
# cost 1.25 US dollars.
PAGE_COST_MICROS = {"cost_effective": 10_000, "agentic": 31_250, "agentic_plus": 118_750}


@pytest.mark.parametrize("pages", [5, 20, 50, 100])
@pytest.mark.parametrize("tier", PAGE_COST_MICROS)
def test_a_tier_is_sold_for_more_than_it_costs(api, tier, pages):
    endpoint, _ = api.on_sale(llamaparse_extract_tier=tier)[SLUG]
    assert (endpoint.model, endpoint.capability) == (tier, "document-extraction")
    assert endpoint.page_cost_micros == PAGE_COST_MICROS[tier]
    assert endpoint.price_of(document(pages=pages)) >= 1.2 * pages * PAGE_COST_MICROS[tier]


def test_the_operator_decides_about_price_and_cost(api):
    endpoint, _ = api.on_sale(
        llamaparse_extract_price="1",
        llamaparse_extract_page_prices="2:3",
        llamaparse_extract_page_cost="0.5",
        llamaparse_max_pages="12",
    )[SLUG]
    assert [endpoint.price_of(document(pages=n)) for n in (1, 2)] == [1_000_000, 3_000_000]
    assert (endpoint.page_cost_micros, endpoint.max_pages) == (500_000, 12)


@pytest.mark.parametrize(
    ("name", "value"),
    [("tier", "turbo"), ("price", "0"), ("page_prices", "6"), ("page_cost", "-1")],
)
def test_a_wrong_setting_is_named(api, name, value):
    with pytest.raises(SettingsError, match=f"GATEWAY_LLAMAPARSE_EXTRACT_{name.upper()} is"):
        api.on_sale(**{f"llamaparse_extract_{name}": value})


async def test_a_schema_is_sent_with_the_tier_that_it_costs(api):
    api.answer_job(job("PENDING"))
    asked = attrs.evolve(LlamaExtract.request, prompt=json.dumps(SCHEMA))
    assert await api.submit(asked, llamaparse_extract_tier="agentic") == Handle(id=ID)
    upload, order = api.seen
    assert order.headers["Authorization"] == f"Bearer {KEY}"
    assert upload.form.to_dict() == {"purpose": "extract"}
    with contextlib.closing(upload.files["file"]) as sent:
        assert (sent.filename, sent.read()) == ("document.pdf", PDF)
    assert order.json == {
        "file_input": "dfl-77",
        "configuration": {
            "data_schema": SCHEMA,
            "tier": "agentic",
            "parse_tier": "agentic",
            "version": "latest",
            "max_pages": 3,
        },
    }


async def test_a_question_goes_beside_a_schema_of_an_answer(api):
    api.answer_job(job("PENDING"))
    await api.submit()
    configuration = api.seen[-1].json["configuration"]
    assert configuration["system_prompt"] == QUESTION
    assert set(configuration["data_schema"]["properties"]) == {"answer", "found", "quotes"}


async def test_a_schema_that_is_too_deep_is_refused_before_payment(api):
    endpoint, provider = api.on_sale()[SLUG]
    await provider.validate(LlamaExtract.request, endpoint)
    await provider.validate(nested(7), endpoint)
    with pytest.raises(InvalidInput, match="more than 7 levels"):
        await provider.validate(nested(8), endpoint)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((200, {}), SubmitUncertain),
        ((401, {}), AccountProblem),
        ((422, {"detail": [{"loc": ["body", "configuration", "tier"]}]}), AccountProblem),
        ((422, {"detail": [{"loc": ["body", "configuration", "data_schema"]}]}), InvalidInput),
        ((503, {}), SubmitUncertain),
    ],
)
async def test_an_order_that_is_not_taken_is_told_apart(api, answer, kind):
    api.answers("POST", FILES, (200, FILE))
    api.answers("POST", EXTRACT, answer)
    with pytest.raises(kind):
        await api.submit()


@pytest.mark.parametrize(
    ("usage", "micros", "is_cost_told"),
    [({"credits": 24.0}, 30_000, True), ({"credits": None}, None, False), (None, None, False)],
)
async def test_data_comes_as_json_with_what_was_billed(api, usage, micros, is_cost_told):
    result = await api.poll(job("COMPLETED", extract_result=FOUND, usage=usage))
    assert json.loads(result.text) == FOUND
    assert "fällig" in result.text
    assert (result.cost_micros, result.is_cost_told) == (micros, is_cost_told)
    assert api.asked("GET")[-1].args.to_dict() == {"expand": "usage"}


async def test_a_job_that_is_not_done_is_pending(api):
    assert await api.poll(job("RUNNING")) == Pending(note="running")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (job("FAILED", error_message="oops"), JobFailed),
        (job("CANCELLED"), JobFailed),
        (job("FAILED", error_message="PDF_IS_BROKEN"), InvalidInput),
        (job("COMPLETED", extract_result=None), ResultMissing),
        (job("COMPLETED", extract_result=[FOUND]), ResultMissing),
        (job("THROTTLED"), Transient),
        ((200, "<html>"), Transient),
        ((404, {}), HandleLost),
        ((503, {}), Transient),
    ],
)
async def test_a_job_that_ends_otherwise_is_told_apart(api, reply, kind):
    with pytest.raises(kind):
        await api.poll(reply)


async def test_a_job_is_cancelled_and_health_asks_for_what_is_free(api):
    api.answers("POST", f"{JOB}/cancel", (200, {}))
    api.answers("GET", EXTRACT, (200, {"items": []}))
    _, provider = api.on_sale()[SLUG]
    await provider.cancel(Handle(id=ID))
    await provider.health()
    await provider.close()
    assert [one.path for one in api.seen] == [f"{JOB}/cancel", EXTRACT]
