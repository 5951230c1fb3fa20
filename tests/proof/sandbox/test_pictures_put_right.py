"""A buyer's picture is put right once: upright, one frame, 8 bits, RGB or RGBA, no metadata."""

import hashlib
import io
import random
from pathlib import Path

import pytest
from PIL import Image, ImageCms, PngImagePlugin

from gateway.domain import MAX_FILE_BYTES, Attachment, GenerationRequest
from gateway.errors import InvalidInput
from gateway.sandbox.pictures import SentPictures

FILES = Path(__file__).with_name("phone_pictures")
NAMES = {"PNG": "a.png", "JPEG": "a.jpg", "WEBP": "a.webp"}
ORIENTATION = 0x0112


@pytest.fixture(scope="module")
def pictures():
    pictures = SentPictures()
    yield pictures
    pictures.close()


def drawn(mode="RGB", size=(96, 64)):
    """A gradient from left to right, so that a turned picture looks different."""
    return Image.linear_gradient("L").rotate(90).resize(size).convert(mode)


def saved(image, kind="PNG", **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def turned(orientation=6):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    exif[0x010F] = "A phone"
    return exif


async def put_right(pictures, data, name, **limits):
    sent = Attachment(name=name, data=data)
    kept = await pictures.put_right(sent, **limits)
    image = Image.open(io.BytesIO(kept.data))
    image.load()
    assert kept.name == name
    assert kept.sha256 == hashlib.sha256(data).hexdigest()
    return kept.data, image


def assert_plain(image):
    assert image.mode in ("RGB", "RGBA")
    assert getattr(image, "n_frames", 1) == 1
    assert not image.getexif()
    assert not {"icc_profile", "exif", "xmp", "comment"} & image.info.keys()
    assert not getattr(image, "text", {})


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
async def test_a_plain_picture_keeps_its_bytes(pictures, kind, mode):
    data = saved(drawn("RGB" if kind == "JPEG" else mode), kind)
    kept, _ = await put_right(pictures, data, NAMES[kind])
    assert kept == data


async def test_a_phones_portrait_stands_upright(pictures):
    data = (FILES / "phone_portrait.jpg").read_bytes()
    before = Image.open(io.BytesIO(data))
    assert before.getexif()[ORIENTATION] == 6
    _, image = await put_right(pictures, data, "phone_portrait.jpg")
    assert (image.format, image.size) == ("JPEG", before.size[::-1])
    assert_plain(image)


async def test_a_phones_hdr_picture_is_its_first_frame_alone(pictures):
    data = (FILES / "phone_hdr.jpg").read_bytes()
    before = Image.open(io.BytesIO(data))
    assert (before.format, before.n_frames) == ("MPO", 2)
    kept, image = await put_right(pictures, data, "phone_hdr.jpg")
    assert (image.format, image.size) == ("JPEG", before.size)
    assert kept.count(b"\xff\xd8\xff") == 1
    assert_plain(image)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("orientation", range(2, 9))
async def test_every_orientation_stands_upright(pictures, kind, orientation):
    data = saved(drawn(), kind, exif=turned(orientation))
    _, image = await put_right(pictures, data, NAMES[kind])
    assert image.size == ((64, 96) if orientation > 4 else (96, 64))
    assert_plain(image)
    middle = image.height // 2
    left, right = (image.getpixel((x, middle)) for x in (2, image.width - 3))
    is_sideways = abs(left[0] - right[0]) < 40
    assert is_sideways == (orientation > 4)


def noted():
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Software", "an editor")
    return notes


XYZ = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
ODD = {
    "grey": ("PNG", drawn("L"), {}),
    "grey with alpha": ("PNG", drawn("LA"), {}),
    "16 bits of grey": ("PNG", drawn().convert("I").point(lambda v: v * 257).convert("I;16"), {}),
    "a palette": ("PNG", drawn().quantize(16), {}),
    "bilevel": ("PNG", drawn("1"), {}),
    "a transparent colour": ("PNG", drawn(), {"transparency": (0, 0, 0)}),
    "a text": ("PNG", drawn(), {"pnginfo": noted()}),
    "a profile": ("PNG", drawn(), {"icc_profile": SRGB}),
    "another profile": ("PNG", drawn("RGBA"), {"icc_profile": XYZ}),
    "a broken profile": ("PNG", drawn(), {"icc_profile": b"no profile"}),
    "where it was taken": ("JPEG", drawn(), {"exif": turned(1)}),
    "XMP": ("JPEG", drawn(), {"xmp": b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>"}),
    "a comment": ("JPEG", drawn(), {"comment": b"taken at home"}),
    "a grey JPEG": ("JPEG", drawn("L"), {}),
    "print colours": ("JPEG", drawn("CMYK"), {}),
    "a profile of a WebP": ("WEBP", drawn(), {"icc_profile": SRGB, "exif": turned(1)}),
}


@pytest.mark.parametrize(("kind", "image", "options"), ODD.values(), ids=ODD)
async def test_what_vendors_may_refuse_becomes_plain(pictures, kind, image, options):
    data = saved(image, kind, **options)
    kept, plain = await put_right(pictures, data, NAMES[kind])
    assert kept != data
    assert (plain.format, plain.size) == (kind, (96, 64))
    assert_plain(plain)
    dark, light = plain.convert("L").getextrema()
    assert light - dark > 130, "its light and shade were lost"


async def test_a_film_behind_a_photograph_is_cut_off(pictures):
    data = saved(drawn(), "JPEG") + b"\0\0\0\x18ftypmp42" + bytes(5_000)
    kept, image = await put_right(pictures, data, "a.jpg")
    assert len(kept) < 5_000
    assert_plain(image)


async def test_what_gets_too_large_is_refused_with_the_way_out(pictures):
    dice = random.Random(1)
    noise = Image.frombytes("P", (2_500, 2_500), dice.randbytes(2_500**2))
    noise.putpalette(dice.randbytes(3 * 256))
    data = saved(noise, "PNG", compress_level=1)
    assert 5_000_000 < len(data) <= MAX_FILE_BYTES
    with pytest.raises(InvalidInput, match="as a plain picture of 8 bits: send a smaller"):
        await pictures.put_right(Attachment(name="a.png", data=data))


@pytest.mark.full
async def test_a_large_jpeg_stays_within_the_limit(pictures):
    noise = Image.effect_noise((4_800, 4_800), 60).convert("RGB")
    data = saved(noise, "JPEG", quality=40, exif=turned())
    assert len(data) > MAX_FILE_BYTES / 2
    kept, _ = await put_right(pictures, data, "a.jpg")
    assert len(kept) <= MAX_FILE_BYTES


async def test_the_fingerprint_is_that_of_the_buyers_bytes(pictures):
    sent = Attachment(name="a.jpg", data=saved(drawn(), "JPEG", exif=turned()))
    kept = await pictures.put_right(sent)
    assert kept.data != sent.data
    orders = [GenerationRequest(prompt="a", attachment=each) for each in (sent, kept)]
    assert len({order.fingerprint("edit") for order in orders}) == 1
