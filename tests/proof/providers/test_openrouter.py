"""The provider for OpenRouter's images API against responses of its own client's types."""

import base64

import attrs
import pytest
import vendor_site
from vendor_site import Vendor, raising

import gateway_openrouter
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
    SettingsError,
    SubmitUncertain,
)
from gateway_openrouter.models import MODELS
from gateway_testing.fakes.api import picture_of
from tests.conftest import PNG, buy, running

KEY = "sk-or-v1-never-to-be-seen"
PATH = "/api/v1/images"
USAGE = {"prompt_tokens": 8, "completion_tokens": 1120, "total_tokens": 1128}


def picture(data=PNG, **usage):
    made = {"b64_json": base64.b64encode(data).decode(), "media_type": "image/jpeg"}
    return 200, {"created": 1_795_000_000, "data": [made], "usage": USAGE | usage}


class OpenRouter(Vendor):
    plugin = gateway_openrouter
    slug = "openrouter-nano-banana-2-1"

    def settings(self):
        return {"openrouter_api_key": KEY, "openrouter_base_url": f"{self.url}/api/v1"}


@pytest.fixture
def site(httpserver):
    return OpenRouter(httpserver)


# -- offers


def test_nothing_is_on_sale_without_a_key():
    assert vendor_site.on_sale(gateway_openrouter) == {}


def test_a_key_puts_every_model_on_sale_and_one_provider_serves_them(site):
    found = site.on_sale()
    assert list(found) == [model.slug for model in MODELS]
    assert len({id(provider) for _, provider in found.values()}) == 1


def test_a_model_of_the_operators_is_asked_like_a_known_one(site):
    added = "openai/gpt-image-2.6-flare=0.06 like openrouter-gpt-image-2-5-flare"
    found = site.on_sale(openrouter_models=added)
    ((slug, (endpoint, provider)),) = found.items()
    assert (slug, endpoint.price_units) == ("openrouter-openai-gpt-image-2-6-flare", 60_000)
    assert isinstance(provider, Probing)
    assert isinstance(provider, Closing)
    assert not isinstance(provider, Polling)


def test_a_model_without_a_price_stops_the_start(site):
    with pytest.raises(SettingsError, match="GATEWAY_OPENROUTER_MODELS"):
        site.on_sale(openrouter_models="some/model")


# -- requests


async def test_one_picture_is_asked_for_and_its_cost_is_told(site):
    site.answers("POST", PATH, picture(cost=0.0336))
    request = GenerationRequest(prompt="a boat", aspect_ratio="16:9", resolution="2K")
    result = await site.submit(request)
    (output,) = result.outputs
    assert (output.data, output.media_type) == (PNG, "image/jpeg")
    assert (result.cost_micros, result.is_cost_told) == (33_600, True)
    assert site.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert site.seen[0].json == {
        "model": "google/gemini-nano-banana-2.1",
        "prompt": "a boat",
        "aspect_ratio": "16:9",
        "resolution": "2K",
    }


async def test_a_model_without_sizes_is_sent_a_quality_and_no_resolution(site):
    site.answers("POST", PATH, picture(cost=0.013))
    await site.submit(slug="openrouter-gpt-image-2-5-flare")
    assert site.seen[0].json == {
        "model": "openai/gpt-image-2.5-flare",
        "prompt": "a boat",
        "aspect_ratio": "16:9",
        "quality": "medium",
    }


COSTS = {
    "whole": ({"cost": 0.048}, 48_000),
    "free": ({"cost": 0}, 0),
    "rounded up": ({"cost": 0.0000101}, 11),
    "none told": ({}, None),
    "null": ({"cost": None}, None),
    "no number": ({"cost": "0.05"}, None),
    "below zero": ({"cost": -1}, None),
    "absurd": ({"cost": 1e300}, None),
    "true": ({"cost": True}, None),
    "the operator's own vendor key": (
        {"cost": 0.002, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.04}},
        42_000,
    ),
    "the operator's own vendor key, its bill untold": ({"cost": 0.002, "is_byok": True}, None),
}


@pytest.mark.parametrize(("usage", "micros"), COSTS.values(), ids=COSTS)
async def test_the_cost_is_what_the_answer_says_or_unknown(site, usage, micros):
    site.answers("POST", PATH, picture(**usage))
    assert (await site.submit()).cost_micros == micros


# -- responses


ERRORS = {
    # OpenRouter's documentation of its errors (read 2026-11) and openrouter 1.3.84.
    "flagged by OpenRouter": (
        403,
        {"metadata": {"reasons": ["violence"], "flagged_input": "a boat"}},
        ContentPolicy,
    ),
    "flagged, and the reasons untold": (
        403,
        {"metadata": {"reasons": [], "flagged_input": "a boat"}},
        ContentPolicy,
    ),
    "refused by the vendor behind it": (
        400,
        {"metadata": {"raw": '{"error":{"code":"moderation_blocked"}}', "provider_name": "OpenAI"}},
        ContentPolicy,
    ),
    "a key without the right": (403, {"metadata": None}, AccountProblem),
    "no credit": (402, {"message": "Insufficient credits"}, AccountProblem),
    "wrong key": (401, {"message": "No auth credentials found"}, AccountProblem),
    "no such model": (404, {"message": "No endpoints found for acme/x"}, AccountProblem),
    "a model without that resolution": (
        400,
        {"message": "Unsupported parameter: resolution"},
        AccountProblem,
    ),
    "a prompt that talks of resolution": (
        400,
        {"message": "Provider returned error", "metadata": {"raw": "a boat, high resolution"}},
        InvalidInput,
    ),
    "a bad prompt": (400, {"message": "prompt is too long"}, InvalidInput),
    "too large": (413, {}, InvalidInput),
    "too fast": (429, {"message": "Rate limit exceeded"}, RateLimited),
    "a vendor that failed": (502, {"message": "Provider returned error"}, SubmitUncertain),
    "a vendor that is too busy": (529, {"message": "Provider overloaded"}, NotAccepted),
    "a time-out before OpenRouter": (524, {}, SubmitUncertain),
    "late, with the status in the body": (200, {"code": 402}, AccountProblem),
    "late, with a status of success": (200, {"code": 200, "message": "x"}, SubmitUncertain),
    "late, without a status": (200, {"message": "x"}, SubmitUncertain),
    "an odd code": (200, {"code": ["x"], "message": {}, "metadata": []}, SubmitUncertain),
}


@pytest.mark.parametrize(("status", "error", "raised"), ERRORS.values(), ids=ERRORS)
async def test_an_error_is_the_right_ones_business(site, status, error, raised):
    site.answers("POST", PATH, (status, {"error": {"code": status, "message": KEY} | error}))
    with pytest.raises(raised) as caught:
        await site.submit()
    assert type(caught.value) is raised
    assert KEY not in str(caught.value)
    assert len(site.asked("POST")) == 1


SCOPES = {"no such model": "model", "a model without that resolution": "choice"}


@pytest.mark.parametrize("name", [name for name in ERRORS if ERRORS[name][2] is AccountProblem])
async def test_what_concerns_one_model_takes_no_other_off_sale(site, name):
    status, error, _ = ERRORS[name]
    site.answers("POST", PATH, (status, {"error": {"code": status} | error}))
    with pytest.raises(AccountProblem) as caught:
        await site.submit()
    assert caught.value.scope == SCOPES.get(name, "vendor")


ODD = {
    "no picture": ({"created": 1, "data": []}, ContentPolicy),
    "no data": ({"created": 1}, ContentPolicy),
    "an empty picture": ({"data": [{"b64_json": ""}]}, ContentPolicy),
    "odd entries": ({"data": [7, None, {"b64_json": 7}]}, ContentPolicy),
    "no Base64": ({"data": [{"b64_json": "%%%"}]}, SubmitUncertain),
    "a list": ([1], SubmitUncertain),
    "no JSON": ("<html>", SubmitUncertain),
}


@pytest.mark.parametrize(("body", "raised"), ODD.values(), ids=ODD)
async def test_an_odd_success_is_no_picture(site, body, raised):
    site.answers("POST", PATH, (200, body))
    with pytest.raises(raised) as caught:
        await site.submit()
    assert type(caught.value) is raised


# -- health


HEALTH = {
    "no limit": (200, {"data": {"limit_remaining": None}}, None),
    "some left": (200, {"data": {"limit_remaining": 0.5}}, None),
    "an odd answer": (200, {"data": []}, None),
    "spent": (200, {"data": {"limit_remaining": 0}}, AccountProblem),
    "wrong key": (401, {"error": {"code": 401, "message": "User not found."}}, AccountProblem),
}


@pytest.mark.parametrize(("status", "body", "raised"), HEALTH.values(), ids=HEALTH)
async def test_health_asks_what_the_key_may_spend(site, status, body, raised):
    site.answers("GET", "/api/v1/key", (status, body))
    seller = site.seller()
    try:
        with raising(raised):
            await seller.provider.health()
    finally:
        await seller.provider.close()
    assert not site.asked("POST")


# -- prices

# US dollars per picture by size, from the sources in models.py, with OpenRouter's 5.5 %.
SIZES = {
    "openrouter-flux-3-image": {"1K": 0.048, "2K": 0.10},
    "openrouter-nano-banana-2-1": {"1K": 0.0336, "2K": 0.0504, "4K": 0.114},
    "openrouter-seedream-5-flash": {"1K": 0.018, "2K": 0.018},
    "openrouter-seedream-5-pro": {"1K": 0.045, "2K": 0.09},
    "openrouter-qwen-image-3": {"1K": 0.03, "2K": 0.03},
    "openrouter-grok-imagine-2": {"1K": 0.06, "2K": 0.08},
    "openrouter-gpt-image-2-5-flare": {None: 0.03},
    # With the input picture: 1,120 tokens of 2 dollars a million, and 1,536 of 8 dollars.
    "openrouter-flux-3-image-edit": {"1K": 0.048, "2K": 0.10},
    "openrouter-nano-banana-2-1-edit": {"1K": 0.03584, "2K": 0.05264, "4K": 0.11624},
    "openrouter-gpt-image-2-5-flare-edit": {None: 0.0423},
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.slug)
def test_no_size_is_sold_below_its_cost(model):
    costs = {size: usd * 1.055 for size, usd in SIZES[model.slug].items()}
    assert set(costs) == set(model.resolutions or (None,))
    for size, usd in costs.items():
        assert model.costs.get(size, model.cost_micros) >= usd * 999_800
        assert float(model.prices.get(size, model.price)) >= 1.2 * usd


# -- a complete sale


async def test_a_sale_keeps_what_openrouter_billed(settings, site, payer):
    # Otherwise the probe after the start takes it off sale, before or after the sale.
    site.answers("GET", "/api/v1/key", (200, {"data": {"limit_remaining": None}}))
    site.answers("POST", PATH, picture(picture_of(1024, 1024), cost=0.0311))
    selling = attrs.evolve(settings, plugin_values=site.settings())
    async with running(selling) as gateway:
        url = "/api/x402/openrouter-nano-banana-2-1"
        assert (await buy(gateway, None, url=url)).status_code == 402
        answer = await buy(gateway, payer.header(60_000), url=url)
        task = await gateway.wait((await answer.get_json())["taskId"])
        job = (await gateway.services.store.jobs_of([task["taskId"]]))[task["taskId"]]
    assert task["status"] == "completed"
    assert (job.cost_micros, job.cost_source) == (31_100, "told")
