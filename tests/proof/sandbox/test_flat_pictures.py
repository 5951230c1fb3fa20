"""A picture of one flat colour shows nothing; real flat pictures, logos and paper survive."""

import io
import random

import pytest
from PIL import Image, ImageDraw, ImageFilter

from gateway.sandbox.pictures_child import is_flat

SIZE = (640, 480)


def noisy(level, spread):
    image = Image.new("L", SIZE)
    chance = random.Random(level)
    image.putdata([level + chance.randint(-spread, spread) for _ in range(640 * 480)])
    return image.convert("RGB")


def drawn(mode="RGB", ground="white", ink="black", width=3):
    image = Image.new(mode, SIZE, ground)
    ImageDraw.Draw(image).line((100, 100, 300, 240), fill=ink, width=width)
    return image


def compressed(image, quality):
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return Image.open(io.BytesIO(file.getvalue()))


def with_stray():
    image = Image.new("RGB", SIZE, "black")
    image.putpixel((5, 5), (255, 255, 255))
    return image


def moon():
    """A moon of 1,257 pixels in a black sky of 16 million."""
    sky = Image.new("RGB", (4096, 4096), "black")
    ImageDraw.Draw(sky).ellipse((1000, 1000, 1040, 1040), fill="white")
    return sky


def large_with_strays():
    image = Image.new("L", (4096, 4096))
    for at in range(100):
        image.putpixel((at * 40, at * 17), 255)
    return image


def cut_out():
    """A black shape: all its pixels are black, and its outline is in the transparency."""
    shape = Image.new("RGBA", SIZE, (0, 0, 0, 0))
    ImageDraw.Draw(shape).ellipse((50, 50, 250, 250), fill=(0, 0, 0, 255))
    return shape


def unseen():
    """Colours that a full transparency hides."""
    image = Image.radial_gradient("L").resize(SIZE).convert("RGBA")
    image.putalpha(0)
    return image


def wide_gradient():
    return Image.linear_gradient("L").resize(SIZE).convert("I").point(lambda v: v * 257)


FLAT = {
    "black": lambda: Image.new("RGB", SIZE),
    "white": lambda: Image.new("L", SIZE, 255),
    "a grey JPEG": lambda: compressed(Image.new("RGB", SIZE, (127, 128, 126)), 75),
    "black with noise": lambda: noisy(2, 2),
    "one stray pixel": with_stray,
    "stray pixels in a large one": large_with_strays,
    "transparent": lambda: Image.new("RGBA", SIZE, (0, 0, 0, 0)),
    "hidden by transparency": unseen,
    "a palette": lambda: Image.new("P", SIZE, 3),
    "16 bits": lambda: Image.new("I;16", SIZE, 40_000),
    "bilevel": lambda: Image.new("1", SIZE, 1),
    "CMYK": lambda: compressed(Image.new("CMYK", SIZE, (0, 0, 0, 255)), 90),
}
SEEN = {
    "a line on white": drawn,
    "a thin line on black": lambda: drawn(ground="black", ink="#202020", width=1),
    "two flat colours": lambda: drawn(ground="#ff0000", ink="#f20000", width=40),
    "a moon": moon,
    "a logo": cut_out,
    "paper with grain": lambda: noisy(248, 6),
    "a soft gradient": lambda: (
        Image.linear_gradient("L").resize(SIZE).point(lambda v: 240 + v // 25)
    ),
    "stars": lambda: noisy(6, 6).filter(ImageFilter.GaussianBlur(0.5)),
    "16 bits": wide_gradient,
    "bilevel": lambda: drawn("1", 1, 0),
    "too small to judge": lambda: Image.new("RGB", (64, 64)),
}


@pytest.mark.parametrize("make", FLAT.values(), ids=FLAT)
def test_one_flat_colour_shows_nothing(make):
    image = make()
    image.load()
    assert is_flat(image)


@pytest.mark.parametrize("make", SEEN.values(), ids=SEEN)
def test_a_picture_that_shows_something_is_kept(make):
    image = make()
    image.load()
    assert not is_flat(image)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_every_format_is_judged_after_decoding(kind):
    file = io.BytesIO()
    Image.new("RGB", SIZE, "#101010").save(file, kind)
    decoded = Image.open(io.BytesIO(file.getvalue()))
    decoded.load()
    assert is_flat(decoded)
