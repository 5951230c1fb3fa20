"""Edits of a buyer's picture by OpenRouter's images API."""

import base64

import attrs
import pytest
from test_openrouter import KEY, PATH, OpenRouter, picture

from gateway import AccountProblem, Attachment, ContentPolicy, GenerationRequest, InvalidInput
from gateway_testing.provider.samples import PICTURE as PHOTO
from tests.conftest import PNG

SLUG = "openrouter-nano-banana-2-1-edit"
EDITS = [
    "openrouter-flux-3-image-edit",
    SLUG,
    "openrouter-gpt-image-2-5-flare-edit",
]
REQUEST = GenerationRequest(
    prompt="mach es winterlich: ❄",
    output_format="webp",
    resolution="2K",
    attachment=Attachment(name="Jane Doe, passport.jpeg", data=PHOTO),
)


class EditingOpenRouter(OpenRouter):
    slug = SLUG
    request = REQUEST


@pytest.fixture
def site(httpserver):
    return EditingOpenRouter(httpserver)


async def test_an_edit_sends_the_picture_beside_the_prompt_and_keeps_its_ratio(site):
    site.answers("POST", PATH, picture(cost=0.0527))
    result = await site.submit()
    (output,) = result.outputs
    assert (output.data, output.media_type, result.cost_micros) == (PNG, "image/jpeg", 52_700)
    (asked,) = site.seen
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    url = f"data:image/jpeg;base64,{base64.b64encode(PHOTO).decode()}"
    assert asked.json == {
        "model": "google/gemini-nano-banana-2.1",
        "prompt": "mach es winterlich: ❄",
        "resolution": "2K",
        # As ContentPartImage of openrouter 1.3.84. The buyer's file name is not sent.
        "input_references": [{"type": "image_url", "image_url": {"url": url}}],
    }


async def test_a_ratio_that_the_buyer_names_is_asked_for(site):
    site.answers("POST", PATH, picture())
    await site.submit(attrs.evolve(REQUEST, aspect_ratio="9:16"))
    assert site.seen[0].json["aspect_ratio"] == "9:16"


async def test_an_edit_without_sizes_names_a_quality_alone(site):
    site.answers("POST", PATH, picture())
    await site.submit(slug="openrouter-gpt-image-2-5-flare-edit")
    asked = site.seen[0].json
    assert asked.keys() == {"model", "prompt", "quality", "input_references"}


def test_edits_are_on_sale_beside_the_pictures_and_one_provider_serves_them(site):
    found = site.on_sale()
    edits = {slug for slug, (endpoint, _) in found.items() if endpoint.edits_pictures}
    assert edits == set(EDITS)
    for slug in EDITS:
        made, painter = found[slug.removesuffix("-edit")]
        edit, editor = found[slug]
        assert (edit.model, edit.resolution) == (made.model, made.resolution)
        assert (editor, edit.aspect_ratio.default) == (painter, None)


def test_the_operator_adds_a_model_that_edits(site):
    added = f"acme/picture=0.09 like {SLUG}"
    ((slug, (endpoint, _)),) = site.on_sale(openrouter_models=added).items()
    assert (slug, endpoint.capability) == ("openrouter-acme-picture", "image-editing")


REFUSED = {
    "a picture that was flagged": (
        403,
        {"metadata": {"reasons": ["violence"], "flagged_input": "[image]"}},
        ContentPolicy,
    ),
    "a picture of the wrong size": (
        400,
        {"message": "The resolution of the reference image is too low"},
        AccountProblem,
    ),
    "a picture that is too large": (413, {"message": "Payload too large"}, InvalidInput),
    "a model that does not edit": (
        400,
        {"message": "Unsupported parameter: input_references"},
        AccountProblem,
    ),
}


# A `choice` together with an input picture takes nothing off sale.
SCOPES = {"a picture of the wrong size": "choice", "a model that does not edit": "model"}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_a_buyers_picture_causes_takes_no_model_off_sale(site, name):
    status, error, raised = REFUSED[name]
    site.answers("POST", PATH, (status, {"error": {"code": status, "message": ""} | error}))
    with pytest.raises(raised) as caught:
        await site.submit()
    assert type(caught.value) is raised
    assert getattr(caught.value, "scope", None) == SCOPES.get(name)
    assert len(site.asked("POST")) == 1


LIMITS = {
    "larger than a request to Google may be": (SLUG, bytes(7_000_001), "7 MB"),
    "smaller than FLUX 3 takes": ("openrouter-flux-3-image-edit", PHOTO, "256 pixels"),
}


@pytest.mark.parametrize(("slug", "data", "says"), LIMITS.values(), ids=LIMITS)
async def test_a_picture_that_a_model_would_not_take_is_refused_before_payment(
    site, slug, data, says
):
    endpoint, provider = site.on_sale()[slug]
    photo = attrs.evolve(REQUEST, attachment=Attachment(name="a.png", data=data))
    with pytest.raises(InvalidInput, match=says):
        provider.validate(photo, endpoint)
    # The same model makes pictures from a prompt alone.
    endpoint, _ = site.on_sale()[slug.removesuffix("-edit")]
    provider.validate(attrs.evolve(REQUEST, attachment=None), endpoint)
