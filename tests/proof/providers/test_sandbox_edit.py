"""The sandbox's edit of a picture: derived from the buyer's picture, and changed by the prompt."""

import io

import pytest
from PIL import Image, ImageDraw, ImageOps

from gateway import Attachment, GenerationRequest, Job, Output
from gateway.sandbox.pictures_child import check
from gateway_sandbox_image import EDIT
from gateway_sandbox_image.renderer import Renderer
from gateway_sandbox_image.studio.picture import draw
from gateway_sandbox_image.studio.restyle import restyle, sheet_around
from tests.likeness import colour_difference, likeness, scene_of

# The painter runs at low priority, so on a busy machine it takes minutes.
PATIENCE_S = 1800.0


class Attempt(Job):
    task_id, attempt, endpoint = "task", 1, EDIT

    async def progress(self, fraction: float) -> None:
        assert 0 <= fraction <= 1


def shapes(size=(300, 200), mode="RGB") -> Image.Image:
    """Return an asymmetric picture: a disc on the left, a bar on the right."""
    picture = Image.new(mode, size, "white" if mode == "RGB" else (0, 0, 0, 0))
    pen = ImageDraw.Draw(picture)
    width, height = size
    pen.ellipse((width * 0.1, height * 0.2, width * 0.4, height * 0.7), fill="navy")
    pen.rectangle((width * 0.7, height * 0.1, width * 0.8, height * 0.95), fill="black")
    return picture


def file_of(picture: Image.Image, kind="PNG", **options) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


async def edit(prompt="winter, with snow", data=None, name="photo.png", kind="png") -> bytes:
    attachment = Attachment(name=name, data=file_of(shapes()) if data is None else data)
    request = GenerationRequest(prompt=prompt, attachment=attachment, output_format=kind)
    renderer = Renderer(timeout_s=PATIENCE_S)
    (output,) = (await renderer.submit(request, Attempt())).outputs
    assert isinstance(output, Output)
    return output.data


async def test_an_edit_shows_the_buyers_picture_in_other_colours():
    with Image.open(io.BytesIO(await edit())) as made:
        scene = made.crop(inner(made.size))
    assert likeness(shapes(), scene) > 0.8
    assert likeness(ImageOps.mirror(shapes()), scene) < 0.5
    assert colour_difference(shapes(), scene) > 10


def inner(size, shape=(300, 200)) -> tuple[int, int, int, int]:
    """Return the place of a picture of a shape on its sheet."""
    sheet = sheet_around(*shape)
    assert size == (sheet.width, sheet.height)
    across, down = sheet.picture
    return (sheet.margin, sheet.margin, sheet.margin + across, sheet.margin + down)


@pytest.mark.full
async def test_the_same_order_gives_the_same_bytes_and_another_prompt_others():
    one, again, other = [await edit(prompt) for prompt in ("a rainy night",) * 2 + ("autumn",)]
    assert one == again
    assert one != other


@pytest.mark.parametrize("kind", ["png", "jpg", "webp"])
async def test_every_format_is_one_that_the_gateway_sells_as_it_is(kind):
    facts, encoded = check(kind, await edit(kind=kind))
    assert f'"{kind}"' in facts.decode()
    assert encoded == b""


@pytest.mark.parametrize("size", [(64, 64), (300, 200), (200, 300), (4000, 64), (3000, 3000)])
def test_a_sheet_keeps_the_shape_of_the_picture_but_for_extremes(size):
    sheet = sheet_around(*size)
    width, height = sheet.picture
    wanted = min(3.0, max(1 / 3, size[0] / size[1]))
    assert width / height == pytest.approx(wanted, rel=0.01)
    assert 600 <= max(sheet.width, sheet.height) <= 2000


def test_a_rotated_photograph_is_put_upright():
    exif = Image.Exif()
    # EXIF orientation 6: the top is at the right.
    exif[0x0112] = 6
    data = file_of(shapes().rotate(90, expand=True), "JPEG", exif=exif)
    made = restyle("day", data)
    assert made.width > made.height
    assert likeness(shapes(), made.crop(inner(made.size))) > 0.8


def test_transparent_places_become_white():
    made = restyle("day", file_of(shapes(mode="RGBA")))
    assert likeness(shapes(), made.crop(inner(made.size))) > 0.8


@pytest.mark.full
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("scale", [1, 2])
def test_a_picture_of_the_renderers_own_gets_no_second_sheet(kind, scale):
    """Its file has no metadata: the gateway removes what a buyer sends."""
    own = draw("a mountain lake in the evening", 1152, 864, scale)
    made = restyle("winter", file_of(own, kind))
    assert made.width / made.height == pytest.approx(4 / 3, rel=0.01)
    assert likeness(scene_of(own), scene_of(made)) > 0.85
    again = restyle("night", file_of(made, kind))
    assert again.size == pytest.approx(made.size, abs=8)
    assert likeness(scene_of(made), scene_of(again)) > 0.8


@pytest.mark.parametrize("rim", ["white", "black", "#e6f1f6"])
def test_the_border_of_another_picture_stays(rim):
    picture = ImageOps.expand(shapes((600, 400)), 60, rim)
    made = restyle("day", file_of(picture))
    assert likeness(picture, made.crop(inner(made.size, picture.size))) > 0.8


async def test_the_file_says_that_no_ai_made_it():
    with Image.open(io.BytesIO(await edit())) as made:
        assert "not an AI model" in made.info["Description"]
