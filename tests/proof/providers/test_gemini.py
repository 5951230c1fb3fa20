"""The provider for Google's Gemini API against answers as its documentation shows them."""

import base64

import attrs
import pytest
import vendor_site
from pytest_httpserver import HTTPServer
from vendor_site import Vendor

import gateway_gemini
from gateway import (
    AccountProblem,
    Closing,
    ContentPolicy,
    GenerationRequest,
    InvalidInput,
    NotAccepted,
    Polling,
    Probing,
    RateLimited,
    Settings,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from gateway.settings import EndpointOverride
from tests.conftest import PNG, buy, running

KEY = "AIza-never-to-be-seen"
FLASH = "gemini-3-1-flash-image"
LITE = "gemini-3-1-flash-lite-image"
PATH = "/v1beta/models/gemini-3.1-flash-image"
SUBMIT = f"{PATH}:generateContent"
BOAT = GenerationRequest(prompt="a boat", aspect_ratio="16:9", output_format="jpg", resolution="2K")
ENCODED = base64.b64encode(PNG).decode()


def candidate(*parts, **more):
    made = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", "index": 0}
    return {"candidates": [made | more]}


def part(data=ENCODED, **more):
    return {"inlineData": {"mimeType": "image/png", "data": data}} | more


PICTURE = candidate(part()) | {
    "usageMetadata": {
        "promptTokenCount": 9,
        "candidatesTokenCount": 1680,
        "totalTokenCount": 1689,
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1680}],
    },
    "modelVersion": "gemini-3.1-flash-image",
    "responseId": "k2xvaJ",
}


class Google(Vendor):
    plugin = gateway_gemini
    slug = FLASH
    request = BOAT

    def settings(self):
        return {"gemini_api_key": KEY, "gemini_base_url": self.url}


@pytest.fixture
def google():
    with HTTPServer(threaded=True) as server:
        yield Google(server)


def on_sale(**values):
    """Return what a gateway sells that no test asks for a picture."""
    here = {"gemini_api_key": KEY, "gemini_base_url": "http://x"}
    return vendor_site.on_sale(gateway_gemini, **(here | values))


# -- what is asked


async def test_one_picture_is_asked_for_and_returned(google):
    google.answers("POST", SUBMIT, (200, PICTURE))
    (output,) = (await google.submit()).outputs
    assert (output.data, output.media_type) == (PNG, "image/png")
    (asked,) = google.seen
    assert asked.headers["x-goog-api-key"] == KEY
    assert asked.query_string == b""  # a key in the address ends in other people's logs
    assert asked.json == {
        "contents": [{"role": "user", "parts": [{"text": "a boat"}]}],
        "generationConfig": {
            "responseModalities": ["IMAGE"],
            "imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"},
        },
    }


async def test_a_model_of_one_size_is_not_asked_for_a_size(google):
    google.answers(
        "POST", "/v1beta/models/gemini-3.1-flash-lite-image:generateContent", (200, PICTURE)
    )
    await google.submit(attrs.evolve(BOAT, resolution="1K"), LITE)
    assert google.seen[0].json["generationConfig"]["imageConfig"] == {"aspectRatio": "16:9"}


async def test_a_model_that_the_operator_added_is_asked_by_its_name(google):
    google.answers("POST", "/v1beta/models/gemini-9-image:generateContent", (200, PICTURE))
    added = ("gemini-9-image=0.12 like gemini-3-1-flash-image",)
    await google.submit(slug="gemini-9-image", gemini_models=added)
    assert len(google.seen) == 1


async def test_a_name_of_a_model_cannot_lead_elsewhere(google):
    google.server.expect_request("/evil").respond_with_json(PICTURE)
    added = ("../../evil?=0.12 like gemini-3-1-flash-image",)
    (slug,) = google.on_sale(gemini_models=added)
    with pytest.raises((AccountProblem, SubmitUncertain, Transient)):
        await google.submit(slug=slug, gemini_models=added)


async def test_what_it_cost_is_not_guessed_from_tokens(google):
    google.answers("POST", SUBMIT, (200, PICTURE))
    assert (await google.submit()).cost_micros is None


# -- what comes back


@pytest.mark.parametrize(
    "body",
    [
        candidate({"text": "Here it is:"}, part()),
        candidate(part("AAAA", thought=True), part()),  # drafts of a thinking model
        candidate(part(), part("AAAA")),
        {"candidates": [{"finishReason": "STOP"}, *PICTURE["candidates"]]},
    ],
)
async def test_the_first_picture_that_is_no_draft_is_the_result(google, body):
    google.answers("POST", SUBMIT, (200, body))
    (output,) = (await google.submit()).outputs
    assert output.data == PNG


REASONS = [
    *("SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII", "LANGUAGE", "OTHER"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "NO_IMAGE"),
    *("MAX_TOKENS", "STOP"),
]


@pytest.mark.parametrize("reason", REASONS)
async def test_a_generation_that_ended_without_a_picture_is_a_refusal(google, reason):
    ended = {"finishReason": reason, "finishMessage": "Unable to show: a boat", "index": 0}
    google.answers("POST", SUBMIT, (200, {"candidates": [ended]}))
    with pytest.raises(ContentPolicy, match=rf": {reason}\.") as raised:
        await google.submit()
    assert "boat" not in str(raised.value)
    assert len(google.seen) == 1


@pytest.mark.parametrize(
    "reason", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY"]
)
async def test_a_prompt_that_was_blocked_is_a_refusal(google, reason):
    blocked = {"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 9}}
    google.answers("POST", SUBMIT, (200, blocked))
    with pytest.raises(ContentPolicy, match=reason):
        await google.submit()


@pytest.mark.parametrize(
    "body",
    [
        *({}, [], 5, None, {"candidates": None}, {"candidates": [None]}, {"candidates": [{}]}),
        candidate(),
        candidate({"text": "I cannot draw that."}),
        candidate(part("AAAA", thought=True)),
        candidate(part("")),
        candidate({"inlineData": None}),
        candidate({"inlineData": {"data": 5}}),
        {"candidates": [{"finishReason": "a boat"}]},
        {"candidates": [{"finishReason": 5, "content": 5}], "promptFeedback": []},
    ],
)
async def test_success_without_a_picture_is_a_refusal(google, body):
    google.answers("POST", SUBMIT, (200, body))
    with pytest.raises(ContentPolicy) as raised:
        await google.submit()
    assert "boat" not in str(raised.value)


async def test_success_that_nobody_can_read_is_not_asked_for_again(google):
    google.answers("POST", SUBMIT, (200, "<html>"))
    with pytest.raises(SubmitUncertain):
        await google.submit()


async def test_what_is_not_base64_was_made_all_the_same(google):
    google.answers("POST", SUBMIT, (200, candidate(part("§"))))
    with pytest.raises(SubmitUncertain):
        await google.submit()


# -- errors


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
        "quotaDimensions": {"location": "global", "model": "gemini-3.1-flash-image"},
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
    "overloaded": (503, "UNAVAILABLE", [], SubmitUncertain),
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


# -- whether it works


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        (
            (400, {"error": {"status": "INVALID_ARGUMENT", "details": [info("API_KEY_INVALID")]}}),
            AccountProblem,
        ),
        ((403, {"error": {"status": "PERMISSION_DENIED"}}), AccountProblem),
        ((404, {"error": {"status": "NOT_FOUND"}}), AccountProblem),
        ((503, "<html>"), Transient),
        ((200, {"name": "models/gemini-3.1-flash-image"}), None),
    ],
)
async def test_health_asks_what_the_model_is(google, reply, raised):
    google.answers("GET", PATH, reply)
    _, provider = google.on_sale()[FLASH]
    if raised is None:
        await provider.health()
    else:
        with pytest.raises(raised):
            await provider.health()
    await provider.close()
    (asked,) = google.seen
    assert (asked.method, asked.headers["x-goog-api-key"]) == ("GET", KEY)


async def test_health_asks_for_the_model_that_the_operator_put_in_its_place(google):
    google.answers("GET", "/v1beta/models/other", (200, {}))
    found = []
    settings = Settings(
        plugin_values={"gemini_api_key": KEY, "gemini_base_url": google.url},
        endpoints={FLASH: EndpointOverride(model="other")},
    )
    gateway_gemini.register_endpoints(lambda *pair: found.append(pair), settings)
    provider = next(provider for endpoint, provider in found if endpoint.slug == FLASH)
    await provider.health()
    await provider.close()
    assert len(google.seen) == 1


# -- what is on sale


def test_nothing_is_on_sale_without_a_key():
    assert on_sale(gemini_api_key="") == {}
    assert list(on_sale()) == [FLASH, "gemini-3-pro-image", LITE]


def test_each_model_is_a_provider_of_its_own():
    """Google counts requests by model, and one that is retired must not stop the others."""
    providers = [provider for _, provider in on_sale().values()]
    assert len({id(provider) for provider in providers}) == 3
    assert all(isinstance(provider, Probing) for provider in providers)
    assert all(isinstance(provider, Closing) for provider in providers)
    assert not any(isinstance(provider, Polling) for provider in providers)


def test_a_larger_picture_costs_more_where_it_costs_the_operator_more():
    prices = {
        slug: [
            endpoint.price_of(attrs.evolve(BOAT, resolution=r)) for r in endpoint.resolution.values
        ]
        for slug, (endpoint, _) in on_sale().items()
    }
    assert prices == {
        FLASH: [100_000, 150_000, 220_000],
        "gemini-3-pro-image": [190_000, 190_000, 340_000],
        LITE: [50_000],
    }


def test_limits_are_the_operators():
    _, provider = on_sale(gemini_max_concurrency=3, gemini_submits_per_minute=10)[FLASH]
    assert (provider.traits.max_concurrency, provider.traits.submits_per_minute) == (3, 10)
    _, provider = on_sale()[FLASH]
    assert provider.traits.max_concurrency is None


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"gemini_models": ("nonsense",)}, "GATEWAY_GEMINI_MODELS"),
        ({"gemini_base_url": "generativelanguage"}, "GATEWAY_GEMINI_BASE_URL"),
        ({"gemini_max_concurrency": -1}, "GATEWAY_GEMINI_MAX_CONCURRENCY"),
        ({"gemini_max_concurrency": "many"}, "GATEWAY_GEMINI_MAX_CONCURRENCY"),
    ],
)
def test_a_wrong_setting_is_named(values, named):
    with pytest.raises(SettingsError, match=named):
        on_sale(**values)


def test_the_key_is_shown_nowhere():
    assert KEY not in repr(on_sale())


# -- a purchase


async def test_a_picture_is_bought_from_end_to_end(settings, google, payer):
    """The API knows no formats and sends PNG: the buyer gets the WebP that was asked for."""
    google.answers("GET", PATH, (200, {}))
    google.answers("POST", SUBMIT, (500, {"error": {"status": "INTERNAL"}}), (200, PICTURE))
    values = {"gemini_api_key": KEY, "gemini_base_url": google.url, "gemini_models": FLASH}
    async with running(attrs.evolve(settings, plugin_values=values)) as shop:
        url = f"/api/x402/{FLASH}"
        fields = {"resolution": "2K", "output_format": "webp"}
        answer = await buy(shop, payer.header(150_000), url=url, **fields)
        assert answer.status_code == 200
        task = await shop.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert task["result"]["outputs"][0]["mimeType"] == "image/webp"
    assert len(google.asked("POST")) == 2
