"""The picture that an unpaid client sends: decoded within bounds, or refused."""

import contextlib
import io
import struct
import sys
import zlib

import attrs
import pytest
from documents_hostile import packed
from PIL import Image

from gateway.domain import MAX_FILE_BYTES, MAX_PICTURE_PIXELS, MIN_PICTURE_SIDE, Attachment
from gateway.errors import ExecutionError, InvalidInput
from gateway.sandbox import Sandbox
from gateway.sandbox.pictures import SentPictures

FORMATS = {"a.png": "PNG", "A.JPG": "JPEG", "a.b.jpeg": "JPEG", "a.webp": "WEBP"}


@pytest.fixture(scope="module")
def pictures():
    pictures = SentPictures()
    yield pictures
    pictures.close()


def picture(kind="PNG", size=(80, 64), **options) -> bytes:
    file = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert("RGB").save(file, kind, **options)
    return file.getvalue()


def moving(kind: str) -> bytes:
    file, frame = io.BytesIO(), Image.new("RGB", (64, 64))
    other = Image.new("RGB", (64, 64), "red")
    frame.save(file, kind, save_all=True, append_images=[other])
    return file.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_of(width: int, height: int, packed: bytes, *more: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = (chunk(b"IHDR", header), *more, chunk(b"IDAT", packed), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def zeros(megabytes: int) -> bytes:
    return packed(bytes(10**6), megabytes)


def endless_scans() -> bytes:
    """Return a JPEG of 7.5 MB that repeats one scan, so that each byte takes long."""
    data = picture("JPEG", (5000, 5000), progressive=True, quality=5)
    start = data.rindex(b"\xff\xda")
    scan = data[start:-2]
    return data[:-2] + scan * ((MAX_FILE_BYTES - len(data)) // len(scan)) + data[-2:]


async def refusal(pictures, name, data) -> str:
    with pytest.raises(InvalidInput) as refused:
        await pictures.put_right(Attachment(name=name, data=data))
    return str(refused.value)


@pytest.mark.parametrize("name", FORMATS)
async def test_a_picture_that_is_what_its_name_says_is_taken(pictures, name):
    await pictures.put_right(Attachment(name=name, data=picture(FORMATS[name])))


async def test_the_smallest_and_the_largest_are_taken(pictures):
    for size in ((MIN_PICTURE_SIDE, MIN_PICTURE_SIDE), (5000, MAX_PICTURE_PIXELS // 5000)):
        await pictures.put_right(Attachment(name="a.png", data=picture(size=size)))


async def test_a_phones_photograph_with_a_hidden_second_picture_is_taken(pictures):
    file, hidden = io.BytesIO(), Image.new("RGB", (64, 64))
    Image.new("RGB", (80, 64)).save(file, "MPO", save_all=True, append_images=[hidden])
    await pictures.put_right(Attachment(name="photo.jpg", data=file.getvalue()))


async def test_a_size_that_no_vendor_takes_is_named(pictures):
    low = await refusal(pictures, "a.png", picture(size=(200, MIN_PICTURE_SIDE - 1)))
    assert low == "The picture has 200 x 63 pixels; each side needs 64 or more."
    high = await refusal(pictures, "a.png", picture(size=(5001, 5000)))
    assert high == "The picture has 5,001 x 5,000 pixels; up to 25,000,000 in all are taken."


@pytest.mark.parametrize(
    ("name", "kind"), [("a.jpg", "PNG"), ("a.png", "WEBP"), ("a.webp", "JPEG")]
)
async def test_another_format_than_the_names_is_told(pictures, name, kind):
    sentence = await refusal(pictures, name, picture(kind))
    written = {"PNG": "PNG", "WEBP": "WebP", "JPEG": "JPEG"}[kind]
    ending = name[1:]
    assert sentence == f"The name of the file ends in {ending}, but it is a {written}."


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
async def test_a_moving_picture_is_refused(pictures, kind):
    sentence = await refusal(pictures, f"a.{kind.lower()}", moving(kind))
    assert sentence == "The picture moves: send one that stands still."


@pytest.mark.parametrize(
    "data",
    [
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"%PDF-1.4",
        picture("GIF"),
        picture("TIFF"),
        picture()[:-40],
        picture("JPEG", (400, 400))[:-200],
        picture("WEBP")[:-10],
        b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
    ],
    ids=["svg", "pdf", "gif", "tiff", "cut png", "cut jpeg", "cut webp", "zeros"],
)
async def test_what_is_no_whole_picture_is_refused_in_one_sentence(pictures, data):
    sentence = await refusal(pictures, "a.png", data)
    assert sentence == "The picture is damaged, or is no PNG, JPEG or WebP."


async def test_a_picture_that_unpacks_to_gigabytes_is_refused_by_its_header(pictures):
    bomb = png_of(60_000, 60_000, zeros(120))
    assert "up to 25,000,000 in all" in await refusal(pictures, "a.png", bomb)


async def test_a_header_that_lies_about_the_size_unpacks_no_more_than_it_says(pictures):
    """A gigabyte of zeros behind a header of 64 by 64 pixels."""
    lie = png_of(64, 64, zeros(1000))
    assert len(lie) < MAX_FILE_BYTES
    await pictures.put_right(Attachment(name="a.png", data=lie))


@pytest.mark.parametrize("name", [b"zTXt", b"iCCP"])
async def test_a_text_or_a_profile_that_unpacks_to_a_gigabyte_is_refused(pictures, name):
    note = chunk(name, b"x\0\0" + zeros(1000))
    data = png_of(64, 64, zlib.compress(b"\0" * 65 * 64), note)
    assert "is damaged" in await refusal(pictures, "a.png", data)


async def test_a_jpeg_that_takes_minutes_is_stopped_after_seconds(pictures):
    # A busy machine gives it these seconds of CPU time late, but within five minutes.
    sandbox = pictures._sandbox
    patient = attrs.evolve(sandbox.limits, cpu_s=2, wall_s=300)
    own = Sandbox(function=sandbox.function, warm=sandbox.warm, limits=patient)
    with contextlib.closing(SentPictures(own)) as checking:
        sentence = await refusal(checking, "a.jpg", endless_scans())
    assert sentence == "The picture cannot be decoded: it takes too much time."


async def test_a_machine_that_cannot_check_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(ExecutionError, match="cannot be checked now"):
        await SentPictures().put_right(Attachment(name="a.png", data=picture()))
