"""The provider for Google's Gemini API against the responses in its documentation."""

import attrs
import pytest
import vendor_site
from gemini_site import (
    BANANA,
    BOAT,
    KEY,
    LITE,
    PATH,
    PICTURE,
    PRO,
    SUBMIT,
    Google,
    candidate,
    part,
    sized,
)
from pytest_httpserver import HTTPServer

import gateway_gemini
from gateway import (
    AccountProblem,
    Closing,
    ContentPolicy,
    Polling,
    Probing,
    ResultUnusable,
    Settings,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from gateway.settings import EndpointOverride
from gateway_gemini.models import MODELS
from tests.conftest import PNG, buy, running


@pytest.fixture
def google():
    with HTTPServer(threaded=True) as server:
        yield Google(server)


def on_sale(**values):
    """Return the offers that need no picture."""
    here = {"gemini_api_key": KEY, "gemini_base_url": "http://x"}
    found = vendor_site.on_sale(gateway_gemini, **(here | values))
    # Edits are tested in test_gemini_edits.py.
    return {slug: one for slug, one in found.items() if not one[0].edits_pictures}


# -- requests


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


async def test_the_version_of_the_api_is_the_operators(google):
    # google-genai 3.4.0 (PyPI, 2026-11-22) asks /v1; Google's changelog of 2026-09 still /v1beta.
    google.answers("POST", SUBMIT.replace("v1beta", "v1"), (200, PICTURE))
    await google.submit(gemini_api_version="v1")
    assert len(google.seen) == 1


async def test_a_model_of_one_size_is_not_asked_for_a_size(google):
    google.answers(
        "POST", "/v1beta/models/gemini-3.1-flash-lite-image:generateContent", (200, PICTURE)
    )
    await google.submit(attrs.evolve(BOAT, resolution="1K"), LITE)
    assert google.seen[0].json["generationConfig"]["imageConfig"] == {"aspectRatio": "16:9"}


async def test_a_model_that_the_operator_added_is_asked_by_its_name(google):
    google.answers("POST", "/v1beta/models/gemini-9-image:generateContent", (200, PICTURE))
    added = ("gemini-9-image=0.12 like gemini-nano-banana-2-1",)
    await google.submit(slug="gemini-9-image", gemini_models=added)
    assert len(google.seen) == 1


async def test_a_name_of_a_model_cannot_lead_elsewhere(google):
    google.server.expect_request("/evil").respond_with_json(PICTURE)
    added = ("../../evil?=0.12 like gemini-nano-banana-2-1",)
    slug, _ = google.on_sale(gemini_models=added)
    with pytest.raises((AccountProblem, SubmitUncertain, Transient)):
        await google.submit(slug=slug, gemini_models=added)


async def test_what_it_cost_is_not_guessed_from_tokens(google):
    google.answers("POST", SUBMIT, (200, PICTURE))
    assert (await google.submit()).cost_micros is None


# -- responses


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
    *("SAFETY", "PROHIBITED_CONTENT", "RECITATION", "BLOCKLIST", "SPII", "LANGUAGE", "STOP"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "NO_IMAGE"),
]


@pytest.mark.parametrize("reason", REASONS)
async def test_a_generation_that_ended_without_a_picture_is_a_refusal(google, reason):
    ended = {"finishReason": reason, "finishMessage": "Unable to show: a boat", "index": 0}
    google.answers("POST", SUBMIT, (200, {"candidates": [ended]}))
    with pytest.raises(ContentPolicy, match=rf": {reason}\.") as raised:
        await google.submit()
    assert "boat" not in str(raised.value)
    assert len(google.seen) == 1


# The reasons are those of `FinishReason` in google-genai 3.4.0 (PyPI, 2026-11-22).
@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("PUP_LIMITED_DISABLED", AccountProblem),
        ("MAX_TOKENS", ResultUnusable),
        ("MALFORMED_RESPONSE", ResultUnusable),
        ("OTHER", ResultUnusable),
        ("IMAGE_OTHER", ResultUnusable),
    ],
)
async def test_an_end_that_no_filter_causes_is_not_called_the_buyers_content(google, reason, error):
    google.answers("POST", SUBMIT, (200, {"candidates": [{"finishReason": reason}]}))
    with pytest.raises(error, match=rf": {reason}\.") as raised:
        await google.submit()
    assert type(raised.value) is error
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
        *({}, {"candidates": None}, {"candidates": [{}]}),
        candidate(),
        candidate({"text": "I cannot draw that."}),
        candidate(part("AAAA", thought=True)),
        candidate(part("")),
        candidate({"inlineData": None}),
        {"candidates": [{"finishReason": "a boat"}]},
    ],
)
async def test_success_without_a_picture_is_a_refusal(google, body):
    google.answers("POST", SUBMIT, (200, body))
    with pytest.raises(ContentPolicy) as raised:
        await google.submit()
    assert "boat" not in str(raised.value)


@pytest.mark.parametrize(
    "body",
    [
        *("<html>", [], 5, None, {"candidates": [None]}),
        candidate({"inlineData": {"data": 5}}),
        {"candidates": [{"finishReason": 5, "content": 5}], "promptFeedback": []},
    ],
)
async def test_success_that_nobody_can_read_is_not_asked_for_again(google, body):
    google.answers("POST", SUBMIT, (200, body))
    with pytest.raises(SubmitUncertain):
        await google.submit()


async def test_what_is_not_base64_was_made_all_the_same(google):
    google.answers("POST", SUBMIT, (200, candidate(part("§"))))
    with pytest.raises(SubmitUncertain):
        await google.submit()


# -- health


API_KEY_INVALID = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
}


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        (
            (400, {"error": {"status": "INVALID_ARGUMENT", "details": [API_KEY_INVALID]}}),
            AccountProblem,
        ),
        ((403, {"error": {"status": "PERMISSION_DENIED"}}), AccountProblem),
        ((404, {"error": {"status": "NOT_FOUND"}}), AccountProblem),
        ((503, "<html>"), Transient),
        ((200, {"name": "models/gemini-nano-banana-2.1"}), None),
    ],
)
async def test_health_asks_what_the_model_is(google, reply, raised):
    google.answers("GET", PATH, reply)
    _, provider = google.on_sale()[BANANA]
    with vendor_site.raising(raised):
        await provider.health()
    await provider.close()
    (asked,) = google.seen
    assert (asked.method, asked.headers["x-goog-api-key"]) == ("GET", KEY)


async def test_health_asks_for_the_model_that_the_operator_put_in_its_place(google):
    google.answers("GET", "/v1beta/models/other", (200, {}))
    found = []
    settings = Settings(
        plugin_values={"gemini_api_key": KEY, "gemini_base_url": google.url},
        endpoints={BANANA: EndpointOverride(model="other")},
    )
    gateway_gemini.register_endpoints(lambda *pair: found.append(pair), settings)
    provider = next(provider for endpoint, provider in found if endpoint.slug == BANANA)
    await provider.health()
    await provider.close()
    assert len(google.seen) == 1


# -- offers


def test_a_model_that_google_has_retired_is_not_sold():
    # Google's changelog of 2026-10-06 (ai.google.dev) deprecates 3.1 Flash Image; according to two
    # third parties it was shut down on 2026-10-29.
    retired = "gemini-3-1-flash-image"
    assert retired not in on_sale()
    ((endpoint, _),) = on_sale(gemini_models=(retired,)).values()
    assert endpoint.retires == "2026-10-29"


def test_every_model_of_ours_earns_more_than_it_costs():
    for model in MODELS:
        assert float(model.price) * 1_000_000 >= 1.2 * model.cost_micros


def test_nothing_is_on_sale_without_a_key():
    assert on_sale(gemini_api_key="") == {}
    assert list(on_sale()) == [BANANA, PRO, LITE]


def test_each_model_is_a_provider_of_its_own():
    """Google counts requests by model, and a retired one must not stop the others."""
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
        BANANA: [50_000, 80_000, 170_000],
        PRO: [190_000, 190_000, 340_000],
        LITE: [50_000],
    }


def test_limits_are_the_operators():
    _, provider = on_sale(gemini_max_concurrency=3, gemini_submits_per_minute=10)[BANANA]
    assert (provider.traits.max_concurrency, provider.traits.submits_per_minute) == (3, 10)
    _, provider = on_sale()[BANANA]
    assert provider.traits.max_concurrency is None


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"gemini_models": ("nonsense",)}, "GATEWAY_GEMINI_MODELS"),
        ({"gemini_api_version": "v1beta/../v1"}, "GATEWAY_GEMINI_API_VERSION"),
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
    """The API has no format option and sends PNG; the buyer gets the WebP that he chose."""
    google.answers("GET", PATH, (200, {}))
    google.answers(
        "POST", SUBMIT, (500, {"error": {"status": "INTERNAL"}}), (200, sized(2048, 2048))
    )
    values = {"gemini_api_key": KEY, "gemini_base_url": google.url, "gemini_models": BANANA}
    async with running(attrs.evolve(settings, plugin_values=values)) as shop:
        url = f"/api/x402/{BANANA}"
        fields = {"resolution": "2K", "output_format": "webp"}
        answer = await buy(shop, payer.header(80_000), url=url, **fields)
        assert answer.status_code == 200
        task = await shop.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert task["result"]["outputs"][0]["mimeType"] == "image/webp"
    assert len(google.asked("POST")) == 2
