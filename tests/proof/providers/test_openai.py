"""The OpenAI-compatible provider against responses of the real APIs."""

import base64

import attrs
import pytest
import vendor_site
from openai_site import BOAT, KEY, PATH, PICTURE, CompatibleServer
from pytest_httpserver import HTTPServer
from vendor_site import PlainJob, raising

import gateway_openai
from gateway import (
    AccountProblem,
    Closing,
    ContentPolicy,
    InvalidInput,
    Link,
    NotAccepted,
    Outbound,
    Polling,
    Probing,
    RateLimited,
    SettingsError,
    SubmitUncertain,
    Transient,
)
from gateway.catalog.catalog import Catalog
from gateway.settings import EndpointOverride
from gateway_openai.painter import Painter
from gateway_openai.settings import OPENAI
from gateway_openai.sizes import SIZES
from tests.conftest import PNG

LINK = "https://cdn.example/a.png?token=1"


@pytest.fixture
def site():
    with HTTPServer(threaded=True) as server:
        yield CompatibleServer(server)


def on_sale(**values):
    """Return the plugin's offer for OpenAI itself: nothing, or an endpoint and provider."""
    here = {"openai_api_key": KEY, "openai_base_url": OPENAI}
    found = vendor_site.on_sale(gateway_openai, **(here | values))
    # Edits are tested in test_openai_edits.py.
    found.pop("openai-image-edit", None)
    return list(found.values())


# -- requests


async def test_one_picture_is_asked_for_and_returned(site):
    site.answers("POST", PATH, (200, PICTURE))
    result = await site.submit()
    (output,) = result.outputs
    assert (output.data, output.media_type) == (PNG, "image/png")
    assert result.cost_micros is None  # tokens are told, and nobody knows this server's price
    assert site.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    assert site.seen[0].json == {
        "model": "gpt-image-2.5-flare",
        "prompt": "a boat",
        "n": 1,
        "size": "1536x864",
        "output_format": "png",  # the gateway makes the buyer's JPEG of it
        "response_format": "b64_json",  # only to servers that are not OpenAI's
    }


async def test_openai_itself_is_asked_for_a_quality_and_not_sent_what_it_refuses(site):
    site.answers("POST", PATH, (200, PICTURE))
    ((endpoint, sold),) = on_sale(openai_image_quality="high")
    provider = attrs.evolve(sold, outbound=Outbound(f"{site.url}/v1"))
    result = await provider.submit(BOAT, PlainJob(endpoint))
    await provider.close()
    assert result.cost_micros == 5 * 8 + 30 * 1056
    assert site.seen[0].json["quality"] == "high"
    assert site.seen[0].json["output_format"] == "jpeg"
    assert "response_format" not in site.seen[0].json


@pytest.mark.parametrize(("ratio", "resolution"), SIZES)
def test_every_size_has_its_ratio_and_sides_the_models_take(ratio, resolution):
    width, height = map(int, SIZES[ratio, resolution].split("x"))
    across, down = map(int, ratio.split(":"))
    assert width * down == height * across
    assert width % 16 == height % 16 == 0
    assert max(width, height) <= 3840
    assert 655_360 <= width * height <= 3840 * 2160  # as OpenAI documents for gpt-image-2


async def test_a_server_without_keys_gets_none(site):
    site.answers("POST", PATH, (200, PICTURE))
    await site.submit(openai_api_key="")
    assert "Authorization" not in site.seen[0].headers


async def test_the_operators_model_is_the_one_that_is_asked(site):
    site.answers("POST", PATH, (200, PICTURE))
    await site.submit(openai_image_model="flux-dev")
    assert site.seen[0].json["model"] == "flux-dev"


# -- responses


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
    # openai 3.54.0 knows this type; the body is invented (2026-11-22).
    "limit, by its type": (400, {"type": "billing_limit_user_error"}, AccountProblem),
    "a model without that quality": (
        400,
        {"code": "invalid_value", "param": "quality", "type": "invalid_request_error"},
        AccountProblem,
    ),
    # OpenRouter's documentation of its errors (read 2026-11): moderation comes as a 403.
    "flagged by a relay": (
        403,
        {"code": 403, "metadata": {"reasons": ["violence"], "flagged_input": "a boat"}},
        ContentPolicy,
    ),
    "a bad prompt": (400, {"code": "invalid_value", "param": "prompt"}, InvalidInput),
    "overloaded": (503, {"code": None, "type": "server_error"}, NotAccepted),
    "an odd code": (500, {"code": ["x"], "type": {}}, SubmitUncertain),
}


@pytest.mark.parametrize(("status", "error", "raised"), ERRORS.values(), ids=ERRORS)
async def test_an_error_is_the_right_ones_business(site, status, error, raised):
    message = f"Incorrect: {KEY}, a boat"
    site.answers("POST", PATH, (status, {"error": {"message": message} | error}))
    with pytest.raises(raised) as caught:
        await site.submit()
    assert type(caught.value) is raised
    assert KEY not in str(caught.value)
    assert "boat" not in str(caught.value)
    assert len(site.seen) == 1


async def test_a_wait_is_as_long_as_the_api_says(site):
    site.answers(
        "POST", PATH, (429, {"error": {"code": "rate_limit_exceeded"}}, {"Retry-After": "17"})
    )
    with pytest.raises(RateLimited) as caught:
        await site.submit()
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
    site.answers("POST", PATH, (200, body))
    with pytest.raises(ContentPolicy):
        await site.submit()


async def test_success_that_nobody_can_read_is_not_asked_for_again(site):
    site.answers("POST", PATH, (200, "<html>"))
    with pytest.raises(SubmitUncertain):
        await site.submit()


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_a_page_of_a_proxy_says_nothing_about_the_bill(site, status):
    site.answers("POST", PATH, (status, "<html>Bad Gateway</html>"))
    with pytest.raises(SubmitUncertain):
        await site.submit()


@pytest.mark.parametrize("encoded", ["§§§", "data:image/png;base64,§", "data:image/png", "A"])
async def test_what_is_not_base64_was_made_all_the_same(site, encoded):
    site.answers("POST", PATH, (200, {"data": [{"b64_json": encoded}]}))
    with pytest.raises(SubmitUncertain):
        await site.submit()


_PLAIN = base64.b64encode(PNG).decode()


@pytest.mark.parametrize(
    "encoded",
    [
        f"data:image/png;base64,{_PLAIN}",
        "\n".join(_PLAIN[start : start + 76] for start in range(0, len(_PLAIN), 76)) + "\r\n",
        _PLAIN.rstrip("="),
        f"data:image/png;base64,\n{_PLAIN.rstrip('=')}\n",
    ],
    ids=["address", "lines", "no padding", "all of it"],
)
async def test_a_picture_may_be_written_as_servers_do(site, encoded):
    site.answers("POST", PATH, (200, {"data": [{"b64_json": encoded}]}))
    (output,) = (await site.submit()).outputs
    assert output.data == PNG


async def test_more_pictures_than_were_asked_for_are_not_sold(site):
    site.answers("POST", PATH, (200, {"data": PICTURE["data"] * 3}))
    assert len((await site.submit()).outputs) == 1


async def test_a_link_is_left_to_the_gateway_to_fetch(site):
    site.answers("POST", PATH, (200, {"data": [{"url": LINK}, {"url": LINK}]}))
    assert (await site.submit()).outputs == (Link(url=LINK, media_type="image/png"),)
    assert len(site.seen) == 1


async def test_a_picture_is_preferred_to_a_link_to_it(site):
    site.answers("POST", PATH, (200, {"data": [{"url": LINK} | PICTURE["data"][0]]}))
    (output,) = (await site.submit()).outputs
    assert output.data == PNG


# stable-diffusion.cpp, examples/server/api.md: options in a prompt count as the server's own.
STEERED = 'a boat <sd_cpp_extra_args>{"sample_params":{"sample_steps":900}}</sd_cpp_extra_args>'


def test_a_prompt_cannot_set_the_options_of_the_operators_server():
    asked = attrs.evolve(BOAT, prompt=STEERED)
    ((endpoint, own),) = on_sale(openai_base_url="http://127.0.0.1:1234/v1")
    with pytest.raises(InvalidInput, match="may not hold <sd_cpp_extra_args>"):
        own.validate(asked, endpoint)
    own.validate(BOAT, endpoint)
    ((endpoint, openai),) = on_sale()
    openai.validate(asked, endpoint)


# -- health


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        ((200, {"object": "list", "data": [{"id": "gpt-image-2", "object": "model"}]}), None),
        ((404, {"detail": "Not Found"}), None),  # up, and without that route
        ((405, ""), None),
        ((401, {"error": {"code": "invalid_api_key"}}), AccountProblem),
        ((403, {}), AccountProblem),
        ((503, "<html>"), Transient),
    ],
)
async def test_health_asks_for_the_list_of_models(site, reply, raised):
    site.answers("GET", "/v1/models", reply)
    ((_, provider),) = site.on_sale().values()
    with raising(raised):
        await provider.health()
    await provider.close()
    (asked,) = site.seen
    assert asked.headers["Authorization"] == f"Bearer {KEY}"


async def test_health_of_a_server_that_is_down_is_no_account_problem():
    ((_, provider),) = on_sale(openai_base_url="http://127.0.0.1:9/v1")
    with pytest.raises(Transient):
        await provider.health()
    await provider.close()


# -- offers


def test_nothing_is_on_sale_without_a_key():
    assert on_sale(openai_api_key="") == []
    assert len(on_sale()) == 1


def prices(**values):
    """Return the price in units by resolution."""
    ((endpoint, _),) = on_sale(**values)
    return {
        resolution: endpoint.price_of(attrs.evolve(BOAT, resolution=resolution))
        for resolution in endpoint.resolution.values
    }


def test_a_larger_picture_costs_more():
    assert prices() == {"1K": 40_000}
    every = ("1K", "2K", "4K")
    assert prices(openai_image_resolutions=every) == {"1K": 40_000, "2K": 80_000, "4K": 120_000}


def test_price_and_resolutions_are_the_operators():
    values = {"openai_image_price": "0.5", "openai_image_price_4k": "0.9"}
    assert prices(**values, openai_image_resolutions=("4K", "2K")) == {
        "2K": 1_000_000,
        "4K": 900_000,
    }
    ((endpoint, _),) = on_sale(openai_image_resolutions=("4K", "2K"))
    assert endpoint.resolution.default == "2K"
    assert endpoint.price_units == 80_000  # the price that is quoted first is the default's


def test_it_can_be_probed_and_closed_and_has_no_jobs():
    ((_, provider),) = on_sale()
    assert isinstance(provider, Painter)
    assert isinstance(provider, Probing)
    assert isinstance(provider, Closing)
    assert not isinstance(provider, Polling)


def test_how_many_are_asked_for_at_once_is_the_operators():
    ((_, provider),) = on_sale(openai_max_concurrency="2")
    assert provider.traits.max_concurrency == 2
    ((_, provider),) = on_sale()
    assert provider.traits.max_concurrency is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"openai_image_price": "free"}, "GATEWAY_OPENAI_IMAGE_PRICE:"),
        ({"openai_image_price_2k": "-1"}, "GATEWAY_OPENAI_IMAGE_PRICE_2K:"),
        ({"openai_image_price_4k": "x"}, "GATEWAY_OPENAI_IMAGE_PRICE_4K:"),
        ({"openai_image_resolutions": ("8K",)}, "GATEWAY_OPENAI_IMAGE_RESOLUTIONS"),
        ({"openai_image_quality": "best"}, "GATEWAY_OPENAI_IMAGE_QUALITY"),
        ({"openai_max_concurrency": "-1"}, "GATEWAY_OPENAI_MAX_CONCURRENCY"),
        ({"openai_max_concurrency": "two"}, "GATEWAY_OPENAI_MAX_CONCURRENCY"),
    ],
)
def test_a_wrong_setting_is_named(changes, named):
    with pytest.raises(SettingsError, match=named):
        on_sale(**changes)


@pytest.mark.parametrize(
    "url", ["", "api.openai.com", "ftp://x/v1", "https:///v1", "https://x/v1?key=sk"]
)
def test_a_wrong_address_stops_the_start(url):
    with pytest.raises(SettingsError, match="GATEWAY_OPENAI_BASE_URL"):
        on_sale(openai_base_url=url)


def test_an_address_with_a_slash_at_its_end_is_the_same():
    assert on_sale(openai_base_url=f"{OPENAI}/", openai_api_key="") == []


def test_the_table_of_the_endpoint_wins():
    table = EndpointOverride(price="0.9", model="other")
    catalog = Catalog({"openai-image": table})
    ((endpoint, provider),) = on_sale()
    catalog.register(endpoint, provider, "gateway_openai")
    assert catalog["openai-image"].endpoint.price_units == 900_000
    assert catalog["openai-image"].endpoint.model == "other"


def test_the_key_is_shown_nowhere():
    ((endpoint, provider),) = on_sale()
    assert KEY not in repr((endpoint, provider))
