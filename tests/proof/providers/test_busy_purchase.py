"""Purchases that a vendor's first answer would have lost, from the payment to the file."""

import attrs
import gemini_site
import pytest
from gemini_site import BANANA, SUBMIT, Google
from openai_site import KEY, PATH, CompatibleServer

from gateway_testing.fakes.api import picture_of
from tests.conftest import buy, running

OVERLOADED = {
    "code": 503,
    "message": "The model is overloaded. Please try again later.",
    "status": "UNAVAILABLE",
}
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s"}


async def test_a_picture_of_an_overloaded_model_is_delivered(httpserver, settings, payer):
    google = Google(httpserver)
    google.answers("GET", gemini_site.PATH, (200, {"name": "models/gemini-nano-banana-2.1"}))
    asked = OVERLOADED | {"details": [RETRY_INFO]}
    google.answers(
        "POST",
        SUBMIT,
        (503, {"error": OVERLOADED}),
        (503, {"error": asked}),
        (200, gemini_site.sized(1024, 1024)),
    )
    settings = attrs.evolve(settings, plugin_values=google.settings() | {"gemini_models": [BANANA]})
    async with running(settings) as gateway:
        price = gateway.services.catalog[BANANA].endpoint.price_units
        answer = await buy(gateway, payer.header(price), url=f"/api/x402/{BANANA}")
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["attempt"]) == ("completed", 3)
    assert len(google.asked("POST")) == 3


@pytest.mark.parametrize("coding", ["aws-chunked", "gzip", "UTF-8"])
async def test_a_picture_with_the_header_of_its_upload_is_delivered(
    httpserver, settings, payer, coding
):
    site = CompatibleServer(httpserver)
    link = site.url.replace("localhost", "127.0.0.1") + "/a.png"
    site.answers("POST", PATH, (200, {"data": [{"url": link}]}))
    site.answers("GET", "/a.png", (200, picture_of(1024, 1024), {"Content-Encoding": coding}))
    values = {"openai_api_key": KEY, "openai_base_url": f"{site.url}/v1"}
    here = attrs.evolve(settings, plugin_values=values, allow_loopback_links=True)
    async with running(here) as gateway:
        answer = await buy(gateway, payer.header(80_000), url="/api/x402/openai-image")
        task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], len(site.asked("GET"))) == ("completed", 1)
