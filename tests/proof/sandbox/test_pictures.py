"""Pictures from providers: sold, converted or refused."""

import asyncio
import io
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest
from PIL import Image, PngImagePlugin

from gateway import ContentPolicy, Link, Output, Result, ResultUnusable
from gateway.sandbox import Sandbox, SandboxLimits, SandboxLost
from gateway.sandbox import pictures_child as child
from gateway.sandbox.pictures import MEDIA_TYPES, Pictures
from gateway_testing.fakes.api import picture_of
from tests.conftest import PNG

FORMATS = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP"}


def picture(kind="png", size=(64, 48), mode="RGB", color=None, **options) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, color).save(file, FORMATS[kind], **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def pictures():
    pictures = Pictures()
    yield pictures
    pictures.close()


async def check(pictures, data, wanted="png"):
    result = Result(outputs=(Output(data=data, media_type="text/html", width=9, height=9),))
    (output,) = (await pictures.check(result, wanted)).outputs
    return output


def opened(output) -> Image.Image:
    image = Image.open(io.BytesIO(output.data))
    image.load()
    return image


@pytest.mark.parametrize("kind", FORMATS)
async def test_what_is_right_already_keeps_its_bytes(pictures, kind):
    data = picture(kind)
    for wanted in (kind, None):
        output = await check(pictures, data, wanted)
        assert output == Output(data=data, media_type=MEDIA_TYPES[kind], width=64, height=48)


@pytest.mark.parametrize("made", FORMATS)
@pytest.mark.parametrize("wanted", FORMATS)
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "LA", "I;16", "CMYK"])
async def test_every_format_becomes_every_other(pictures, made, wanted, mode, request):
    try:
        data = picture(made, mode=mode)
    except (OSError, ValueError):
        return  # that format has no such pictures
    output = await check(pictures, data, wanted)
    image = opened(output)
    assert (image.format, image.size) == (FORMATS[wanted], (64, 48))
    assert (output.media_type, output.width, output.height) == (MEDIA_TYPES[wanted], 64, 48)


async def test_what_is_transparent_lies_on_white_in_a_jpeg_and_stays_so_in_webp(pictures):
    data = picture(mode="RGBA", color=(255, 0, 0, 0))
    assert opened(await check(pictures, data, "jpg")).getpixel((5, 5)) == (255, 255, 255)
    assert opened(await check(pictures, data, "webp")).getpixel((5, 5))[3] == 0


async def test_a_new_picture_tells_nothing_but_its_colours(pictures):
    notes = PngImagePlugin.PngInfo()
    notes.add_text("parameters", "the buyer's prompt")
    exif = Image.Exif()
    exif[0x010E] = "the buyer's prompt"
    data = picture(pnginfo=notes, exif=exif, icc_profile=b"a profile" * 20)
    for wanted in ("jpg", "webp"):
        output = await check(pictures, data, wanted)
        assert b"prompt" not in output.data
        assert opened(output).info["icc_profile"] == b"a profile" * 20


async def test_a_picture_that_lies_on_its_side_is_put_upright(pictures):
    exif = Image.Exif()
    exif[0x0112] = 6
    output = await check(pictures, picture("jpg", exif=exif, comment="the buyer's prompt"), "jpg")
    assert b"prompt" not in output.data
    assert (output.width, output.height) == (48, 64)
    assert opened(output).size == (48, 64)


# -- refused


def bomb(width: int, height: int) -> bytes:
    """Return a PNG that claims a size and contains almost nothing."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + crc

    head = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" * min(width * height * 3 + height, 80_000_000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def moving(kind) -> bytes:
    file = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    frames[0].save(file, kind, save_all=True, append_images=frames[1:])
    return file.getvalue()


def gif() -> bytes:
    file = io.BytesIO()
    Image.new("P", (8, 8)).save(file, "GIF")
    return file.getvalue()


# Each makes its file when its test runs, because every test process reads this table.
REFUSED = {
    "nothing": lambda: b"",
    "text": lambda: b"picture",
    "a page": lambda: b"<html>502 Bad Gateway</html>",
    "half a PNG": lambda: picture(size=(300, 300), color="red")[:400],
    "half a JPEG": lambda: picture("jpg", size=(300, 300))[:900],
    "a head alone": lambda: PNG[:33],
    "a bomb": lambda: bomb(40_000, 40_000),
    "one row too many": lambda: bomb(4096, 6145),
    "another format": gif,
    "moving PNG": lambda: moving("PNG"),
    "moving WebP": lambda: moving("WEBP"),
    "lines of JSON": lambda: b'png\n{"format": "png"}\n',
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
async def test_what_is_no_whole_picture_is_of_no_use(pictures, make):
    data = make()
    for wanted in ("png", None):  # also where nothing would have to be converted
        with pytest.raises(ResultUnusable):
            await check(pictures, data, wanted)


async def test_the_largest_allowed_picture_is_sold(pictures):
    output = await check(pictures, picture_of(4096, 6144), "png")
    assert (output.width, output.height) == (4096, 6144)


async def test_no_picture_at_all_is_a_refusal(pictures):
    for result in (Result(), Result(text="I cannot draw that.")):
        with pytest.raises(ContentPolicy):
            await pictures.check(result, "png")


async def test_one_bad_picture_among_good_ones_spoils_all(pictures):
    outputs = tuple(Output(data=data, media_type="image/png") for data in (PNG, b"picture"))
    with pytest.raises(ResultUnusable):
        await pictures.check(Result(outputs=outputs), "png")


# -- the child


def pictures_with(function, **limits) -> Pictures:
    return Pictures(
        sandbox=Sandbox(function=f"pictures_children:{function}", limits=SandboxLimits(**limits))
    )


async def test_the_decoder_sees_no_secrets(monkeypatch):
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0x" + "1" * 64)
    pictures = pictures_with("tell_environment")
    with pytest.raises(ResultUnusable) as refused:
        await pictures.check(Result(outputs=(Output(data=PNG, media_type=""),)), "png")
    pictures.close()
    assert "MALLOC_ARENA_MAX" in str(refused.value)
    assert "GATEWAY" not in str(refused.value)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [("hang", "out of time"), ("die", "crashed")],
)
async def test_a_picture_that_ends_its_decoder_is_of_no_use(function, sentence):
    pictures = pictures_with(function, wall_s=0.3)
    with pytest.raises(ResultUnusable, match=sentence):
        await pictures.check(Result(outputs=(Output(data=PNG, media_type=""),)), "png")
    pictures.close()


async def test_a_decoder_that_was_killed_from_outside_says_nothing_about_the_picture():
    pictures = pictures_with("vanish")
    with pytest.raises(SandboxLost, match="killed from outside"):
        await check(pictures, PNG)
    pictures.close()


async def test_a_link_is_not_a_picture_yet(pictures):
    with pytest.raises(TypeError):
        await pictures.check(Result(outputs=(Link(url="https://example.com/a.png"),)), "png")


async def test_pictures_of_many_buyers_are_checked_by_one_process(pictures):
    await asyncio.gather(*(check(pictures, PNG) for _ in range(20)))
    process = pictures._sandbox._running.process
    await check(pictures, PNG)
    assert pictures._sandbox._running.process is process


async def test_checking_writes_no_file(pictures, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = set(Path.cwd().iterdir())
    await check(pictures, picture_of(2000, 2000), "webp")
    assert not list(tmp_path.iterdir())
    assert set(Path.cwd().iterdir()) == before


def test_the_gateway_itself_loads_no_imaging_library():
    probe = (
        "import sys; sys.path[:0] = sys.argv[1:]; import gateway.app;"
        "print([name for name in ('PIL', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *filter(None, sys.path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert done.stdout.strip() == "[]"


def test_the_cap_is_the_one_that_is_documented():
    assert child.MAX_PIXELS == 25_165_824
