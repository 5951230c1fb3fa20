"""A picture bought from an OpenAI-compatible API, from the quote to the file."""

import attrs
import pytest
from openai_site import KEY, PATH, CompatibleServer, sized
from pytest_httpserver import HTTPServer

from tests.conftest import buy, running


@pytest.fixture
def site():
    with HTTPServer(threaded=True) as server:
        yield CompatibleServer(server)


def selling(settings, site, **values):
    here = {"openai_api_key": KEY, "openai_base_url": f"{site.url}/v1"}
    return attrs.evolve(settings, plugin_values=here | values)


async def test_a_picture_is_bought_from_end_to_end(settings, site, payer):
    """The operator's server is asked for PNG, which all servers support; the buyer gets WebP."""
    busy = (429, {"error": {"code": "rate_limit_exceeded"}}, {"Retry-After": "1"})
    site.answers("POST", PATH, busy, (200, sized(1536, 864)))
    async with running(selling(settings, site, openai_image_price="0.05")) as gateway:
        url = "/api/x402/openai-image"
        fields = {"aspect_ratio": "16:9", "output_format": "webp"}
        assert (await buy(gateway, None, url=url, **fields)).status_code == 402
        answer = await buy(gateway, payer.header(50_000), url=url, **fields)
        assert answer.status_code == 200
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["attempt"]) == ("completed", 1)
    assert task["result"]["outputs"][0]["mimeType"] == "image/webp"
    assert [request.json["output_format"] for request in site.asked("POST")] == ["png"] * 2


async def test_the_price_that_is_quoted_is_that_of_the_resolution(settings, site, payer):
    site.answers("POST", PATH, (200, sized(2048, 2048)))
    values = {"openai_image_resolutions": "1K,2K", "openai_image_price_2k": "0.25"}
    async with running(selling(settings, site, **values)) as gateway:
        url = "/api/x402/openai-image"
        answer = await buy(gateway, payer.header(80_000), url=url, resolution="2K")
        assert answer.status_code == 402
        answer = await buy(gateway, payer.header(250_000), url=url, resolution="2K")
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["status"] == "completed"
    assert [request.json["size"] for request in site.asked("POST")] == ["2048x2048"]


async def test_a_refused_prompt_is_owed_back(settings, site, payer):
    site.answers("POST", PATH, (400, {"error": {"code": "moderation_blocked"}}))
    async with running(selling(settings, site)) as gateway:
        answer = await buy(gateway, payer.header(80_000), url="/api/x402/openai-image")
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["details"], task["refund"]["amount"]) == ("content_policy", 0.08)
    assert len(site.asked("POST")) == 1
