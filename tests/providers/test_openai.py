"""The OpenAI-compatible provider against answers as the real APIs give them."""

import base64
import json

import attrs
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

import gateway_openai
from gateway import (
    AccountProblem,
    ContentPolicy,
    GenerationRequest,
    InvalidInput,
    Outbound,
    RateLimited,
    Settings,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from gateway.catalog import Catalog
from gateway.lane import LaneJob
from gateway.settings import EndpointOverride, load_settings
from gateway_openai import OPENAI
from gateway_openai.painter import Painter
from gateway_openai.sizes import SIZES
from tests.conftest import PNG, buy, running

KEY = "sk-never-to-be-seen"
PATH = "/v1/images/generations"
BOAT = GenerationRequest(prompt="a boat", aspect_ratio="16:9", output_format="jpg", resolution="1K")
PICTURE = {
    "created": 1_795_000_000,
    "data": [{"b64_json": base64.b64encode(PNG).decode()}],
    "size": "1536x864",
    "output_format": "jpeg",
    "usage": {"input_tokens": 8, "output_tokens": 1056, "total_tokens": 1064},
}


@pytest.fixture
def site():
    with HTTPServer(threaded=True) as server:
        yield server


def answers(site, *replies):
    """Let the API answer these in turn, and return the requests it got."""
    seen, left = [], list(replies)

    def answer(request):
        seen.append(request)
        status, body, *headers = left.pop(0) if len(left) > 1 else left[0]
        text = body if isinstance(body, bytes | str) else json.dumps(body)
        return Response(text, status, *headers, content_type="application/json")

    site.expect_request(PATH, method="POST").respond_with_handler(answer)
    return seen


def on_sale(site, **changes):
    """Return what the plugin registers: nothing, or an endpoint and its provider."""
    base_url = site.url_for("/v1") if site else OPENAI
    settings = Settings(**({"openai_api_key": KEY, "openai_base_url": base_url} | changes))
    found = []
    gateway_openai.register_endpoints(lambda *pair: found.append(pair), settings)
    return found


async def submit(site, request=BOAT, **changes):
    ((endpoint, provider),) = on_sale(site, **changes)
    job = LaneJob(task_id="t", attempt=1, endpoint=endpoint, report=lambda _: None)
    try:
        return await provider.submit(request, job)
    finally:
        await provider.close()


# -- what is asked


async def test_one_picture_is_asked_for_and_returned(site):
    seen = answers(site, (200, PICTURE))
    (output,) = (await submit(site)).outputs
    assert output.data == PNG
    assert seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert seen[0].json == {
        "model": "gpt-image-2",
        "prompt": "a boat",
        "n": 1,
        "size": "1536x864",
        "output_format": "jpeg",
        "response_format": "b64_json",  # only to servers that are not OpenAI's
    }


async def test_openai_itself_is_not_sent_a_field_that_it_refuses(site):
    seen = answers(site, (200, PICTURE))
    provider = Painter(Outbound(site.url_for("/v1")), is_openai=True)
    ((endpoint, _),) = on_sale(site)
    job = LaneJob(task_id="t", attempt=1, endpoint=endpoint, report=lambda _: None)
    await provider.submit(BOAT, job)
    await provider.close()
    assert "response_format" not in seen[0].json


@pytest.mark.parametrize(("ratio", "resolution"), SIZES)
def test_every_size_has_its_ratio_and_sides_the_models_take(ratio, resolution):
    width, height = map(int, SIZES[ratio, resolution].split("x"))
    across, down = map(int, ratio.split(":"))
    assert width * down == height * across
    assert width % 16 == height % 16 == 0
    assert max(width, height) <= 3840
    assert width * height <= 3840 * 2160


async def test_a_server_without_keys_gets_none(site):
    seen = answers(site, (200, PICTURE))
    await submit(site, openai_api_key="")
    assert "Authorization" not in seen[0].headers


async def test_the_operators_model_is_the_one_that_is_asked(site):
    seen = answers(site, (200, PICTURE))
    await submit(site, openai_image_model="flux-dev")
    assert seen[0].json["model"] == "flux-dev"


# -- what comes back


ERRORS = {
    "moderation of the prompt": (
        400,
        {"code": "moderation_blocked", "type": "image_generation_user_error"},
        ContentPolicy,
    ),
    "older moderation": (400, {"code": "content_policy_violation"}, ContentPolicy),
    "no credit": (
        429,
        {"code": "insufficient_quota", "type": "insufficient_quota"},
        AccountProblem,
    ),
    "hard limit": (400, {"code": "billing_hard_limit_reached"}, AccountProblem),
    "wrong key": (401, {"code": "invalid_api_key"}, AccountProblem),
    "unverified": (403, {"code": None, "type": "invalid_request_error"}, AccountProblem),
    "no such model": (404, {"code": "model_not_found"}, AccountProblem),
    "a model without that size": (
        400,
        {"code": "invalid_value", "param": "size", "type": "invalid_request_error"},
        AccountProblem,
    ),
    "too fast": (429, {"code": "rate_limit_exceeded", "type": "requests"}, RateLimited),
    "a bad prompt": (400, {"code": "invalid_value", "param": "prompt"}, InvalidInput),
    "overloaded": (503, {"code": None, "type": "server_error"}, Transient),
    "an odd code": (500, {"code": ["x"], "type": {}}, Transient),
}


@pytest.mark.parametrize(("status", "error", "raised"), ERRORS.values(), ids=ERRORS)
async def test_an_error_is_the_right_ones_business(site, status, error, raised):
    message = f"Incorrect: {KEY}, a boat"
    answers(site, (status, {"error": {"message": message} | error}))
    with pytest.raises(raised) as caught:
        await submit(site)
    assert type(caught.value) is raised
    assert KEY not in str(caught.value)
    assert "boat" not in str(caught.value)
    assert len(site.log) == 1


async def test_a_wait_is_as_long_as_the_api_says(site):
    answers(site, (429, {"error": {"code": "rate_limit_exceeded"}}, {"Retry-After": "17"}))
    with pytest.raises(RateLimited) as caught:
        await submit(site)
    assert caught.value.retry_after_s == 17


@pytest.mark.parametrize(
    "body",
    [
        {"data": []},
        {"data": None},
        {"created": 1},
        {"data": [{"revised_prompt": "no"}]},
        {"data": [{"b64_json": ""}]},
        {"data": [{"b64_json": None, "url": None}]},
        {"data": [None]},
        [],
        5,
    ],
)
async def test_success_without_a_picture_is_a_refusal(site, body):
    answers(site, (200, body))
    with pytest.raises(ContentPolicy):
        await submit(site)


async def test_success_that_nobody_can_read_is_not_asked_for_again(site):
    answers(site, (200, "<html>"))
    with pytest.raises(SubmitUncertain):
        await submit(site)


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_a_page_of_a_proxy_is_another_attempt(site, status):
    answers(site, (status, "<html>Bad Gateway</html>"))
    with pytest.raises(Transient):
        await submit(site)


@pytest.mark.parametrize("encoded", ["§§§", "data:image/png;base64,AAAA", "A"])
async def test_what_is_not_base64_is_another_attempt(site, encoded):
    answers(site, (200, {"data": [{"b64_json": encoded}]}))
    with pytest.raises(Transient):
        await submit(site)


async def test_more_pictures_than_were_asked_for_are_not_sold(site):
    answers(site, (200, {"data": PICTURE["data"] * 3}))
    assert len((await submit(site)).outputs) == 1


@attrs.define
class Shelf:
    """What an API's links lead to."""

    found: list
    asked: list = attrs.field(factory=list)

    async def download(self, outbound, url, *, timeout_s):
        self.asked.append(url)
        step = self.found.pop(0)
        if isinstance(step, Exception):
            raise step
        return step


@pytest.fixture
def shelf(monkeypatch):
    shelf = Shelf([])

    async def download(self, url, **more):
        return await shelf.download(self, url, **more)

    monkeypatch.setattr(Outbound, "download", download)
    return shelf


async def test_a_link_is_fetched_and_a_hiccup_costs_no_second_picture(site, shelf):
    link = "https://cdn.example/a.png?token=1"
    answers(site, (200, {"data": [{"url": link}]}))
    shelf.found = [Transient("busy"), PNG]
    (output,) = (await submit(site)).outputs
    assert (output.data, shelf.asked, len(site.log)) == (PNG, [link, link], 1)


async def test_a_picture_out_of_reach_is_not_made_and_billed_again(site, shelf):
    answers(site, (200, {"data": [{"url": "https://cdn.example/a.png?token=1"}]}))
    shelf.found = [Transient("gone")] * 3
    with pytest.raises(SubmitUncertain) as caught:
        await submit(site)
    assert "token" not in str(caught.value)


async def test_a_link_to_the_network_behind_us_is_not_followed(site):
    inside = site.url_for("/secret")
    answers(site, (200, {"data": [{"url": inside}]}))
    with pytest.raises(SubmitUncertain):
        await submit(site)
    assert len(site.log) == 1


# -- what is on sale


def test_nothing_is_on_sale_without_a_key():
    assert on_sale(None, openai_api_key="") == []
    assert len(on_sale(None)) == 1


def test_price_and_resolutions_are_the_operators():
    ((endpoint, _),) = on_sale(
        None, openai_image_price="0.5", openai_image_resolutions=("4K", "2K")
    )
    assert (endpoint.price_units, endpoint.resolution.values) == (500_000, ("2K", "4K"))
    assert endpoint.resolution.default == "2K"
    ((endpoint, _),) = on_sale(None)
    assert endpoint.resolution.values == ("1K",)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"openai_image_price": "free"}, "GATEWAY_OPENAI_IMAGE_PRICE"),
        ({"openai_image_resolutions": ("8K",)}, "GATEWAY_OPENAI_IMAGE_RESOLUTIONS"),
    ],
)
def test_a_wrong_setting_is_named(changes, named):
    with pytest.raises(SettingsError, match=named):
        on_sale(None, **changes)


@pytest.mark.parametrize("url", ["", "api.openai.com", "ftp://x/v1", "https:///v1"])
def test_a_wrong_address_stops_the_start(monkeypatch, url):
    monkeypatch.setenv("GATEWAY_WALLET", "0x" + "11" * 20)
    monkeypatch.setenv("GATEWAY_OPENAI_BASE_URL", url)
    with pytest.raises(SettingsError, match="GATEWAY_OPENAI_BASE_URL"):
        load_settings()


def test_the_table_of_the_endpoint_wins():
    catalog = Catalog({"openai-image": EndpointOverride(price="0.9", model="other")})
    ((endpoint, provider),) = on_sale(None)
    catalog.register(endpoint, provider, "gateway_openai")
    assert catalog["openai-image"].endpoint.price_units == 900_000
    assert catalog["openai-image"].endpoint.model == "other"


def test_the_key_is_shown_nowhere():
    ((endpoint, provider),) = on_sale(None)
    assert KEY not in repr((endpoint, provider))


# -- a purchase


async def test_a_picture_is_bought_from_end_to_end(settings, site, payer):
    """The API sends PNG although WebP was asked for, as some servers do: the buyer gets WebP."""
    busy = (429, {"error": {"code": "rate_limit_exceeded"}}, {"Retry-After": "1"})
    seen = answers(site, (500, {}), busy, (200, PICTURE))
    selling = attrs.evolve(
        settings,
        openai_api_key=KEY,
        openai_base_url=site.url_for("/v1"),
        openai_image_price="0.05",
    )
    async with running(selling) as gateway:
        url = "/api/x402/openai-image"
        fields = {"aspect_ratio": "16:9", "output_format": "webp"}
        assert (await buy(gateway, None, url=url, **fields)).status_code == 402
        answer = await buy(gateway, payer.header(50_000), url=url, **fields)
        assert answer.status_code == 200
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["attempt"]) == ("completed", 2)
    assert task["result"]["outputs"][0]["mimeType"] == "image/webp"
    assert [request.json["output_format"] for request in seen] == ["webp"] * 3


async def test_a_refused_prompt_is_owed_back(settings, site, payer):
    answers(site, (400, {"error": {"code": "moderation_blocked"}}))
    selling = attrs.evolve(settings, openai_api_key=KEY, openai_base_url=site.url_for("/v1"))
    async with running(selling) as gateway:
        answer = await buy(gateway, payer.header(80_000), url="/api/x402/openai-image")
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["details"], task["refund"]["amount"]) == ("content_policy", 0.08)
    assert len(site.log) == 1
