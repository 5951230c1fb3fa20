"""LlamaParse against responses of developers.llamaindex.ai."""

import contextlib

import pytest
from document_sales import PDF, buy_parsing, count, document, pdf_of, selling
from vendor_site import Vendor, on_sale, raising

import gateway_llamaparse
from gateway import (
    AccountProblem,
    Closing,
    Handle,
    HandleLost,
    InvalidInput,
    JobFailed,
    Pending,
    Polling,
    Probing,
    RateLimited,
    Settings,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from gateway.settings import EndpointOverride
from tests.conftest import running

KEY = "llx-never-to-be-seen"
ID = "pjb-1f0e"
FILES = "/api/v1/beta/files"
PARSE = "/api/v2/parse"
JOB = f"{PARSE}/{ID}"
FILE = {"id": "dfl-77", "name": "document.pdf", "purpose": "parse", "project_id": "p"}
CREATED = {"id": ID, "project_id": "p", "status": "PENDING", "error_message": None}
PAGES = [
    {"page_number": 1, "markdown": "# Report", "success": True},
    {"page_number": 2, "markdown": "", "success": True},
]


class LlamaParse(Vendor):
    plugin = gateway_llamaparse
    request = document()
    handle = Handle(id=ID)

    def settings(self):
        return {
            "llamaparse_base_url": self.url,
            "llamaparse_api_key": KEY,
            "llamaparse_page_cost": "0.00375",
        }

    def on_sale(self, **values):
        found = super().on_sale(**values)
        return {"llamaparse": found["llamaparse"]}


@pytest.fixture
def api(httpserver):
    return LlamaParse(httpserver)


def job(status, pages=None, **more):
    markdown = None if pages is None else {"pages": pages}
    return {"job": CREATED | {"status": status} | more, "markdown": markdown}


# -- offers


def test_nothing_is_on_sale_without_a_key():
    assert on_sale(gateway_llamaparse) == {}


def test_a_document_is_priced_by_its_pages(api):
    ((endpoint, provider),) = api.on_sale().values()
    prices = [endpoint.price_of(document(pages=n)) for n in (1, 6, 21, 51)]
    assert prices == [30_000, 120_000, 300_000, 600_000]
    assert endpoint.model == "cost_effective"
    assert ".docx" not in endpoint.file_extensions
    assert not provider.traits.idempotent_submit
    for part in (Polling, Probing, Closing):
        assert isinstance(provider, part)


# Kind of evidence: LlamaIndex's glossary (read 2026-11): 3, 10 and 45 credits a page, of which
# 1,000 cost 1.25 US dollars.
PAGE_COST_MICROS = {"cost_effective": 3_750, "agentic": 12_500, "agentic_plus": 56_250}


@pytest.mark.parametrize("pages", [5, 20, 50, 100])
@pytest.mark.parametrize("tier", PAGE_COST_MICROS)
def test_a_tier_is_sold_for_more_than_it_costs(api, tier, pages):
    ((endpoint, _),) = api.on_sale(llamaparse_tier=tier).values()
    assert endpoint.model == tier
    assert endpoint.price_of(document(pages=pages)) >= 1.2 * pages * PAGE_COST_MICROS[tier]


def test_the_tier_of_the_endpoints_table_has_its_prices_too(api):
    settings = Settings(
        plugin_values=api.settings(),
        endpoints={"llamaparse": EndpointOverride(model="agentic_plus")},
    )
    found = []
    gateway_llamaparse.register_endpoints(lambda *pair: found.append(pair), settings)
    ((endpoint, _), _) = found
    assert endpoint.model == "agentic_plus"
    assert endpoint.price_of(document(pages=100)) == 8_500_000


def test_the_operators_own_prices_stand_whatever_the_tier(api):
    values = {"llamaparse_price": "1", "llamaparse_page_prices": "2:3"}
    ((endpoint, _),) = api.on_sale(llamaparse_tier="agentic", **values).values()
    assert [endpoint.price_of(document(pages=n)) for n in (1, 2)] == [1_000_000, 3_000_000]


@pytest.mark.parametrize(
    ("name", "value"), [("tier", "fast"), ("base_url", "x"), ("page_cost", "-1"), ("price", "0")]
)
def test_a_wrong_setting_is_named(api, name, value):
    with pytest.raises(SettingsError, match=f"GATEWAY_LLAMAPARSE_{name.upper()} "):
        api.on_sale(**{f"llamaparse_{name}": value})


# -- submit


async def test_a_file_is_uploaded_once_and_parsed_once(api, seller):
    api.answers("POST", FILES, (200, FILE))
    api.answers("POST", PARSE, (200, CREATED))
    assert await seller.submit(document("Secret Report.pdf")) == Handle(id=ID)
    upload, parse = api.seen
    assert upload.form.to_dict() == {"purpose": "parse"}
    with contextlib.closing(upload.files["file"]) as sent:
        facts = (sent.filename, sent.mimetype, sent.read())
    assert facts == ("document.pdf", "application/pdf", PDF)
    assert parse.json == {
        "file_id": "dfl-77",
        "tier": "cost_effective",
        "version": "latest",
        "page_ranges": {"max_pages": 3},
        "processing_control": {"job_failure_conditions": {"allowed_page_failure_ratio": 0}},
    }
    assert {one.headers["Authorization"] for one in api.seen} == {f"Bearer {KEY}"}


async def test_a_file_of_unknown_length_is_parsed_up_to_the_longest_that_is_sold(api, seller):
    api.answers("POST", FILES, (200, FILE))
    api.answers("POST", PARSE, (200, CREATED))
    await seller.submit(document("scan.png", pages=None))
    assert api.seen[1].json["page_ranges"] == {"max_pages": 100}


UPLOAD_ERRORS = {
    "wrong key": (401, {"detail": "Invalid API Key"}, AccountProblem),
    "no credit": (402, {"detail": "no credits"}, AccountProblem),
    "wrong kind": (400, {"detail": "unsupported"}, InvalidInput),
    "too large": (413, "<html>", InvalidInput),
    "too fast": (429, {}, RateLimited),
    "broken": (500, "", Transient),
    "success without JSON": (200, "<html>", Transient),
    "success without a file": (200, {"name": "document.pdf"}, Transient),
}


@pytest.mark.parametrize("name", UPLOAD_ERRORS)
async def test_an_error_of_the_upload_is_never_uncertain_and_parses_nothing(api, seller, name):
    status, body, kind = UPLOAD_ERRORS[name]
    api.answers("POST", FILES, (status, body))
    with pytest.raises(kind) as raised:
        await seller.submit()
    assert type(raised.value) is kind
    assert [one.path for one in api.seen] == [FILES]


async def test_a_lost_answer_to_the_upload_is_transient(api, seller):
    api.answers("POST", FILES, (200, FILE, {"Content-Encoding": "br"}))
    with pytest.raises(Transient):
        await seller.submit()
    assert count(api, "POST", FILES) == 1


async def test_a_lost_answer_to_the_parse_is_uncertain(api, seller):
    api.answers("POST", FILES, (200, FILE))
    api.answers("POST", PARSE, (200, CREATED, {"Content-Encoding": "br"}))
    with pytest.raises(SubmitUncertain):
        await seller.submit()
    assert count(api, "POST", PARSE) == 1


def blamed(*loc):
    return {"detail": [{"type": "enum", "loc": ["body", *loc], "msg": "?"}]}


PARSE_ERRORS = {
    "wrong key": (401, {"detail": "Invalid API Key"}, AccountProblem),
    "no credit": (
        402,
        {"detail": "You've exceeded the maximum number of credits for your plan"},
        AccountProblem,
    ),
    "other project": (403, {}, AccountProblem),
    "wrong version": (422, blamed("version"), AccountProblem),
    "wrong tier": (422, blamed("tier"), AccountProblem),
    "refused file": (400, {"detail": "What the buyer sent is quoted here."}, InvalidInput),
    "too fast": (429, {}, RateLimited),
    "broken": (500, {"detail": "?"}, SubmitUncertain),
    "success without JSON": (200, "<html>", SubmitUncertain),
    "success without a job": (200, {"status": "PENDING"}, SubmitUncertain),
    "success with an empty job": (200, {"id": ""}, SubmitUncertain),
}


@pytest.mark.parametrize("name", PARSE_ERRORS)
async def test_an_error_of_the_parse_has_its_class(api, seller, name):
    status, body, kind = PARSE_ERRORS[name]
    api.answers("POST", FILES, (200, FILE))
    api.answers("POST", PARSE, (status, body))
    with pytest.raises(kind) as raised:
        await seller.submit()
    assert type(raised.value) is kind
    assert "buyer" not in str(raised.value)
    assert count(api, "POST", PARSE) == 1


# -- polling


@pytest.mark.parametrize("status", ["PENDING", "RUNNING"])
async def test_a_job_that_is_not_done_is_pending(api, seller, status):
    api.answers("GET", JOB, (200, job(status)))
    assert await seller.poll() == Pending(note=status.lower())
    assert api.seen[0].args.to_dict() == {"expand": "markdown"}
    assert api.seen[0].headers["Authorization"] == f"Bearer {KEY}"


async def test_a_job_that_is_done_gives_its_pages_and_their_cost(api, seller):
    api.answers("GET", JOB, (200, job("COMPLETED", PAGES)))
    result = await seller.poll()
    assert result.text == "# Report\n\n"
    assert result.cost_micros == 7_500


# Kind of evidence: the official SDK's type of a job (llama-cloud 2.19, read 2026-11-22).
async def test_the_credits_that_a_job_has_used_are_its_cost(api, seller):
    api.answers("GET", JOB, (200, job("COMPLETED", PAGES, usage={"credits": 6.0, "pages": 2})))
    result = await seller.poll()
    assert (result.cost_micros, result.is_cost_told) == (7_500, True)


@pytest.mark.parametrize("usage", [None, {}, {"credits": None}, {"credits": "6"}, []])
async def test_without_credits_the_pages_are_counted(api, seller, usage):
    api.answers("GET", JOB, (200, job("COMPLETED", PAGES, usage=usage)))
    result = await seller.poll()
    assert (result.cost_micros, result.is_cost_told) == (7_500, False)


@pytest.mark.parametrize(("status", "kind"), [(200, None), (404, HandleLost), (503, Transient)])
async def test_a_job_that_takes_too_long_is_stopped(api, seller, status, kind):
    api.answers("POST", f"{JOB}/cancel", (status, {}))
    with raising(kind):
        await seller.provider.cancel(Handle(id=ID))
    # It is not known whether LlamaParse bills it, so it is not parsed again.
    assert not seller.provider.traits.resubmit_after_cancel
    assert count(api, "POST", f"{JOB}/cancel") == 1


async def test_a_blank_page_is_an_empty_text(api, seller):
    api.answers("GET", JOB, (200, job("COMPLETED", PAGES[1:])))
    assert (await seller.poll()).text == ""


BAD_PAGE = {"page_number": 3, "success": False, "error": "timed out"}
POLL_ERRORS = {
    "unknown job": (404, {"detail": "Job not found"}, HandleLost),
    "wrong key": (401, {}, AccountProblem),
    "strange question": (422, blamed("path"), Transient),
    "too fast": (429, {}, RateLimited),
    "down": (503, "", Transient),
    "no JSON": (200, "<html>", Transient),
    "no job": (200, {"markdown": None}, Transient),
    "new state": (200, job("DREAMING"), Transient),
    "done without Markdown": (200, job("COMPLETED"), Transient),
    "done without a page": (200, job("COMPLETED", []), InvalidInput),
    "a page that failed": (200, job("COMPLETED", [*PAGES, BAD_PAGE]), InvalidInput),
    "failed": (200, job("FAILED", error_message="An error occurred"), JobFailed),
    "too slow": (200, job("FAILED", error_message="TIMEOUT"), JobFailed),
    "cancelled": (200, job("CANCELLED"), JobFailed),
    "protected": (200, job("FAILED", error_message="PDF_IS_PROTECTED: a password"), InvalidInput),
    "broken file": (200, job("FAILED", error_code="PDF_IS_BROKEN"), InvalidInput),
    "wrong kind": (200, job("FAILED", error_message="UNSUPPORTED_FILE_TYPE"), InvalidInput),
}


@pytest.mark.parametrize("name", POLL_ERRORS)
async def test_an_error_of_the_poll_has_its_class(api, seller, name):
    status, body, kind = POLL_ERRORS[name]
    api.answers("GET", JOB, (status, body))
    with pytest.raises(kind) as raised:
        await seller.poll()
    assert type(raised.value) is kind
    assert count(api, "GET", JOB) == 1


# -- health


@pytest.mark.parametrize(("status", "kind"), [(200, None), (401, AccountProblem), (500, Transient)])
async def test_health_lists_jobs_which_costs_nothing(api, seller, status, kind):
    api.answers("GET", PARSE, (status, {"items": []}))
    provider = seller.provider
    with raising(kind):
        await provider.health()
    assert [(one.method, one.path) for one in api.seen] == [("GET", PARSE)]


# -- a complete sale


async def test_an_upload_that_fails_is_tried_again_and_one_job_is_begun(api, settings, payer):
    api.answers("GET", PARSE, (200, {"items": []}))
    api.answers("POST", FILES, (500, {}), (200, FILE))
    api.answers("POST", PARSE, (200, CREATED))
    api.answers("GET", JOB, (200, job("RUNNING")), (200, job("COMPLETED", PAGES)))
    values = {"llamaparse_base_url": api.url, "llamaparse_api_key": KEY}
    shop, options = selling(settings, gateway_llamaparse, **values)
    async with running(shop, **options) as gateway:
        answer = await buy_parsing(gateway, payer.header(30_000), "llamaparse", pdf_of(pages=2))
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert task["result"]["text"] == "# Report\n\n"
    assert count(api, "POST", PARSE) == 1
