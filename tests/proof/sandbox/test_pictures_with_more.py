"""Only a file that holds one picture and nothing else keeps its bytes."""

import struct
import zlib

import pytest
from PIL import Image

from gateway.domain import Output, Result
from gateway.sandbox.pictures import Pictures, SentPictures
from tests.proof.sandbox.test_pictures_put_right import (
    NAMES,
    assert_plain,
    drawn,
    put_right,
    saved,
)

SECRET = b"a second picture"
BROKEN_EXIF = [bytes(20), b"", b"II*\0\xff\xff\xff\xff", b"Exif\0\0MM\0*" + b"\xff" * 40]


@pytest.fixture(scope="module")
def pictures():
    pictures = SentPictures()
    yield pictures
    pictures.close()


def png_chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def in_png(name, data=SECRET, at=33):
    whole = saved(drawn())
    return whole[:at] + png_chunk(name, data) + whole[at:]


def in_jpeg(marker, data=SECRET):
    whole = saved(drawn(), "JPEG")
    return whole[:2] + struct.pack(">BBH", 0xFF, marker, 2 + len(data)) + data + whole[2:]


def in_webp(name, data=SECRET):
    body = saved(drawn(), "WEBP")[8:] + name + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


MORE = {
    "a chunk of a PNG": ("PNG", in_png(b"prVt")),
    "a time in a PNG": ("PNG", in_png(b"tIME", b"\x07\xea\1\1\1\1\1")),
    "a PNG behind a PNG": ("PNG", saved(drawn()) * 2),
    "bytes behind a PNG": ("PNG", saved(drawn()) + SECRET),
    "a segment of a JPEG": ("JPEG", in_jpeg(0xEB)),
    "a small picture in a JPEG": ("JPEG", in_jpeg(0xE0, b"JFXX\0\x10" + SECRET)),
    "a JPEG behind a JPEG": ("JPEG", saved(drawn(), "JPEG") * 2),
    "bytes behind a JPEG": ("JPEG", saved(drawn(), "JPEG") + SECRET),
    "a chunk of a WebP": ("WEBP", in_webp(b"JUNK")),
    "two pictures in a WebP": ("WEBP", in_webp(b"VP8 ", saved(drawn(), "WEBP")[20:])),
    "a WebP behind a WebP": ("WEBP", saved(drawn(), "WEBP") * 2),
    "bytes behind a WebP": ("WEBP", saved(drawn(), "WEBP") + SECRET),
    "a byte behind a WebP": ("WEBP", saved(drawn(), "WEBP") + b"\0"),
}
PLAIN = {
    "dots per inch": ("PNG", saved(drawn(), dpi=(300, 300))),
    "a gamma": ("PNG", in_png(b"gAMA", struct.pack(">I", 45_455))),
    "a PNG in many pieces": ("PNG", saved(Image.effect_noise((400, 400), 90).convert("RGB"))),
    "dots per inch of a JPEG": ("JPEG", saved(drawn(), "JPEG", dpi=(300, 300))),
    "a progressive JPEG": ("JPEG", saved(drawn(), "JPEG", progressive=True)),
    "a JPEG with restarts": ("JPEG", saved(drawn(), "JPEG", restart_marker_blocks=1)),
    "a JPEG of RGB": ("JPEG", saved(drawn(), "JPEG", keep_rgb=True)),
    "a lossless WebP": ("WEBP", saved(drawn("RGBA"), "WEBP", lossless=True)),
    "a WebP with transparency": ("WEBP", saved(drawn("LA").convert("RGBA"), "WEBP")),
}


@pytest.mark.parametrize(("kind", "data"), MORE.values(), ids=MORE)
async def test_what_is_no_part_of_the_picture_is_left_out(pictures, kind, data):
    kept, image = await put_right(pictures, data, NAMES[kind])
    assert kept != data
    assert SECRET not in kept
    assert_plain(image)
    again, _ = await put_right(pictures, kept, NAMES[kind])
    assert again == kept


@pytest.mark.parametrize(("kind", "data"), PLAIN.values(), ids=PLAIN)
async def test_what_only_describes_pixels_stays(pictures, kind, data):
    kept, _ = await put_right(pictures, data, NAMES[kind])
    assert kept == data


def with_exif(kind, exif):
    return in_png(b"eXIf", exif) if kind == "PNG" else saved(drawn(), kind, exif=exif)


@pytest.mark.parametrize("exif", BROKEN_EXIF, ids=range(len(BROKEN_EXIF)))
@pytest.mark.parametrize("kind", NAMES)
async def test_a_picture_whose_exif_cannot_be_read_is_upright(pictures, kind, exif):
    _, image = await put_right(pictures, with_exif(kind, exif), NAMES[kind])
    assert image.size == (96, 64)
    assert_plain(image)


@pytest.mark.parametrize("exif", BROKEN_EXIF, ids=range(len(BROKEN_EXIF)))
@pytest.mark.parametrize("kind", NAMES)
async def test_so_is_a_vendors(kind, exif):
    vendors = Pictures()
    data = with_exif(kind, exif)
    result = Result(outputs=(Output(data=data, media_type="image/png"),))
    try:
        for wanted in (None, "png", "webp"):
            (output,) = (await vendors.check(result, wanted)).outputs
            assert (output.width, output.height) == (96, 64)
    finally:
        vendors.close()
