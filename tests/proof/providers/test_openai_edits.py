"""Edits of a buyer's picture by an OpenAI-compatible API."""

import attrs
import pytest
from openai_site import KEY, PICTURE, CompatibleServer
from pytest_httpserver import HTTPServer
from vendor_site import PlainJob, on_sale

import gateway_openai
from gateway import (
    AccountProblem,
    Attachment,
    ContentPolicy,
    GenerationRequest,
    Outbound,
    SettingsError,
    SubmitUncertain,
)
from gateway.domain import usdc
from gateway_openai.settings import OPENAI
from gateway_testing.provider.samples import PICTURE as PHOTO
from tests.conftest import PNG

EDITS = "/v1/images/edits"
SLUG = "openai-image-edit"
REQUEST = GenerationRequest(
    prompt="mach es winterlich: ❄",
    output_format="webp",
    attachment=Attachment(name="Jane Doe, passport.jpeg", data=PHOTO),
)
# US dollars for a square at 1K by quality, as in gateway_openai/settings.py, and for the 1,536
# tokens of an input picture.
COSTS = {
    "gpt-image-2": {"low": 0.006, "medium": 0.053, "high": 0.211, "auto": 0.211},
    "gpt-image-2.5-flare": {"low": 0.006, "medium": 0.013, "high": 0.053, "xhigh": 0.094},
}
SENT_COST = 1_536 * 8 / 10**6


class EditingServer(CompatibleServer):
    slug = SLUG
    request = REQUEST

    def settings(self):
        return super().settings() | {"openai_edit_model": "qwen-image-edit"}


@pytest.fixture
def site():
    with HTTPServer(threaded=True) as server:
        fake = EditingServer(server)
        yield fake
        for request in fake.seen:
            # The form's file.
            request.close()


def on_sale_at_openai(**values):
    """Return the offers for OpenAI itself: endpoints by slug, each with its provider."""
    here = {"openai_api_key": KEY, "openai_base_url": OPENAI}
    return on_sale(gateway_openai, **(here | values))


async def test_an_edit_is_asked_for_as_a_form_with_the_picture(site):
    site.answers("POST", EDITS, (200, PICTURE))
    (output,) = (await site.submit()).outputs
    assert (output.data, output.media_type) == (PNG, "image/png")
    (asked,) = site.seen
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.form.to_dict() == {
        "model": "qwen-image-edit",
        "prompt": "mach es winterlich: ❄",
        "n": "1",
        "size": "auto",
        # Of the buyer's WebP: sd-server, for one, edits to PNG and JPEG only.
        "output_format": "png",
        # Only to servers other than OpenAI's.
        "response_format": "b64_json",
    }
    (picture,) = asked.files.values()
    assert (picture.name, picture.mimetype, picture.stream.read()) == (
        "image",
        "image/jpeg",
        PHOTO,
    )
    # The buyer's file name is not sent.
    assert picture.filename == "picture.jpeg"


async def test_a_ratio_that_the_buyer_names_is_asked_for(site):
    site.answers("POST", EDITS, (200, PICTURE))
    await site.submit(attrs.evolve(REQUEST, aspect_ratio="16:9"))
    assert site.seen[0].form["size"] == "1536x864"


async def test_openai_itself_is_asked_for_a_quality_and_not_sent_what_it_refuses(site):
    site.answers("POST", EDITS, (200, PICTURE))
    endpoint, sold = on_sale_at_openai(openai_image_quality="high")[SLUG]
    provider = attrs.evolve(sold, outbound=Outbound(f"{site.url}/v1"))
    await provider.submit(REQUEST, PlainJob(endpoint))
    await provider.close()
    form = site.seen[0].form
    assert (form["model"], form["quality"]) == ("gpt-image-2.5-flare", "high")
    assert "response_format" not in form


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, {"error": {"code": "moderation_blocked"}}, ContentPolicy),
        (401, {"error": {"code": "invalid_api_key"}}, AccountProblem),
        (404, {"error": {"code": "model_not_found"}}, AccountProblem),
        (400, {"error": {"code": "invalid_value", "param": "size"}}, AccountProblem),
        (200, {"created": 1, "data": []}, ContentPolicy),
        (500, {"error": {"message": "sorry"}}, SubmitUncertain),
    ],
)
async def test_refusals_of_edits_mean_what_those_of_pictures_mean(site, status, body, error):
    site.answers("POST", EDITS, (status, body))
    with pytest.raises(error):
        await site.submit()
    assert len(site.seen) == 1


def test_another_server_sells_edits_only_where_the_operator_names_a_model(site):
    assert set(site.on_sale(openai_edit_model="")) == {"openai-image"}
    assert set(site.on_sale()) == {"openai-image", SLUG}
    assert set(on_sale_at_openai()) == {"openai-image", SLUG}


@pytest.mark.parametrize(
    ("model", "quality"), [(model, quality) for model in COSTS for quality in COSTS[model]]
)
def test_no_edit_is_sold_below_its_cost(model, quality):
    values = {"openai_image_model": model, "openai_image_quality": quality}
    endpoint, _ = on_sale_at_openai(**values)[SLUG]
    assert endpoint.price_units / 10**6 >= 1.2 * (COSTS[model][quality] + SENT_COST)


def test_the_operator_sets_the_price():
    endpoint, _ = on_sale_at_openai(openai_edit_price="0.33")[SLUG]
    assert endpoint.price_units == usdc("0.33")
    with pytest.raises(SettingsError, match="GATEWAY_OPENAI_EDIT_PRICE"):
        on_sale_at_openai(openai_edit_price="much")


def test_an_edit_keeps_the_pictures_ratio_unless_the_buyer_names_one():
    endpoint, _ = on_sale_at_openai()[SLUG]
    assert (endpoint.capability, endpoint.aspect_ratio.default) == ("image-editing", None)
    assert "16:9" in endpoint.aspect_ratio.values
