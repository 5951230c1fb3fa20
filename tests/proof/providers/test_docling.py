"""docling-serve against responses from its source and documentation."""

import base64

import pytest
from document_sales import PDF, buy_parsing, count, document, pdf_of, selling
from vendor_site import Vendor, on_sale, raising

import gateway_docling
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

KEY = "dk-never-to-be-seen"
ID = "3c1a0b9e-7a4f-4f0f-9b8f-0a51b2d8c7aa"
SUBMIT = "/v1/convert/source/async"
POLL = f"/v1/status/poll/{ID}"
RESULT = f"/v1/result/{ID}"
# A job that does not exist, for checking the key.
NOBODYS = "/v1/status/poll/00000000-0000-0000-0000-000000000000"
TASK = {
    "task_id": ID,
    "task_type": "convert",
    "task_status": "pending",
    "task_position": 3,
    "task_meta": None,
    "error_message": None,
}
CONVERSION = {
    "document": {
        "filename": "document.pdf",
        "md_content": "# Report\n\n| a | b |\n",
        "json_content": None,
        "html_content": None,
        "text_content": None,
        "doctags_content": None,
    },
    "status": "success",
    "errors": [],
    "processing_time": 1.5,
    "timings": {},
}
NOT_FOUND = {"detail": "Task not found."}
UNAUTHORIZED = {"detail": "Unauthorized"}


class DoclingServe(Vendor):
    plugin = gateway_docling
    request = document()
    handle = Handle(id=ID)

    def settings(self):
        return {"docling_base_url": f"{self.url}/", "docling_api_key": KEY}


@pytest.fixture
def api(httpserver):
    return DoclingServe(httpserver)


def task(status, **more):
    return TASK | {"task_status": status} | more


# -- offers


def test_nothing_is_on_sale_without_an_address():
    assert on_sale(gateway_docling, docling_api_key=KEY) == {}


def test_a_server_of_the_operators_takes_what_it_documents(api):
    ((endpoint, provider),) = api.on_sale().values()
    assert {".pdf", ".docx", ".xlsx", ".png"} <= set(endpoint.file_extensions)
    assert endpoint.max_pages == 100
    prices = [endpoint.price_of(document(pages=n)) for n in (None, 20, 21, 51)]
    assert prices == [20_000, 20_000, 50_000, 100_000]
    assert provider.traits.idempotent_submit
    for part in (Polling, Probing, Closing):
        assert isinstance(provider, part)


@pytest.mark.parametrize(
    ("name", "value"), [("base_url", "localhost:5001"), ("price", "0"), ("max_pages", "-1")]
)
def test_a_wrong_setting_is_named(api, name, value):
    with pytest.raises(SettingsError, match=f"GATEWAY_DOCLING_{name.upper()} "):
        api.on_sale(**{f"docling_{name}": value})


# -- submit


async def test_a_document_is_sent_once_under_a_name_that_tells_nothing(api, seller):
    api.answers("POST", SUBMIT, (200, TASK))
    handle = await seller.submit(document("Secret Report.PDF"))
    assert handle == Handle(id=ID)
    (seen,) = api.seen
    assert seen.headers["X-Api-Key"] == KEY
    assert seen.json == {
        "options": {
            "to_formats": ["md"],
            "image_export_mode": "placeholder",
            "page_range": [1, 3],
        },
        "sources": [
            {
                "kind": "file",
                "base64_string": base64.b64encode(PDF).decode(),
                "filename": "document.pdf",
            }
        ],
        "target": {"kind": "inbody"},
    }


async def test_a_server_without_a_key_is_sent_none(api):
    api.answers("POST", SUBMIT, (200, TASK))
    await api.submit(docling_api_key="")
    assert "X-Api-Key" not in api.seen[0].headers


def blamed(*loc):
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", *loc], "msg": "?"}]}


SUBMIT_ERRORS = {
    "wrong key": (401, UNAUTHORIZED, AccountProblem),
    "older wrong key": (403, {"detail": "Invalid API Key"}, AccountProblem),
    "older server": (404, {"detail": "Not Found"}, AccountProblem),
    "other fields": (422, blamed("options", "image_export_mode"), AccountProblem),
    "refused": (422, {"detail": "no"}, InvalidInput),
    # The server's policy, from docling-serve's own source (1.22 to 1.38).
    "other target": (422, {"detail": "Presigned URL targets need storage."}, AccountProblem),
    "forbidden target": (422, {"detail": "Target kind inbody is not allowed."}, AccountProblem),
    "sources": (422, {"detail": "Too many sources in one request."}, AccountProblem),
    # For a default that the adapter does not send, if the operator allows less (run with 1.38.2).
    "option": (
        422,
        {"detail": "images_scale exceeds the configured maximum of 1.0."},
        AccountProblem,
    ),
    "disabled": (422, {"detail": "Callbacks are disabled by server policy."}, AccountProblem),
    "too large": (413, "<html>", InvalidInput),
    "queue full": (429, {"detail": "full"}, RateLimited),
    "starting": (503, {"detail": "not ready"}, NotAccepted),
    "broken": (500, "Internal Server Error", SubmitUncertain),
    "success without JSON": (200, "<html>", SubmitUncertain),
    "success without a task": (200, {"task_status": "pending"}, SubmitUncertain),
    "success with an empty task": (200, task("pending", task_id=""), SubmitUncertain),
}


@pytest.mark.parametrize("name", SUBMIT_ERRORS)
async def test_an_error_of_the_submit_has_its_class(api, seller, name):
    status, body, kind = SUBMIT_ERRORS[name]
    api.answers("POST", SUBMIT, (status, body))
    with pytest.raises(kind) as raised:
        await seller.submit()
    assert type(raised.value) is kind
    assert KEY not in str(raised.value)
    assert count(api, "POST", SUBMIT) == 1


# -- polling


@pytest.mark.parametrize(
    ("state", "note"),
    [
        (task("pending"), "3 in the queue"),
        (task("started", task_position=None), ""),
    ],
)
async def test_a_task_that_is_not_done_is_pending(api, seller, state, note):
    api.answers("GET", POLL, (200, state))
    assert await seller.poll() == Pending(note=note)
    assert api.seen[0].headers["X-Api-Key"] == KEY


async def test_a_task_that_is_done_gives_its_markdown(api, seller):
    api.answers("GET", POLL, (200, task("success", task_position=None)))
    api.answers("GET", RESULT, (200, CONVERSION))
    assert (await seller.poll()).text == "# Report\n\n| a | b |\n"


async def test_a_task_that_went_half_well_is_judged_by_its_result(api, seller):
    api.answers("GET", POLL, (200, task("partial_success")))
    api.answers("GET", RESULT, (200, ended("partial_success", text="half of it")))
    with pytest.raises(JobFailed):
        await seller.poll()
    assert count(api, "GET", RESULT) == 1


async def test_a_blank_document_is_an_empty_text(api, seller):
    api.answers("GET", POLL, (200, task("success")))
    api.answers("GET", RESULT, (200, CONVERSION | {"document": {"md_content": ""}}))
    assert (await seller.poll()).text == ""


def failure(category):
    error = {"category": category, "message": "?", "retryable": False, "phase": "execution"}
    return task("failure", failure=error)


POLL_ERRORS = {
    "unknown task": (404, NOT_FOUND, HandleLost),
    "gone": (410, {}, HandleLost),
    "wrong key": (401, UNAUTHORIZED, AccountProblem),
    "strange question": (422, {"detail": []}, Transient),
    "too fast": (429, {}, RateLimited),
    "down": (502, "<html>", Transient),
    "no JSON": (200, "<html>", Transient),
    "no state": (200, {"task_id": ID}, Transient),
    "new state": (200, task("dreaming"), Transient),
    "failure": (200, task("failure", error_message="out of memory"), JobFailed),
    "failure inside": (200, failure("internal"), JobFailed),
    "failure in time": (200, failure("timeout"), JobFailed),
    "failure by policy": (200, failure("policy"), InvalidInput),
    "a broken file": (200, failure("backend_failure"), InvalidInput),
    "skipped": (200, task("skipped"), InvalidInput),
}


@pytest.mark.parametrize("name", POLL_ERRORS)
async def test_an_error_of_the_poll_has_its_class(api, seller, name):
    status, body, kind = POLL_ERRORS[name]
    api.answers("GET", POLL, (status, body))
    with pytest.raises(kind) as raised:
        await seller.poll()
    assert type(raised.value) is kind


def ended(status, *components, text=None, category=None):
    errors = [
        {"component_type": c, "module_name": "", "error_message": "?", "category": category}
        for c in components
    ]
    return CONVERSION | {"status": status, "errors": errors, "document": {"md_content": text}}


RESULT_ERRORS = {
    "fetched before": (404, {"detail": "Task result not found."}, HandleLost),
    "down": (503, "", Transient),
    "no JSON": (200, "PK zip", Transient),
    "no document": (200, {"status": "success"}, Transient),
    "no Markdown": (200, ended("success"), JobFailed),
    "in part": (200, ended("partial_success", "model", text="half of it"), JobFailed),
    "failed": (200, ended("failure", "model"), JobFailed),
    "a file of another kind": (200, ended("failure", "user_input"), InvalidInput),
    "a broken file": (200, ended("failure", "document_backend"), InvalidInput),
    # Recorded from docling-serve 1.38.2 with a stub behind it (2026-11): task and HTTP succeed.
    "a broken file, by category": (
        200,
        ended("failure", "pipeline", category="backend_failure"),
        InvalidInput,
    ),
    "the task's failure": (200, {"failure": {"category": "internal"}}, JobFailed),
    "the file's failure": (200, {"failure": {"category": "backend_failure"}}, InvalidInput),
    "not converted": (200, ended("skipped"), InvalidInput),
}


@pytest.mark.parametrize("name", RESULT_ERRORS)
async def test_an_error_of_the_result_has_its_class(api, seller, name):
    status, body, kind = RESULT_ERRORS[name]
    api.answers("GET", POLL, (200, task("success")))
    api.answers("GET", RESULT, (status, body))
    with pytest.raises(kind) as raised:
        await seller.poll()
    assert type(raised.value) is kind


# -- health


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (404, NOT_FOUND, None),
        (404, {"detail": "Not Found"}, AccountProblem),
        (404, "<html>", AccountProblem),
        (401, UNAUTHORIZED, AccountProblem),
        (503, {}, Transient),
    ],
)
async def test_health_looks_at_the_key_and_converts_nothing(api, seller, status, body, kind):
    api.answers("GET", NOBODYS, (status, body))
    provider = seller.provider
    with raising(kind):
        await provider.health()
    assert [(one.method, one.path) for one in api.seen] == [("GET", NOBODYS)]


# -- a complete sale


def for_sale(api, settings, **values):
    # The check at the start accepts the key.
    api.answers("GET", NOBODYS, (404, NOT_FOUND))
    return selling(settings, gateway_docling, **({"docling_base_url": api.url} | values))


async def test_a_document_is_bought_at_the_price_of_its_pages(api, settings, payer):
    api.answers("POST", SUBMIT, (200, TASK))
    api.answers("GET", POLL, (200, task("pending")), (500, {}), (200, task("success")))
    api.answers("GET", RESULT, (200, CONVERSION))
    shop, options = for_sale(api, settings, docling_page_prices="2:0.05")
    async with running(shop, **options) as gateway:
        data = pdf_of(pages=2)
        refused = await buy_parsing(gateway, payer.header(20_000), "docling", data)
        assert refused.status_code == 402
        answer = await buy_parsing(gateway, payer.header(50_000), "docling", data)
        task_id = (await answer.get_json())["taskId"]
        done = await gateway.wait(task_id)
    assert done["status"] == "completed"
    assert done["result"]["text"] == CONVERSION["document"]["md_content"]
    assert count(api, "POST", SUBMIT) == 1


async def test_a_document_of_too_many_pages_is_refused_before_payment(api, settings):
    shop, options = for_sale(api, settings, docling_max_pages="2")
    async with running(shop, **options) as gateway:
        answer = await buy_parsing(gateway, None, "docling", pdf_of(pages=3))
        assert answer.status_code == 400
        assert "3 pages" in (await answer.get_json())["error"]
    assert count(api, "POST", SUBMIT) == 0
