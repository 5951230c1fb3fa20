"""A picture that the gateway refuses as flat is refused earlier, as the error of the buyer."""

import pytest
from PIL import Image, ImageDraw

from gateway.sandbox.errors import SandboxRefusal
from gateway.sandbox.pictures_child import is_flat as is_flat_for_the_gateway
from gateway_pictures.child.pictures import encode, is_flat, open_picture
from tests.plugins.gateway_pictures.drawn import file_of, opened, texture


def spotted(mode: str, spots: int) -> Image.Image:
    """Return a grey picture with some white pixels."""
    picture = Image.new(mode, (400, 300), "gray")
    for spot in range(spots):
        picture.putpixel((spot * 13 % 400, spot // 30 * 7), (255,) * len(mode))
    return picture


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("spots", [0, 1, 12, 24, 40])
def test_a_picture_that_is_flat_for_the_gateway_is_flat_here(mode, spots):
    picture = spotted(mode, spots)
    assert is_flat(picture) or not is_flat_for_the_gateway(picture)
    assert is_flat(picture) or spots == 40


@pytest.mark.parametrize("output_format", ["png", "jpg", "webp"])
def test_a_picture_that_passes_here_passes_the_gateway_in_each_format(output_format):
    made = opened(encode(spotted("RGB", 25), output_format))
    assert not is_flat_for_the_gateway(made)


def test_a_transparent_picture_is_flat_and_a_picture_with_content_is_not():
    assert is_flat(texture(64, 64).convert("RGBA")) is False
    clear = texture(64, 64).convert("RGBA")
    clear.putalpha(0)
    assert is_flat(clear)


def test_a_palette_with_transparency_is_opened_with_it():
    picture = texture(64, 64).convert("P")
    picture.info["transparency"] = 0
    assert open_picture(file_of(picture, "PNG", transparency=0)).mode == "RGBA"


def signed() -> Image.Image:
    page = Image.new("RGB", (2000, 1500), "white")
    ImageDraw.Draw(page).line([(1000, 900), (1100, 850), (1180, 920)], fill="navy", width=4)
    return page


def lettered() -> Image.Image:
    page = Image.new("RGB", (1600, 1200), "white")
    ImageDraw.Draw(page).text((100, 100), "Hello, three words", fill="black")
    return page


SPARSE = {
    "signature": signed(),
    "words": lettered(),
    "underexposed": texture(200, 150).point(lambda level: level * 14 // 255),
    "one pixel": spotted("RGB", 1),
}


@pytest.mark.parametrize("name", SPARSE)
def test_a_picture_with_little_on_it_is_opened(name):
    assert open_picture(file_of(SPARSE[name])).size == SPARSE[name].size
    assert is_flat(SPARSE[name]) == (name == "one pixel")


@pytest.mark.parametrize("colour", ["white", (9, 9, 9), (200, 0, 0, 0)])
def test_a_picture_of_one_colour_is_not_opened(colour):
    mode = "RGBA" if len(colour) == 4 else "RGB"
    with pytest.raises(SandboxRefusal, match="one flat colour"):
        open_picture(file_of(Image.new(mode, (100, 100), colour)))
