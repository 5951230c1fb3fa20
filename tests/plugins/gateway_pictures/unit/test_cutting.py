"""The subject is cut out of a picture."""

import numpy as np
import pytest
from PIL import Image

from gateway.sandbox.errors import SandboxRefusal
from tests.plugins.gateway_pictures.drawn import file_of, opened, subject

cutting = pytest.importorskip("gateway_pictures.child.cutting", reason="run `make models` first")


@pytest.fixture(autouse=True, scope="module")
def _model():
    cutting.load_u2net()
    yield
    cutting._models.clear()


def overlap(alpha: Image.Image, outline: Image.Image) -> float:
    """Return the intersection over the union."""
    first, second = np.asarray(alpha) > 127, np.asarray(outline) > 127
    return (first & second).sum() / (first | second).sum()


@pytest.mark.parametrize("output_format", ["png", "webp"])
def test_the_subject_is_kept_and_the_rest_is_transparent(output_format):
    picture, outline = subject()
    made = opened(cutting.cut_out(file_of(picture), "", output_format))
    assert (made.mode, made.size) == ("RGBA", picture.size)
    assert made.format == output_format.upper()
    assert overlap(made.getchannel("A"), outline) > 0.97


def test_a_large_photograph_keeps_its_size_and_the_subjects_colours():
    picture, outline = subject(1700)
    made = opened(cutting.cut_out(file_of(picture, "JPEG", quality=95), "", "png"))
    assert made.size == (1700, 1700)
    assert overlap(made.getchannel("A"), outline) > 0.97
    middle = (850, 760)
    assert made.getpixel(middle)[:3] == pytest.approx(picture.getpixel(middle), abs=6)


def test_a_background_colour_replaces_transparency():
    picture, _ = subject()
    made = opened(cutting.cut_out(file_of(picture), "#00ff00", "png"))
    assert (made.mode, made.getpixel((2, 2))) == ("RGB", (0, 255, 0))
    assert made.getpixel((128, 110)) == picture.getpixel((128, 110))


def test_parts_that_were_transparent_stay_so():
    picture, _ = subject()
    holed = picture.convert("RGBA")
    holed.putalpha(255)
    holed.paste((0, 0, 0, 0), (100, 0, 128, 256))
    made = opened(cutting.cut_out(file_of(holed), "", "png"))
    assert made.getpixel((110, 110))[3] == 0
    assert made.getpixel((150, 110))[3] > 200


@pytest.mark.parametrize(
    ("picture", "sentence"),
    [
        (Image.linear_gradient("L").convert("RGB"), "No subject was found"),
        (Image.new("RGB", (100, 100), "teal"), "it is one flat colour"),
        (Image.new("RGBA", (100, 100), (9, 9, 9, 0)), "it is one flat colour"),
    ],
)
def test_a_picture_without_a_subject_is_refused(picture, sentence):
    with pytest.raises(SandboxRefusal, match=sentence):
        cutting.cut_out(file_of(picture), "", "png")


@pytest.mark.parametrize("data", [b"", b"nonsense", file_of(subject()[0])[:900], b"\x89PNG" * 99])
def test_a_file_that_is_no_picture_is_refused(data):
    with pytest.raises(SandboxRefusal, match="cannot be decoded"):
        cutting.cut_out(data, "", "png")
