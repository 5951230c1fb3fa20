"""Edits of a buyer's picture by Black Forest Labs."""

import base64
import io
import math

import attrs
import pytest
from PIL import Image
from test_bfl import KEY, PRO, URL, BlackForestLabs, accepted, task

from gateway import AccountProblem, Attachment, GenerationRequest, InvalidInput, Link
from gateway_bfl.models import MODELS, SIZES
from gateway_testing.provider.samples import PICTURE as PHOTO

SLUG = "bfl-flux-2-pro-edit"
FLUX_3 = "bfl-flux-3-image-edit"
REQUEST = GenerationRequest(
    prompt="make it winter",
    output_format="webp",
    resolution="1K",
    attachment=Attachment(name="Jane Doe, passport.png", data=PHOTO),
)
ENCODED = base64.b64encode(PHOTO).decode()


class EditingBfl(BlackForestLabs):
    slug = SLUG
    request = REQUEST


@pytest.fixture
def bfl(httpserver):
    return EditingBfl(httpserver)


def photo(size, kind="jpeg"):
    stream = io.BytesIO()
    Image.new("RGB", size, "teal").save(stream, kind)
    return attrs.evolve(
        REQUEST, attachment=Attachment(name=f"photo.{kind}", data=stream.getvalue())
    )


async def test_an_edit_sends_the_picture_and_the_size_in_pixels(bfl):
    bfl.answers("POST", PRO, (200, accepted(bfl)))
    await bfl.submit()
    (asked,) = bfl.seen
    assert asked.headers["x-key"] == KEY
    # The buyer's file name is not sent.
    assert asked.json == {
        "prompt": "make it winter",
        "width": 1024,
        "height": 1024,
        "output_format": "png",
        "input_image": ENCODED,
    }


@pytest.mark.parametrize(("ratio", "resolution"), SIZES)
async def test_a_ratio_that_the_buyer_names_is_asked_for(bfl, ratio, resolution):
    bfl.answers("POST", PRO, (200, accepted(bfl)))
    await bfl.submit(attrs.evolve(REQUEST, aspect_ratio=ratio, resolution=resolution))
    asked = bfl.seen[0].json
    assert (asked["width"], asked["height"]) == SIZES[ratio, resolution]


@pytest.mark.parametrize("resolution", ["1K", "2K"])
@pytest.mark.parametrize(
    "size", [(64, 64), (1024, 768), (768, 1024), (3000, 1390), (2048, 2048), (512, 64), (300, 2399)]
)
async def test_without_a_ratio_an_edit_keeps_that_of_the_picture(bfl, size, resolution):
    bfl.answers("POST", PRO, (200, accepted(bfl)))
    await bfl.submit(attrs.evolve(photo(size), resolution=resolution))
    asked = bfl.seen[0].json
    width, height = asked["width"], asked["height"]
    # A side loses less than 16 pixels.
    lost = 16 / min(width, height)
    assert math.isclose(width / height, size[0] / size[1], rel_tol=lost)
    assert width % 16 == height % 16 == 0
    assert min(width, height) >= 240
    assert max(width, height) <= 2048
    # The basis of the cost: one megapixel of 1024 by 1024, or four.
    assert width * height <= {"1K": 1024 * 1024, "2K": 4_000_000}[resolution]


async def test_flux_3_is_sent_a_list_of_pictures_and_no_pixels(bfl):
    bfl.answers("POST", "/v1/flux-3-image", (200, accepted(bfl)))
    await bfl.submit(slug=FLUX_3)
    await bfl.submit(attrs.evolve(REQUEST, aspect_ratio="9:16", resolution="2K"), slug=FLUX_3)
    # Its default ratio is the vendor's: `auto`.
    bodies = [request.json for request in bfl.seen]
    assert bodies == [
        {"prompt": "make it winter", "resolution": "1k", "images": [ENCODED]},
        {
            "prompt": "make it winter",
            "resolution": "2k",
            "images": [ENCODED],
            "aspect_ratio": "9:16",
        },
    ]


def test_every_model_edits_under_a_slug_of_its_own(bfl):
    found = bfl.on_sale()
    for slug, (endpoint, provider) in found.items():
        if endpoint.edits_pictures:
            made, painter = found[slug.removesuffix("-edit")]
            assert (endpoint.model, provider) == (made.model, painter)
            assert endpoint.aspect_ratio.default is None
    assert {slug for slug in found if slug.endswith("-edit")} == {
        f"{slug}-edit" for slug in found if not slug.endswith("-edit")
    }


async def test_an_edit_is_a_link_and_the_cost_that_is_told(bfl):
    result = await bfl.poll(task("Ready", result={"sample": URL}, cost=4.5))
    assert result.outputs == (Link(url=URL, media_type="image/png"),)
    assert result.cost_micros == 45_000


REFUSED = {
    "a field of the picture": (422, {"detail": [{"loc": ["body", "input_image"]}]}, InvalidInput),
    "a picture that cannot be read": (400, {"error": "validation_error"}, InvalidInput),
    "too large a request": (413, "", InvalidInput),
    "a size of ours": (422, {"detail": [{"loc": ["body", "width"]}]}, AccountProblem),
}


@pytest.mark.parametrize(("status", "body", "raised"), REFUSED.values(), ids=REFUSED)
async def test_an_edit_that_is_refused_at_once(bfl, status, body, raised):
    bfl.answers("POST", PRO, (status, body))
    with pytest.raises(raised) as caught:
        await bfl.submit()
    assert type(caught.value) is raised
    assert len(bfl.seen) == 1


LIMITS = {
    "more megapixels than the price holds": (SLUG, (2049, 2048), "4.19 megapixels"),
    "a strip": (SLUG, (1001, 125), "more than 8 times the other"),
    "small for FLUX 3": (FLUX_3, (900, 255), "256 pixels"),
    "large for FLUX 3": (FLUX_3, (4001, 4000), "16 megapixels"),
}
TAKEN = {SLUG: [(2048, 2048), (1000, 125)], FLUX_3: [(256, 256), (4000, 4000)]}


@pytest.mark.parametrize(("slug", "size", "says"), LIMITS.values(), ids=LIMITS)
async def test_a_picture_that_a_model_would_not_take_is_refused_before_payment(
    bfl, slug, size, says
):
    endpoint, provider = bfl.on_sale()[slug]
    for taken in TAKEN[slug]:
        provider.validate(photo(taken), endpoint)
    with pytest.raises(InvalidInput, match=says):
        provider.validate(photo(size), endpoint)
    await provider.close()


# Cents by the vendor's formula: the first megapixel, and each further one, sent or made.
PRICES = {
    "bfl-flux-2-pro-edit": (3, 1.5),
    "bfl-flux-2-max-edit": (7, 3),
    "bfl-flux-2-klein-9b-edit": (1.5, 0.2),
}


@pytest.mark.parametrize("slug", PRICES)
def test_the_cost_is_that_of_the_largest_picture_that_is_taken(slug):
    model = next(model for model in MODELS if model.slug == slug)
    first, further = PRICES[slug]
    sent = math.ceil(model.edits.most_pixels / 1_000_000)
    for resolution, made in {"1K": 1, "2K": 4}.items():
        cents = first + (made - 1) * further + sent * further
        assert model.costs.get(resolution, model.cost_micros) == round(cents * 10_000)
