"""Edits of a buyer's picture by fal.ai."""

import base64
import io
import math

import attrs
import pytest
from PIL import Image
from test_fal import DONE, KEY, MODEL, PICTURE, Fal, accepted

from gateway import AccountProblem, Attachment, ContentPolicy, GenerationRequest, InvalidInput, Link
from gateway_fal.models import MODELS
from gateway_testing.provider.samples import PICTURE as PHOTO

SLUG = "fal-nano-banana-2-edit"
FLUX_2 = "fal-flux-2-pro-edit"
PATHS = {SLUG: f"{MODEL}/edit", FLUX_2: "/fal-ai/flux-2-pro/edit"}
REQUEST = GenerationRequest(
    prompt="make it winter",
    output_format="webp",
    attachment=Attachment(name="Jane Doe, passport.jpg", data=PHOTO),
)
URI = f"data:image/jpeg;base64,{base64.b64encode(PHOTO).decode()}"


class EditingFal(Fal):
    slug = SLUG
    request = REQUEST

    def answer_job(self, *statuses, response=None):
        super().answer_job(*statuses, response=response)
        self.answers("POST", PATHS[SLUG], (200, accepted(self)))


@pytest.fixture
def fal(httpserver):
    return EditingFal(httpserver)


def photo(size, kind="png"):
    stream = io.BytesIO()
    Image.new("RGB", size, "teal").save(stream, kind)
    return attrs.evolve(
        REQUEST, attachment=Attachment(name=f"photo.{kind}", data=stream.getvalue())
    )


async def test_an_edit_sends_the_picture_as_a_data_uri_and_keeps_its_ratio(fal):
    fal.answers("POST", PATHS[SLUG], (200, accepted(fal)))
    handle = await fal.submit(attrs.evolve(REQUEST, resolution="2K"))
    (asked,) = fal.seen
    assert asked.headers["Authorization"] == f"Key {KEY}"
    assert asked.headers["x-fal-no-retry"] == "1"
    # The buyer's file name is not sent.
    assert asked.json == {
        "prompt": "make it winter",
        "output_format": "webp",
        "resolution": "2K",
        "image_urls": [URI],
    }
    assert handle.id == "764cabcf"


async def test_a_ratio_that_the_buyer_names_is_asked_for(fal):
    for slug, path in PATHS.items():
        fal.answers("POST", path, (200, accepted(fal)))
        await fal.submit(attrs.evolve(REQUEST, aspect_ratio="9:16"), slug=slug)
    banana, flux = (request.json for request in fal.seen)
    assert (banana["aspect_ratio"], flux["image_size"]) == ("9:16", "portrait_16_9")
    # FLUX.2 has no webp, and the gateway converts.
    assert (banana["output_format"], flux["output_format"]) == ("webp", "png")
    assert flux["image_urls"] == [URI]


@pytest.mark.parametrize("size", [(64, 64), (1024, 768), (768, 1024), (2048, 2048), (800, 200)])
async def test_without_a_ratio_flux_2_is_told_the_size_that_is_billed(fal, size):
    fal.answers("POST", PATHS[FLUX_2], (200, accepted(fal)))
    await fal.submit(photo(size), slug=FLUX_2)
    asked = fal.seen[0].json["image_size"]
    width, height = asked["width"], asked["height"]
    assert math.isclose(width / height, size[0] / size[1], rel_tol=16 / min(width, height))
    assert width * height <= 1024 * 1024
    assert min(width, height) >= 496
    assert max(width, height) <= 2048


def test_the_models_that_edit_do_so_under_a_slug_and_an_address_of_their_own(fal):
    found = fal.on_sale()
    edits = {slug for slug, (endpoint, _) in found.items() if endpoint.edits_pictures}
    assert edits == set(PATHS)
    for slug in edits:
        (made, painter), (edit, editor) = found[slug.removesuffix("-edit")], found[slug]
        assert (edit.model, editor) == (f"{made.model}/edit", painter)
        assert edit.aspect_ratio.default is None


async def test_an_edit_that_is_ready_is_a_link(fal):
    result = await fal.poll((200, DONE), response=(200, {"images": [PICTURE]}))
    assert result.outputs == (Link(url=PICTURE["url"], media_type="image/png"),)


REFUSED = {
    "a picture it cannot use": ("image_urls", "image_too_small", InvalidInput),
    "a picture it cannot read": ("image_urls", "file_download_error", InvalidInput),
    "a picture that is flagged": ("image_urls", "content_policy_violation", ContentPolicy),
    "a format of ours": ("output_format", "one_of", AccountProblem),
}


@pytest.mark.parametrize(("field", "kind", "raised"), REFUSED.values(), ids=REFUSED)
async def test_a_refused_edit_is_the_right_ones_business(fal, field, kind, raised):
    detail = {"detail": [{"loc": ["body", field], "type": kind, "msg": "…"}]}
    with pytest.raises(raised) as caught:
        await fal.poll((200, DONE), response=(422, detail))
    assert type(caught.value) is raised
    assert len(fal.asked("POST")) == 1


LIMITS = {
    "a file that makes too long a data URI": (SLUG, bytes(7_000_001), "7 MB"),
    "the same": (FLUX_2, bytes(7_000_001), "7 MB"),
    "more megapixels than the price holds": (FLUX_2, (2049, 2048), "4.19 megapixels"),
    "a strip": (FLUX_2, (401, 100), "more than 4 times the other"),
}


@pytest.mark.parametrize(("slug", "sent", "says"), LIMITS.values(), ids=LIMITS)
async def test_a_picture_that_a_model_would_not_take_is_refused_before_payment(
    fal, slug, sent, says
):
    endpoint, provider = fal.on_sale()[slug]
    for taken in [(2048, 2048), (400, 100)]:
        provider.validate(photo(taken), endpoint)
    request = photo(sent) if isinstance(sent, tuple) else REQUEST
    if isinstance(sent, bytes):
        request = attrs.evolve(REQUEST, attachment=Attachment(name="a.png", data=sent))
    with pytest.raises(InvalidInput, match=says):
        provider.validate(request, endpoint)
    await provider.close()


def test_the_cost_of_flux_2_is_that_of_the_largest_picture_that_is_taken():
    model = next(model for model in MODELS if model.slug == FLUX_2)
    # 1024 by 1024 pixels count as two megapixels, 2048 by 2048 as five.
    sent = math.ceil(model.edits.most_pixels / 1_000_000)
    assert model.cost_micros == 30_000 + 15_000 + sent * 15_000
