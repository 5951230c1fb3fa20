"""Azure Document Intelligence against responses of its specification 2024-11-30."""

import base64
import gzip

import pytest
from document_sales import PDF, buy_parsing, count, document, pdf_of, selling
from vendor_site import Vendor, on_sale, raising

import gateway_azure_documents
from gateway import (
    AccountProblem,
    Closing,
    Handle,
    HandleLost,
    InvalidInput,
    JobFailed,
    NotAccepted,
    Pending,
    Polling,
    Probing,
    RateLimited,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from tests.conftest import running

KEY = "az-never-to-be-seen"
ID = "3b31320d-8bab-4f88-b19c-2322a7f11034"
MODELS = "/documentintelligence/documentModels"
SUBMIT = f"{MODELS}/prebuilt-layout:analyze"
JOB = f"{MODELS}/prebuilt-layout/analyzeResults/{ID}"
WORD = {"content": "Report", "polygon": [1, 2, 3, 4, 5, 6, 7, 8], "confidence": 0.99}
ANALYSIS = {
    "apiVersion": "2024-11-30",
    "modelId": "prebuilt-layout",
    "stringIndexType": "textElements",
    "content": "# Report\n\n<!-- PageBreak -->\n\nThe end.",
    "contentFormat": "markdown",
    "pages": [{"pageNumber": n, "unit": "inch", "words": [WORD]} for n in (1, 2, 3)],
}


class Azure(Vendor):
    plugin = gateway_azure_documents
    request = document()

    @property
    def location(self):
        return f"{self.url}{JOB}?api-version=2024-11-30"

    @property
    def handle(self):
        return Handle(id=ID, urls={"poll": self.location})

    def settings(self):
        return {
            "azure_documents_endpoint": f"{self.url}/",
            "azure_documents_key": KEY,
            "azure_documents_page_cost": "0.01",
        }


@pytest.fixture
def api(httpserver):
    return Azure(httpserver)


def operation(status, **more):
    times = {"createdDateTime": "2026-11-21T10:17:51Z", "lastUpdatedDateTime": "2026-11-21T10:18Z"}
    return {"status": status} | times | more


def error(code, inner="", *details):
    found = {"code": code, "message": "What the buyer sent is quoted here."}
    if inner:
        found["innererror"] = {"code": inner, "message": "?"}
    if details:
        found["details"] = [{"code": one, "message": "?", "target": "2"} for one in details]
    return {"error": found}


# -- offers


def test_nothing_is_on_sale_without_endpoint_and_key():
    assert on_sale(gateway_azure_documents) == {}


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"azure_documents_key": KEY}, "ENDPOINT"),
        ({"azure_documents_endpoint": "https://di.example.com"}, "KEY"),
    ],
)
def test_one_without_the_other_stops_the_start(given, missing):
    with pytest.raises(SettingsError, match=f"GATEWAY_AZURE_DOCUMENTS_{missing} is missing"):
        on_sale(gateway_azure_documents, **given)


def test_a_document_is_priced_by_its_pages(api):
    ((endpoint, provider),) = api.on_sale().values()
    prices = [endpoint.price_of(document(pages=n)) for n in (1, 6, 21, 51)]
    assert prices == [80_000, 300_000, 750_000, 1_500_000]
    assert ".docx" not in endpoint.file_extensions
    assert not provider.traits.idempotent_submit
    for part in (Polling, Probing, Closing):
        assert isinstance(provider, part)


@pytest.mark.parametrize(("name", "value"), [("endpoint", "di.example.com"), ("price", "much")])
def test_a_wrong_setting_is_named(api, name, value):
    with pytest.raises(SettingsError, match=f"GATEWAY_AZURE_DOCUMENTS_{name.upper()} "):
        api.on_sale(**{f"azure_documents_{name}": value})


# -- submit


async def test_a_document_is_sent_once_and_the_address_of_its_job_is_kept(api, seller):
    api.answers("POST", SUBMIT, (202, "", {"Operation-Location": api.location}))
    assert await seller.submit() == Handle(id=ID, urls={"poll": api.location})
    (seen,) = api.seen
    assert seen.headers["Ocp-Apim-Subscription-Key"] == KEY
    assert seen.args.to_dict() == {
        "api-version": "2024-11-30",
        "outputContentFormat": "markdown",
        "pages": "1-3",
    }
    assert seen.json == {"base64Source": base64.b64encode(PDF).decode()}


async def test_a_pdf_of_unknown_length_is_read_up_to_the_longest_that_is_sold(api, seller):
    api.answers("POST", SUBMIT, (202, "", {"Operation-Location": api.location}))
    await seller.submit(document(pages=None))
    assert api.seen[0].args["pages"] == "1-100"


@pytest.mark.parametrize("request_of", [("scan.png", b"", None), ("slides.pptx", b"", 9)])
async def test_a_file_that_has_no_page_ranges_is_sent_as_a_whole(api, seller, request_of):
    api.answers("POST", SUBMIT, (202, "", {"Operation-Location": api.location}))
    await seller.submit(document(*request_of))
    assert "pages" not in api.seen[0].args


async def test_the_operators_model_is_asked(api):
    where = f"{MODELS}/prebuilt-read:analyze"
    api.answers("POST", where, (202, "", {"Operation-Location": api.location}))
    await api.submit(azure_documents_model="prebuilt-read")
    assert count(api, "POST", where) == 1


@pytest.mark.parametrize(
    "location",
    [
        None,
        "",
        f"https://evil.example.com{JOB}",
        f"http://127.0.0.1:1{JOB}",
        f"http://user@127.0.0.1{JOB}",
        JOB,
        "http://[",
        "{own}/",
    ],
)
async def test_a_job_that_is_not_on_the_operators_endpoint_is_never_asked_for(
    api, seller, location
):
    headers = {}
    if location is not None:
        own = api.url
        headers["Operation-Location"] = location.replace("{own}", own)
    api.answers("POST", SUBMIT, (202, "", headers))
    with pytest.raises(SubmitUncertain):
        await seller.submit()
    assert len(api.seen) == 1


SUBMIT_ERRORS = {
    "broken file": (400, error("InvalidRequest", "InvalidContent"), InvalidInput),
    "too small": (400, error("InvalidRequest", "InvalidContentDimensions"), InvalidInput),
    "too large": (400, error("InvalidRequest", "InvalidContentLength"), InvalidInput),
    "unsupported": (400, error("InvalidRequest", "UnsupportedContent"), InvalidInput),
    "wrong pages": (400, error("InvalidArgument", "InvalidParameter"), InvalidInput),
    "wrong kind": (415, error("UnsupportedMediaType"), InvalidInput),
    "older container": (400, error("InvalidRequest", "NotSupportedApiVersion"), AccountProblem),
    "cut off": (400, error("InvalidRequest", "ContentSourceTimeout"), NotAccepted),
    "wrong key": (401, error("401"), AccountProblem),
    "no quota": (403, error("403"), AccountProblem),
    "no such model": (404, error("NotFound", "ModelNotFound"), AccountProblem),
    "too fast": (429, error("429"), RateLimited),
    "conflict": (409, error("Conflict"), SubmitUncertain),
    "broken": (500, error("InternalServerError", "Unknown"), SubmitUncertain),
    "too busy": (503, error("ServiceUnavailable"), NotAccepted),
    "down": (503, "<html>", SubmitUncertain),
    "nonsense": (400, {"error": [1]}, InvalidInput),
}


@pytest.mark.parametrize("name", SUBMIT_ERRORS)
async def test_an_error_of_the_submit_has_its_class(api, seller, name):
    status, body, kind = SUBMIT_ERRORS[name]
    api.answers("POST", SUBMIT, (status, body))
    with pytest.raises(kind) as raised:
        await seller.submit()
    assert type(raised.value) is kind
    assert KEY not in str(raised.value)
    assert "buyer" not in str(raised.value)
    assert count(api, "POST", SUBMIT) == 1


async def test_an_answer_that_is_cut_off_is_uncertain(api, seller):
    lost = {"Content-Encoding": "gzip", "Operation-Location": api.location}
    api.answers("POST", SUBMIT, (202, gzip.compress(b"{}")[:-4], lost))
    with pytest.raises(SubmitUncertain):
        await seller.submit()
    assert count(api, "POST", SUBMIT) == 1


# -- polling


@pytest.mark.parametrize("status", ["notStarted", "running"])
async def test_a_job_that_is_not_done_is_pending(api, seller, status):
    api.answers("GET", JOB, (200, operation(status), {"Retry-After": "2"}))
    assert await seller.poll() == Pending(note=status, poll_after_s=2.0)
    assert api.seen[0].headers["Ocp-Apim-Subscription-Key"] == KEY
    assert api.seen[0].args.to_dict() == {"api-version": "2024-11-30"}


async def test_a_job_that_is_done_gives_its_text_and_its_cost(api, seller):
    api.answers("GET", JOB, (200, operation("succeeded", analyzeResult=ANALYSIS)))
    result = await seller.poll()
    assert result.text == ANALYSIS["content"]
    assert result.cost_micros == 30_000


async def test_of_a_large_answer_only_the_text_is_read(api, seller):
    page = {"pageNumber": 1, "words": [WORD] * 5_000}
    large = ANALYSIS | {"pages": [page] * 10}
    api.answers("GET", JOB, (200, operation("succeeded", analyzeResult=large)))
    assert (await seller.poll()).cost_micros == 100_000


async def test_a_blank_page_is_an_empty_text(api, seller):
    blank = ANALYSIS | {"content": "", "pages": [{"pageNumber": 1}]}
    api.answers("GET", JOB, (200, operation("succeeded", analyzeResult=blank)))
    assert (await seller.poll()).text == ""


DIMENSIONS = error("InternalServerError", "", "InternalServerError", "InvalidContentDimensions")
POLL_ERRORS = {
    "unknown job": (
        404,
        {"code": "NotFound", "message": "Analyze result does not exist."},
        HandleLost,
    ),
    "expired job": (404, error("NotFound", "OperationNotFound"), HandleLost),
    "wrong key": (401, error("401"), AccountProblem),
    "strange question": (400, error("InvalidArgument"), Transient),
    "too fast": (429, error("429"), RateLimited),
    "down": (503, error("ServiceUnavailable"), Transient),
    "no JSON": (200, "<html>", Transient),
    "no state": (200, {}, Transient),
    "new state": (200, operation("dreaming"), Transient),
    "done without a text": (200, operation("succeeded"), Transient),
    "done with nonsense": (200, operation("succeeded", analyzeResult={"pages": []}), Transient),
    "failed": (200, operation("failed", **error("InternalServerError")), JobFailed),
    "failed without a word": (200, operation("failed"), JobFailed),
    "canceled": (200, operation("canceled"), JobFailed),
    "broken file": (
        200,
        operation("failed", **error("InvalidRequest", "InvalidContent")),
        InvalidInput,
    ),
    "one page too large": (200, operation("failed", **DIMENSIONS), InvalidInput),
}


@pytest.mark.parametrize("name", POLL_ERRORS)
async def test_an_error_of_the_poll_has_its_class(api, seller, name):
    status, body, kind = POLL_ERRORS[name]
    api.answers("GET", JOB, (status, body))
    with pytest.raises(kind) as raised:
        await seller.poll()
    assert type(raised.value) is kind
    assert "buyer" not in str(raised.value)
    assert count(api, "GET", JOB) == 1


# -- health


@pytest.mark.parametrize(
    ("status", "kind"),
    [(200, None), (401, AccountProblem), (404, AccountProblem), (500, Transient)],
)
async def test_health_asks_about_the_resource_which_costs_nothing(api, seller, status, kind):
    info = "/documentintelligence/info"
    api.answers("GET", info, (status, {"customDocumentModels": {"count": 0, "limit": 13}}))
    provider = seller.provider
    with raising(kind):
        await provider.health()
    assert [(one.method, one.path) for one in api.seen] == [("GET", info)]


# -- a complete sale


async def test_a_scan_is_bought_and_asked_for_until_it_is_there(api, seller, settings, payer):
    api.answers("GET", "/documentintelligence/info", (200, {}))
    api.answers("POST", SUBMIT, (202, "", {"Operation-Location": api.location}))
    done = operation("succeeded", analyzeResult=ANALYSIS)
    api.answers("GET", JOB, (200, operation("running")), (200, "<html>"), (200, done))
    values = {"azure_documents_endpoint": api.url, "azure_documents_key": KEY}
    shop, options = selling(settings, gateway_azure_documents, **values)
    async with running(shop, **options) as gateway:
        slug, data = "azure-documents", pdf_of(pages=3)
        answer = await buy_parsing(gateway, payer.header(80_000), slug, data)
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["status"] == "completed"
    assert task["result"]["text"] == ANALYSIS["content"]
    assert count(api, "POST", SUBMIT) == 1
    assert count(api, "GET", JOB) == 3
