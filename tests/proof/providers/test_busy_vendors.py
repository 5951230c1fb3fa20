"""Vendors that are too busy: a refusal before work is tried again, anything else is uncertain.

The table of docs/providers.md names the vendors' pages. Answers without a quotation are made up in
the documented form.
"""

import importlib
import json
import tomllib
from pathlib import Path

import pytest
import vendor_site
from test_vendor_answers import _request_to, serve
from vendor_site import PlainJob
from werkzeug import Response

from gateway import AccountProblem, NotAccepted, RateLimited, SubmitUncertain, Transient

ANSWERS = Path(__file__).parent / "answers"
NGINX = "<html><center><h1>{} Service Temporarily Unavailable</h1></center><hr>nginx</html>"
ENVOY = "upstream connect error or disconnect/reset before headers. reset reason: termination"
LATER = {"Retry-After": "7"}


def google(status, name, message, *details):
    error = {"code": status, "message": message, "status": name, "details": list(details)}
    return status, {}, {"error": error}


def retry_info(delay):
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def fal(status, kind):
    return status, {}, {"detail": "x", "error_type": kind}


BUSY = {"error": {"code": "server_is_overloaded", "type": "service_unavailable_error"}}
# google-gemini/gemini-cli#7227, continuedev/continue#12800.
OVERLOADED = "The model is overloaded. Please try again later."
DEMAND = "This model is currently experiencing high demand. Spikes in demand are usually temporary."
# By adapter: status, headers and body of an answer to a submit, and the wait in it.
NOT_BEGUN = [
    ("gemini", *google(503, "UNAVAILABLE", OVERLOADED), None),
    ("gemini", *google(503, "UNAVAILABLE", DEMAND), None),
    ("gemini", *google(503, "UNAVAILABLE", "x", retry_info("12.5s")), 12.5),
    ("gemini", 503, LATER, NGINX.format(503), 7),
    ("openai", 503, {}, BUSY, None),
    ("openai", 503, {"Retry-After": "2.5"}, BUSY, 2.5),
    ("openai", 503, {"retry-after-ms": "1500", "Retry-After": "2"}, BUSY, 1.5),
    # ollama/ollama#4144.
    ("openai", 503, {}, {"error": {"message": "server busy, please try again."}}, None),
    ("openrouter", 503, LATER, {"error": {"code": 503, "message": "no provider"}}, 7),
    ("openrouter", 529, {}, {"error": {"code": 529, "message": "Provider overloaded"}}, None),
    ("bfl", 503, {}, {"detail": "Service Unavailable"}, None),
    ("fal", 503, LATER, {"detail": "Service unavailable"}, 7),
    ("fal", *fal(503, "runner_scheduling_failure"), None),
    ("fal", *fal(504, "startup_timeout"), None),
    ("kie", 200, {}, {"code": 455, "msg": "maintenance"}, None),
    ("mistral", 503, {}, {"message": "overloaded", "type": "server_error"}, None),
    ("mistral_extract", 503, LATER, {"message": "overloaded", "type": "server_error"}, 7),
    ("azure_documents", 503, LATER, {"error": {"code": "ServiceUnavailable"}}, 7),
    ("azure_documents", 503, {"x-ms-retry-after-ms": "900"}, "", 0.9),
    # docling-serve 1.38, RedisBackpressureError.
    ("docling", 503, {"Retry-After": "1"}, {"detail": "Server is busy."}, 1),
]
TOO_MANY = [
    ("gemini", *google(429, "RESOURCE_EXHAUSTED", "x", retry_info("35s")), 35),
    ("openai", 429, LATER, {"error": {"code": "slow_down", "type": "rate_limit_error"}}, 7),
    ("openrouter", 429, LATER, {"error": {"code": 429, "message": "x"}}, 7),
    ("bfl", 429, {}, {"error": "rate_limit_exceeded", "retry_after": 5}, 5),
    ("fal", 429, {}, {"detail": "x"}, 10),
    ("kie", 200, {}, {"code": 429, "msg": "x"}, 10),
    ("replicate", 429, {}, {"detail": "Your rate limit resets in ~30s."}, 30),
    ("mistral", 429, {}, {"type": "rate_limit_error"}, 10),
    ("llamaparse", 429, LATER, {"detail": "x"}, 7),
    ("llama_extract", 429, {"Retry-After": "0.25"}, {"detail": "x"}, 0.25),
    ("azure_documents", 429, LATER, {"error": {"code": "TooManyRequests"}}, 7),
    ("docling", 429, LATER, {"detail": "x"}, 7),
]
MONEY = ("credit_balance_exhausted", "insufficient_quota", "project_spend_limit_exceeded")
MONEY = (*MONEY, "organization_spend_limit_exceeded", "organization_usage_limit_exceeded")
NO_CREDIT = [
    *(("openai", 429, LATER, {"error": {"code": code, "type": "x"}}) for code in MONEY),
    ("openai", 429, {}, {"error": {"code": MONEY[0], "type": "insufficient_quota"}}),
    # discuss.ai.google.dev/t/183654.
    ("gemini", *google(402, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.")),
    ("openrouter", 402, {}, {"error": {"code": 402, "message": "Insufficient credits"}}),
    ("bfl", 402, {}, {"detail": "Insufficient credits"}),
    ("fal", 403, {}, {"detail": "User is locked. Reason: Exhausted balance."}),
    ("kie", 200, {}, {"code": 402, "msg": "x"}),
    ("kie", 200, {}, {"code": 433, "msg": "x"}),
    ("replicate", 402, {}, {"title": "Insufficient credit", "status": 402}),
    ("mistral", 402, {}, {"type": "x"}),
    ("llamaparse", 402, {}, {"detail": "x"}),
    ("azure_documents", 403, {}, {"error": {"code": "OutOfCallVolumeQuota"}}),
]
UNCERTAIN = [
    # googleapis/python-genai#1808: it comes after minutes.
    ("gemini", *google(503, "UNAVAILABLE", "Deadline expired before operation could complete.")),
    ("gemini", *google(504, "DEADLINE_EXCEEDED", "x", retry_info("1s"))),
    ("openrouter", 502, LATER, {"error": {"code": 502, "message": "invalid response"}}),
    ("openrouter", 200, LATER, {"error": {"code": 503, "message": "while it ran"}}),
    ("openrouter", 200, {}, {"error": {"code": 529, "message": "while it ran"}}),
    ("fal", *fal(503, "runner_disconnected")),
    ("fal", *fal(504, "request_timeout")),
    ("bfl", 500, LATER, {"detail": "x"}),
    ("openai", 500, LATER, {"error": {"type": "server_error"}}),
    ("mistral", 504, {}, {"message": "x"}),
    ("azure_documents", 500, {}, {"error": {"code": "InternalServerError"}}),
    # Not documented by these vendors, whose own clients repeat no such submit, or all of them.
    ("replicate", 503, LATER, {"detail": "x"}),
    ("llamaparse", 503, LATER, {"detail": "x"}),
    ("kie", 503, LATER, {"msg": "x"}),
    *((name, 503, {}, text) for name in ("gemini", "openai", "bfl", "fal", "mistral")
      for text in (NGINX.format(503), ENVOY, "")),
]  # fmt: skip


async def submit(server, adapter, status, headers, body):
    """Submit to a vendor that gives this answer."""
    vendor = tomllib.loads((ANSWERS / f"{adapter}.toml").read_text())
    url = server.url_for("").rstrip("/")
    if "upload" in vendor:
        serve(server, url, vendor["upload"])
    orders = [vendor["begin"]] if "begin" in vendor else vendor["answer"]
    path = next(order["post"] for order in orders if "post" in order)
    text = body if isinstance(body, str) else json.dumps(body)
    server.expect_request(path, method="POST").respond_with_response(
        Response(text, status, headers, content_type="application/json")
    )
    values = {name: text.replace("{url}", url) for name, text in vendor["settings"].items()}
    found = vendor_site.on_sale(importlib.import_module(vendor["plugin"]), **values)
    endpoint, provider = found[vendor["slug"]]
    try:
        await provider.submit(_request_to(endpoint), PlainJob(endpoint))
    finally:
        await provider.close()


@pytest.mark.parametrize(
    ("error", "adapter", "status", "headers", "body", "wait_s"),
    [(NotAccepted, *row) for row in NOT_BEGUN] + [(RateLimited, *row) for row in TOO_MANY],
)
async def test_an_answer_before_work_begins_is_tried_again_after_the_vendors_wait(
    httpserver, error, adapter, status, headers, body, wait_s
):
    with pytest.raises(error) as raised:
        await submit(httpserver, adapter, status, headers, body)
    assert raised.value.retry_after_s == wait_s


@pytest.mark.parametrize(("adapter", "status", "headers", "body"), NO_CREDIT)
async def test_an_account_without_credit_does_not_wait(httpserver, adapter, status, headers, body):
    with pytest.raises(AccountProblem) as raised:
        await submit(httpserver, adapter, status, headers, body)
    assert raised.value.scope == "vendor"


@pytest.mark.parametrize(("adapter", "status", "headers", "body"), UNCERTAIN)
async def test_an_answer_that_may_follow_work_is_uncertain(
    httpserver, adapter, status, headers, body
):
    with pytest.raises((SubmitUncertain, Transient)) as raised:
        await submit(httpserver, adapter, status, headers, body)
    # A `Transient` counts as uncertain after a billable request; a `NotAccepted` does not.
    assert not isinstance(raised.value, NotAccepted)


def test_every_vendor_is_here():
    rows = (*NOT_BEGUN, *TOO_MANY, *NO_CREDIT, *UNCERTAIN)
    assert {row[0] for row in rows} == {file.stem for file in ANSWERS.glob("*.toml")}
