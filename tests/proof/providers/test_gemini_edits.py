"""Edits of a buyer's picture by the Gemini API."""

import base64

import attrs
import pytest
from gemini_site import BANANA, KEY, LITE, PICTURE, PRO, SUBMIT, Google, candidate
from pytest_httpserver import HTTPServer

from gateway import Attachment, ContentPolicy, GenerationRequest, InvalidInput
from gateway_gemini.models import MODELS, SENT_DOLLARS, SENT_PICTURE_TOKENS
from gateway_testing.provider.samples import PICTURE as PHOTO
from tests.conftest import PNG

SLUG = f"{BANANA}-edit"
REQUEST = GenerationRequest(
    prompt="make it winter",
    output_format="webp",
    resolution="2K",
    attachment=Attachment(name="photo.webp", data=PHOTO),
)


class EditingGoogle(Google):
    slug = SLUG
    request = REQUEST


@pytest.fixture
def site():
    with HTTPServer(threaded=True) as server:
        yield EditingGoogle(server)


async def test_an_edit_sends_the_picture_beside_the_prompt_and_keeps_its_ratio(site):
    site.answers("POST", SUBMIT, (200, PICTURE))
    (output,) = (await site.submit()).outputs
    assert (output.data, output.media_type) == (PNG, "image/png")
    (asked,) = site.seen
    assert asked.headers["x-goog-api-key"] == KEY
    sent = {"mimeType": "image/webp", "data": base64.b64encode(PHOTO).decode()}
    assert asked.json == {
        "contents": [
            {"role": "user", "parts": [{"text": "make it winter"}, {"inlineData": sent}]},
        ],
        "generationConfig": {
            "responseModalities": ["IMAGE"],
            "imageConfig": {"imageSize": "2K"},
        },
    }


async def test_a_ratio_that_the_buyer_names_is_asked_for(site):
    site.answers("POST", SUBMIT, (200, PICTURE))
    await site.submit(attrs.evolve(REQUEST, aspect_ratio="9:16"))
    picture = site.seen[0].json["generationConfig"]["imageConfig"]
    assert picture == {"aspectRatio": "9:16", "imageSize": "2K"}


async def test_an_edit_that_a_filter_stops_is_content_policy(site):
    site.answers("POST", SUBMIT, (200, candidate(finishReason="IMAGE_PROHIBITED_CONTENT")))
    with pytest.raises(ContentPolicy):
        await site.submit()


def test_a_picture_that_google_would_not_take_is_refused_before_payment(site):
    endpoint, provider = site.on_sale()[SLUG]
    sizes = {7_000_000: None, 7_000_001: "7 MB"}
    for size, refusal in sizes.items():
        large = attrs.evolve(REQUEST, attachment=Attachment(name="a.png", data=bytes(size)))
        if refusal is None:
            provider.validate(large, endpoint)
            continue
        with pytest.raises(InvalidInput, match=refusal):
            provider.validate(large, endpoint)


def test_every_model_on_sale_edits_under_a_slug_of_its_own(site):
    found = site.on_sale()
    assert set(found) == {slug + end for slug in (BANANA, PRO, LITE) for end in ("", "-edit")}
    for slug in (BANANA, PRO, LITE):
        (made, painter), (edit, editor) = found[slug], found[f"{slug}-edit"]
        assert (edit.capability, edit.model) == ("image-editing", made.model)
        # Google counts both together.
        assert editor is painter


def test_no_edit_is_sold_below_its_cost(site):
    costs = {model.slug: model.cost_micros for model in MODELS}
    for slug, (endpoint, _) in site.on_sale().items():
        if endpoint.capability == "image-editing":
            cost = costs[slug.removesuffix("-edit")] + SENT_PICTURE_TOKENS * SENT_DOLLARS
            assert endpoint.price_units >= 1.2 * cost
