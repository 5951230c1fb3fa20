"""Pictures are enlarged and repaired, without visible tiles."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from gateway.sandbox.errors import SandboxRefusal
from tests.plugins.gateway_pictures.drawn import drawings, file_of, opened, subject, texture

enlarging = pytest.importorskip(
    "gateway_pictures.child.enlarging", reason="run `make models` first"
)


@pytest.fixture(autouse=True, scope="module")
def _models():
    enlarging.load()
    yield
    enlarging._nets.clear()


def psnr(first: Image.Image, second: Image.Image) -> float:
    one, other = (np.asarray(each.convert("RGB"), np.float64) for each in (first, second))
    return 10 * np.log10(255**2 / ((one - other) ** 2).mean())


@pytest.mark.parametrize(
    ("work", "resolution", "factor"),
    [("enlarge", "2x", 2), ("enlarge", "4x", 4), *(("repair", f"{n}x", n) for n in (1, 2, 4))],
)
def test_sides_are_multiplied_exactly_and_the_content_stays(work, resolution, factor):
    picture = subject(301)[0].crop((0, 0, 131, 77))
    made = opened(enlarging.enlarge(file_of(picture), work, resolution, "png"))
    assert (made.mode, made.size) == ("RGB", (131 * factor, 77 * factor))
    assert psnr(made.resize(picture.size, Image.Resampling.BOX), picture) > 33


def test_an_enlarged_picture_is_nearer_to_the_original_than_by_bicubic():
    original = texture(320, 320).filter(ImageFilter.GaussianBlur(1))
    small = original.resize((160, 160), Image.Resampling.BICUBIC)
    made = opened(enlarging.enlarge(file_of(small), "enlarge", "2x", "png"))
    assert psnr(made, original) > psnr(small.resize((320, 320), Image.Resampling.BICUBIC), original)


def test_a_repaired_jpeg_is_nearer_to_the_original():
    original = subject(256)[0].crop((32, 32, 192, 192))
    blocky = opened(file_of(original, "JPEG", quality=8))
    made = opened(enlarging.enlarge(file_of(blocky), "repair", "1x", "png"))
    assert psnr(made, original) > psnr(blocky, original) + 1


@pytest.mark.parametrize("name", ["enlarge 2x", "enlarge 4x", "repair"])
def test_tiles_differ_from_the_whole_picture_by_one_level_at_most(name):
    picture = texture(150, 120)
    net, scale = enlarging._nets[name]
    tiled = enlarging.enlarged(net, picture, scale, scale, tile=64)
    whole = enlarging.enlarged(net, picture, scale, scale, tile=160)
    difference = np.abs(np.asarray(tiled).astype(int) - np.asarray(whole).astype(int))
    assert difference.max() <= 1


def test_transparency_is_enlarged_with_the_picture():
    picture = texture(90, 70).convert("RGBA")
    alpha = Image.linear_gradient("L").resize((90, 70))
    picture.putalpha(alpha)
    made = opened(enlarging.enlarge(file_of(picture), "enlarge", "2x", "png"))
    assert (made.mode, made.size) == ("RGBA", (180, 140))
    wanted = np.asarray(alpha.resize((180, 140), Image.Resampling.BICUBIC)).astype(int)
    assert np.abs(np.asarray(made.getchannel("A")).astype(int) - wanted).max() <= 1


@pytest.mark.parametrize("resolution", ["2x", "4x"])
@pytest.mark.parametrize("name", drawings())
def test_a_drawing_with_hard_edges_becomes_no_noise(name, resolution):
    drawing = drawings()[name]
    made = opened(enlarging.enlarge(file_of(drawing), "enlarge", resolution, "png"))
    shrunk = made.resize(drawing.size, Image.Resampling.BOX)
    difference = np.abs(np.asarray(shrunk).astype(int) - np.asarray(drawing).astype(int))
    assert (difference.max(2) > 60).mean() < 0.01
    if name != "logo":
        assert np.ptp(np.asarray(made).astype(int), axis=2).max() < 20, "it has colours"


def test_the_sharpness_of_a_photograph_is_kept_beside_a_caption():
    photo = texture(160, 96).filter(ImageFilter.GaussianBlur(1))
    captioned = photo.copy()
    captioned.paste(drawings()["text"].crop((0, 0, 64, 96)))
    alone, beside = (
        opened(enlarging.enlarge(file_of(each), "enlarge", "2x", "png")).crop((192, 0, 320, 192))
        for each in (photo, captioned)
    )
    assert alone.tobytes() == beside.tobytes()


@pytest.mark.parametrize("resolution", ["2x", "4x"])
def test_hidden_colours_leave_no_ring_around_a_transparent_picture(resolution):
    outline = Image.new("L", (384, 384))
    ImageDraw.Draw(outline).ellipse((64, 64, 320, 320), fill=255)
    outline = outline.resize((96, 96), Image.Resampling.LANCZOS)
    white = outline.point(lambda level: 255 if level else 0)
    disc = Image.merge("RGBA", (white, white, white, outline))
    made = opened(enlarging.enlarge(file_of(disc), "enlarge", resolution, "jpg"))
    assert made.convert("L").getextrema()[0] > 250


@pytest.mark.parametrize(("output_format", "kind"), [("jpg", "JPEG"), ("webp", "WEBP")])
def test_the_ordered_format_is_made(output_format, kind):
    picture = texture(64, 64).convert("RGBA")
    picture.putalpha(Image.linear_gradient("L").resize((64, 64)))
    made = opened(enlarging.enlarge(file_of(picture), "enlarge", "2x", output_format))
    assert made.format == kind


def test_a_flat_picture_is_refused_before_any_work():
    with pytest.raises(SandboxRefusal, match="one flat colour"):
        enlarging.enlarge(file_of(Image.new("RGB", (80, 80), "red")), "enlarge", "2x", "png")


def test_a_result_that_is_too_large_to_be_sold_is_refused(monkeypatch):
    monkeypatch.setattr("gateway_pictures.child.pictures._MAX_BYTES", 10_000)
    with pytest.raises(SandboxRefusal, match="order a smaller resolution"):
        enlarging.enlarge(file_of(texture(64, 64)), "enlarge", "2x", "png")


def test_nothing_but_pictures_is_decoded():
    gif = io.BytesIO()
    texture(64, 64).save(gif, "GIF")
    with pytest.raises(SandboxRefusal, match="cannot be decoded"):
        enlarging.enlarge(gif.getvalue(), "enlarge", "2x", "png")
