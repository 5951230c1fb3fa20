"""The Gemini API's errors: each concerns the buyer or the operator, or is retried."""

import pytest
from gemini_site import KEY, SUBMIT, Google
from pytest_httpserver import HTTPServer

from gateway import AccountProblem, InvalidInput, NotAccepted, RateLimited, SubmitUncertain


@pytest.fixture
def google():
    with HTTPServer(threaded=True) as server:
        yield Google(server)


def info(reason):
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": {"service": "generativelanguage.googleapis.com"},
    }


def bad_field(field):
    violation = {"field": field, "description": "Invalid value: a boat"}
    return {
        "@type": "type.googleapis.com/google.rpc.BadRequest",
        "fieldViolations": [violation],
    }


def quota(quota_id, **more):
    violation = {
        "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
        "quotaId": quota_id,
        "quotaDimensions": {"location": "global", "model": "gemini-nano-banana-2.1"},
    }
    return {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [violation | more],
    }


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "35.5s"}
MINUTE = "GenerateRequestsPerMinutePerProjectPerModel"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
ERRORS = {
    "wrong key": (400, "INVALID_ARGUMENT", [info("API_KEY_INVALID")], AccountProblem),
    "our ratio": (
        400,
        "INVALID_ARGUMENT",
        [bad_field("generation_config.image_config.aspect_ratio")],
        AccountProblem,
    ),
    "a bad prompt": (
        400,
        "INVALID_ARGUMENT",
        [bad_field("contents[0].parts[0].text")],
        InvalidInput,
    ),
    "something malformed": (400, "INVALID_ARGUMENT", [], InvalidInput),
    "no billing here": (400, "FAILED_PRECONDITION", [], AccountProblem),
    "no such key": (401, "UNAUTHENTICATED", [], AccountProblem),
    "no permission": (403, "PERMISSION_DENIED", [info("API_KEY_SERVICE_BLOCKED")], AccountProblem),
    "no such model": (404, "NOT_FOUND", [], AccountProblem),
    "the minute's quota": (429, "RESOURCE_EXHAUSTED", [quota(MINUTE), RETRY], RateLimited),
    "too much for everybody": (429, "RESOURCE_EXHAUSTED", [], RateLimited),
    "the day's quota": (429, "RESOURCE_EXHAUSTED", [quota(DAY), RETRY], AccountProblem),
    "a quota of zero": (429, "RESOURCE_EXHAUSTED", [quota(MINUTE, quotaValue="0")], AccountProblem),
    "broken": (500, "INTERNAL", [], NotAccepted),
    "overloaded": (503, "UNAVAILABLE", [], NotAccepted),
    "too slow": (504, "DEADLINE_EXCEEDED", [], SubmitUncertain),
    "an odd shape": (500, ["x"], {"@type": 5}, SubmitUncertain),
    "odd details": (429, "RESOURCE_EXHAUSTED", [None, {"@type": 5}, quota(5)], RateLimited),
}


@pytest.mark.parametrize(("status", "name", "details", "raised"), ERRORS.values(), ids=ERRORS)
async def test_an_error_is_the_right_ones_business(google, status, name, details, raised):
    message = f"{KEY}: a boat"
    error = {"code": status, "message": message, "status": name, "details": details}
    google.answers("POST", SUBMIT, (status, {"error": error}))
    with pytest.raises(raised) as caught:
        await google.submit()
    assert type(caught.value) is raised
    assert KEY not in str(caught.value)
    assert "boat" not in str(caught.value)
    assert len(google.seen) == 1


MESSAGES = {
    "API key not valid. Please pass a valid API key.": (400, "INVALID_ARGUMENT", AccountProblem),
    "API key expired. Please renew the API key.": (400, "INVALID_ARGUMENT", AccountProblem),
    "Aspect ratio is not enabled for this model": (400, "INVALID_ARGUMENT", AccountProblem),
    "Request contains an invalid argument.": (400, "INVALID_ARGUMENT", InvalidInput),
    "Your text says: API key": (400, "INVALID_ARGUMENT", InvalidInput),
    "Quota exceeded for metric: x, limit: 0, model: y": (429, "RESOURCE_EXHAUSTED", AccountProblem),
    "Quota exceeded for metric: x, limit: 0\nPlease": (429, "RESOURCE_EXHAUSTED", AccountProblem),
    "Quota exceeded for metric: x, limit: 05": (429, "RESOURCE_EXHAUSTED", RateLimited),
    "Quota exceeded for metric: x, limit: 20, model": (429, "RESOURCE_EXHAUSTED", RateLimited),
    "Please check your plan and billing details.": (429, "RESOURCE_EXHAUSTED", RateLimited),
    "Your prepayment credits are depleted.": (429, "RESOURCE_EXHAUSTED", AccountProblem),
}


@pytest.mark.parametrize("message", MESSAGES)
async def test_a_message_without_details_is_understood_too(google, message):
    status, name, raised = MESSAGES[message]
    error = {"code": status, "message": message, "status": name}
    google.answers("POST", SUBMIT, (status, {"error": error}))
    with pytest.raises(raised) as caught:
        await google.submit()
    assert type(caught.value) is raised


@pytest.mark.parametrize(
    ("delay", "wait_s"),
    [("35.5s", 35.5), ("0s", 0.0), ("1e9s", 10.0), ("soon", 10.0), (7, 10.0), (None, 10.0)],
)
async def test_a_wait_is_as_long_as_the_api_says(google, delay, wait_s):
    details = [quota(MINUTE), RETRY | {"retryDelay": delay}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}
    google.answers("POST", SUBMIT, (429, {"error": error}))
    with pytest.raises(RateLimited) as caught:
        await google.submit()
    assert caught.value.retry_after_s == wait_s


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_a_page_of_a_proxy_says_nothing_about_the_bill(google, status):
    google.answers("POST", SUBMIT, (status, "<html>Bad Gateway</html>"))
    with pytest.raises(SubmitUncertain):
        await google.submit()
