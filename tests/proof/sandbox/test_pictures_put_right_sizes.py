"""A picture that is put right is about as large as before, and within the vendor's limit."""

import io

import pytest
import sandbox_functions
from PIL import Image

from gateway.domain import MAX_FILE_BYTES
from gateway.errors import InvalidInput
from gateway.sandbox import Sandbox, SandboxLimits
from gateway.sandbox.pictures import SentPictures
from tests.proof.sandbox.test_pictures_put_right import (
    NAMES,
    assert_plain,
    put_right,
    saved,
    turned,
)


@pytest.fixture(scope="module")
def pictures():
    pictures = SentPictures()
    yield pictures
    pictures.close()


def photo(side=1200):
    bands = [Image.effect_noise((side // 4, side // 4), 40 + 9 * n) for n in range(3)]
    return Image.merge("RGB", bands).resize((side, side), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize(
    "options",
    [
        {"quality": 60},
        {"quality": 85, "subsampling": 0},
        {"quality": 90, "subsampling": 1, "optimize": True},
        {"quality": 95, "progressive": True},
    ],
    ids=str,
)
async def test_a_jpeg_keeps_its_size_and_quality(pictures, options, orientation):
    data = saved(photo(), "JPEG", exif=turned(orientation), **options)
    kept, image = await put_right(pictures, data, "a.jpg")
    assert_plain(image)
    assert 0.8 < len(kept) / len(data) < 1.05
    before = Image.open(io.BytesIO(data))
    assert list(image.quantization.values()) == list(before.quantization.values())
    assert image.layer == before.layer


async def test_a_jpeg_of_pure_noise_at_the_highest_quality_is_kept(pictures):
    noise = Image.merge("RGB", [Image.effect_noise((400, 400), 250) for _ in range(3)])
    data = saved(noise, "JPEG", quality=100, subsampling=0, exif=turned())
    assert len(data) > 4 * 400 * 400
    kept, image = await put_right(pictures, data, "a.jpg")
    assert image.quantization[0] == [1] * 64
    assert len(kept) < 1.01 * len(data)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
@pytest.mark.parametrize("exif", [turned(), b""], ids=["turned", "plain"])
async def test_the_smaller_limit_of_a_vendor_is_kept(pictures, kind, exif):
    data = saved(photo(), kind, quality=95, exif=exif)
    most = len(data) * 9 // 10
    kept, _ = await put_right(pictures, data, NAMES[kind], most_bytes=most)
    assert most / 2 < len(kept) <= most


async def test_a_png_is_packed_harder_before_it_is_refused(pictures):
    grey = Image.radial_gradient("L").resize((2_000, 2_000))
    easily, hard = (len(saved(grey.convert("RGB"), compress_level=level)) for level in (3, 9))
    assert hard < easily * 0.8
    most = (easily + hard) // 2
    kept, image = await put_right(pictures, saved(grey), "a.png", most_bytes=most)
    assert len(kept) <= most
    assert_plain(image)
    with pytest.raises(InvalidInput, match="send a smaller one, or a JPEG"):
        await put_right(pictures, saved(grey), "a.png", most_bytes=hard // 2)


@pytest.fixture
def brief():
    """Pictures that may take a fifth of the usual time."""
    load = f"{sandbox_functions.__name__}:pack_briefly"
    child = "gateway.sandbox.sent_pictures_child:put_right"
    limits = SandboxLimits(cpu_s=2, answer_bytes=MAX_FILE_BYTES + 100)
    pictures = SentPictures(Sandbox(function=child, warm=(load,), limits=limits))
    yield pictures
    pictures.close()


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "side"),
    [
        ("brief", 1_500),
        pytest.param("pictures", 5_000, marks=pytest.mark.full),
    ],
)
async def test_a_png_that_takes_long_to_pack_is_refused_and_ends_no_process(request, kind, side):
    """It would take five times what its process may take."""
    noise = Image.effect_noise((side, side), 0.5)
    data = saved(noise)
    assert len(data) <= MAX_FILE_BYTES
    most = len(saved(noise.convert("RGB"), compress_level=3)) - 100_000
    with pytest.raises(InvalidInput, match="as a plain picture of 8 bits: send a smaller"):
        await put_right(request.getfixturevalue(kind), data, "a.png", most_bytes=most)
