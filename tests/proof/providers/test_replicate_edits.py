"""Edits of a buyer's picture on Replicate."""

import io
import math

import attrs
import pytest
from PIL import Image
from test_replicate import FLUX, KEY, URL, Replicate, prediction

from gateway import (
    AccountProblem,
    Attachment,
    GenerationRequest,
    InvalidInput,
    Link,
    SubmitUncertain,
    Transient,
)
from gateway_replicate.models import MODELS
from gateway_testing.provider.samples import PICTURE as PHOTO

FILES = "/v1/files"
SLUG = "replicate-flux-2-pro-edit"
REQUEST = GenerationRequest(
    prompt="make it winter",
    output_format="webp",
    resolution="1K",
    attachment=Attachment(name="Jane Doe, passport.jpeg", data=PHOTO),
)


class EditingReplicate(Replicate):
    slug = SLUG
    request = REQUEST

    def answer_upload(self, *replies):
        stored = {"id": "f1", "urls": {"get": self.stored}}
        self.answers("POST", FILES, *(replies or [(201, stored)]))

    def answer_job(self, *replies):
        self.answer_upload()
        super().answer_job(*replies)

    @property
    def stored(self):
        return f"{self.url}{FILES}/f1"


@pytest.fixture
def replicate(httpserver):
    fake = EditingReplicate(httpserver)
    yield fake
    for request in fake.seen:
        # The form's file.
        request.close()


def photo(size):
    stream = io.BytesIO()
    Image.new("RGB", size, "teal").save(stream, "png")
    return attrs.evolve(REQUEST, attachment=Attachment(name="a.png", data=stream.getvalue()))


async def test_an_edit_uploads_the_picture_and_names_its_address(replicate):
    replicate.answer_job()
    await replicate.submit()
    upload, order = replicate.seen
    (file,) = upload.files.values()
    assert (file.name, file.mimetype, file.stream.read()) == ("content", "image/jpeg", PHOTO)
    # The buyer's file name is not sent.
    assert file.filename == "picture.jpeg"
    assert {request.headers["Authorization"] for request in replicate.seen} == {f"Bearer {KEY}"}
    assert order.json == {
        "input": {
            "prompt": "make it winter",
            "output_format": "webp",
            "aspect_ratio": "custom",
            "width": 1024,
            "height": 1024,
            "input_images": [replicate.stored],
        }
    }


async def test_a_ratio_that_the_buyer_names_is_asked_for(replicate):
    replicate.answer_job()
    await replicate.submit(attrs.evolve(REQUEST, aspect_ratio="9:16", resolution="2K"))
    asked = replicate.seen[1].json["input"]
    assert (asked["aspect_ratio"], asked["resolution"]) == ("9:16", "4 MP")
    assert "width" not in asked
    assert asked["input_images"] == [replicate.stored]


@pytest.mark.parametrize("resolution", ["1K", "2K"])
@pytest.mark.parametrize("size", [(64, 64), (1024, 768), (2048, 2048), (200, 800)])
async def test_without_a_ratio_an_edit_has_the_pictures_within_what_is_billed(
    replicate, size, resolution
):
    replicate.answer_job()
    await replicate.submit(attrs.evolve(photo(size), resolution=resolution))
    asked = replicate.seen[1].json["input"]
    width, height = asked["width"], asked["height"]
    assert math.isclose(width / height, size[0] / size[1], rel_tol=32 / min(width, height))
    assert width % 32 == height % 32 == 0
    assert min(width, height) >= 256
    assert max(width, height) <= 2048
    assert width * height <= {"1K": 1024 * 1024, "2K": 4_000_000}[resolution]


async def test_an_edit_that_is_ready_is_a_link(replicate):
    result = await replicate.poll((200, prediction(replicate, "succeeded", output=URL)))
    assert result.outputs == (Link(url=URL, media_type="image/png"),)


UPLOADS = {
    "a token that is not right": ((401, {"title": "Unauthenticated"}), AccountProblem),
    "a file that is too large": ((413, {"detail": "too large"}), InvalidInput),
    "broken, which bills nothing": ((500, {}), Transient),
    "no address": ((201, {"id": "f1"}), Transient),
    "no JSON": ((201, "<html>"), Transient),
}


@pytest.mark.parametrize(("reply", "raised"), UPLOADS.values(), ids=UPLOADS)
async def test_without_the_upload_no_prediction_is_begun(replicate, reply, raised):
    replicate.answer_upload(reply)
    with pytest.raises(raised) as caught:
        await replicate.submit()
    assert type(caught.value) is raised
    assert len(replicate.seen) == 1


REFUSED = {
    "the picture": (422, "input.input_images.0", InvalidInput),
    "the list of pictures": (422, "input.input_images", InvalidInput),
    "the prompt": (422, "input.prompt", InvalidInput),
    "a size of ours": (422, "input.width", AccountProblem),
    "broken": (500, "", SubmitUncertain),
}


@pytest.mark.parametrize(("status", "field", "raised"), REFUSED.values(), ids=REFUSED)
async def test_a_picture_that_is_refused_takes_no_model_off_sale(replicate, status, field, raised):
    replicate.answer_upload()
    fields = [{"field": field, "type": "x", "description": "x"}]
    replicate.answers("POST", FLUX, (status, {"title": "Input", "invalid_fields": fields}))
    with pytest.raises(raised) as caught:
        await replicate.submit()
    assert type(caught.value) is raised
    assert len(replicate.seen) == 2


async def test_a_picture_that_costs_more_than_the_price_holds_is_refused_before_payment(replicate):
    endpoint, provider = replicate.on_sale()[SLUG]
    assert endpoint.edits_pictures
    provider.validate(photo((2048, 2048)), endpoint)
    refusals = {(2049, 2048): "4.19 megapixels", (401, 100): "more than 4 times the other"}
    for size, says in refusals.items():
        with pytest.raises(InvalidInput, match=says):
            provider.validate(photo(size), endpoint)
    await provider.close()


def test_the_cost_is_that_of_the_largest_picture_that_is_taken():
    model = next(model for model in MODELS if model.slug == SLUG)
    sent = math.ceil(model.edits.most_pixels / 1_000_000)
    for resolution, made in {"1K": 1, "2K": 4}.items():
        assert model.costs.get(resolution, model.cost_micros) == 15_000 * (1 + made + sent)
