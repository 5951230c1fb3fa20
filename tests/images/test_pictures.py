"""Pictures that providers return: what is sold, what is converted, what is refused."""

import asyncio
import io
import os
import struct
import subprocess
import sys
import zlib

import attrs
import pytest
from PIL import Image, PngImagePlugin

from gateway import ContentPolicy, Output, Result, Transient
from gateway.images import MEDIA_TYPES, Pictures, checking, child
from tests.conftest import PNG, buy

FORMATS = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP"}


def picture(kind="png", size=(64, 48), mode="RGB", color=None, **options) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, color).save(file, FORMATS[kind], **options)
    return file.getvalue()


async def check(data, wanted="png"):
    result = Result(outputs=(Output(data=data, media_type="text/html", width=9, height=9),))
    (output,) = (await Pictures().check(result, wanted)).outputs
    return output


def opened(output) -> Image.Image:
    image = Image.open(io.BytesIO(output.data))
    image.load()
    return image


@pytest.mark.parametrize("kind", FORMATS)
async def test_what_is_right_already_keeps_its_bytes(kind):
    data = picture(kind)
    for wanted in (kind, None):
        output = await check(data, wanted)
        assert output == Output(data=data, media_type=MEDIA_TYPES[kind], width=64, height=48)


@pytest.mark.parametrize("made", FORMATS)
@pytest.mark.parametrize("wanted", FORMATS)
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "1", "LA", "I;16", "CMYK"])
async def test_every_format_becomes_every_other(made, wanted, mode, request):
    try:
        data = picture(made, mode=mode)
    except (OSError, ValueError):
        return  # that format has no such pictures
    output = await check(data, wanted)
    image = opened(output)
    assert (image.format, image.size) == (FORMATS[wanted], (64, 48))
    assert (output.media_type, output.width, output.height) == (MEDIA_TYPES[wanted], 64, 48)


async def test_what_is_transparent_lies_on_white_in_a_jpeg_and_stays_so_in_webp():
    data = picture(mode="RGBA", color=(255, 0, 0, 0))
    assert opened(await check(data, "jpg")).getpixel((5, 5)) == (255, 255, 255)
    assert opened(await check(data, "webp")).getpixel((5, 5))[3] == 0


async def test_a_new_picture_tells_nothing_but_its_colours():
    notes = PngImagePlugin.PngInfo()
    notes.add_text("parameters", "the buyer's prompt")
    exif = Image.Exif()
    exif[0x010E] = "the buyer's prompt"
    data = picture(pnginfo=notes, exif=exif, icc_profile=b"a profile" * 20)
    for wanted in ("jpg", "webp"):
        output = await check(data, wanted)
        assert b"prompt" not in output.data
        assert opened(output).info["icc_profile"] == b"a profile" * 20


async def test_a_picture_that_lies_on_its_side_is_put_upright():
    exif = Image.Exif()
    exif[0x0112] = 6
    output = await check(picture("jpg", exif=exif, comment="the buyer's prompt"), "jpg")
    assert b"prompt" not in output.data
    assert (output.width, output.height) == (48, 64)
    assert opened(output).size == (48, 64)


# -- refused


def bomb(width: int, height: int) -> bytes:
    """Return a PNG that claims a size and holds next to nothing."""

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


REFUSED = {
    "nothing": b"",
    "text": b"picture",
    "a page": b"<html>502 Bad Gateway</html>",
    "half a PNG": picture(size=(300, 300), color="red")[:400],
    "half a JPEG": picture("jpg", size=(300, 300))[:900],
    "a head alone": PNG[:33],
    "a bomb": bomb(40_000, 40_000),
    "one row too many": bomb(4096, 6145),
    "another format": gif(),
    "moving PNG": moving("PNG"),
    "moving WebP": moving("WEBP"),
    "lines of JSON": b'png\n{"format": "png"}\n',
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
async def test_what_is_no_whole_picture_is_another_attempt(data):
    for wanted in ("png", None):  # also where nothing would have to be converted
        with pytest.raises(Transient):
            await check(data, wanted)


async def test_the_largest_allowed_picture_is_sold():
    output = await check(bomb(4096, 6144), "png")
    assert (output.width, output.height) == (4096, 6144)


async def test_no_picture_at_all_is_a_refusal():
    for result in (Result(), Result(text="I cannot draw that.")):
        with pytest.raises(ContentPolicy):
            await Pictures().check(result, "png")


async def test_one_bad_picture_among_good_ones_spoils_all():
    outputs = tuple(Output(data=data, media_type="image/png") for data in (PNG, b"picture"))
    with pytest.raises(Transient):
        await Pictures().check(Result(outputs=outputs), "png")


# -- the child


@pytest.fixture
def children(monkeypatch):
    """The children that were started, with what they were given."""
    started, start = [], asyncio.create_subprocess_exec

    async def recorded(*command, **options):
        process = await start(*command, **options)
        started.append((process, options["env"]))
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", recorded)
    return started


async def test_the_decoder_sees_no_secrets(children, monkeypatch):
    monkeypatch.setenv("GATEWAY_SETTLEMENT_KEY", "0x" + "1" * 64)
    await check(PNG)
    assert set(children[0][1]) <= {"LD_LIBRARY_PATH", "SYSTEMROOT"}


async def test_a_decoder_that_hangs_is_killed(children, monkeypatch, tmp_path):
    hanging = tmp_path / "child.py"
    hanging.write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.setattr(checking, "_CHILD", str(hanging))
    monkeypatch.setattr(checking, "_TIMEOUT_S", 0.3)
    with pytest.raises(Transient, match="too long"):
        await check(PNG)
    assert children[0][0].returncode == -9


async def test_a_decoder_that_dies_is_another_attempt(monkeypatch, tmp_path):
    dying = tmp_path / "child.py"
    dying.write_text("import os\nos.kill(os.getpid(), 11)\n")
    monkeypatch.setattr(checking, "_CHILD", str(dying))
    with pytest.raises(Transient, match="ended its decoder"):
        await check(PNG)


async def test_who_waits_no_longer_leaves_no_decoder_behind(children, monkeypatch, tmp_path):
    hanging = tmp_path / "child.py"
    hanging.write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.setattr(checking, "_CHILD", str(hanging))
    checking_one = asyncio.create_task(check(PNG))
    async with asyncio.timeout(20):
        while not children:  # noqa: ASYNC110 - no event tells from outside
            await asyncio.sleep(0.01)
    checking_one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await checking_one
    assert children[0][0].returncode is not None


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
    assert child._MAX_PIXELS == 25_165_824


# -- sold


async def test_a_buyer_gets_the_format_he_asked_for(gateway, payer, provider):
    provider.script = [
        Result(outputs=(Output(data=picture(), media_type="image/png"),)),
    ]
    answer = await buy(gateway, payer.header(), output_format="webp")
    task = await gateway.wait((await answer.get_json())["taskId"])
    (output,) = task["result"]["outputs"]
    assert (output["mimeType"], output["width"], output["height"]) == ("image/webp", 64, 48)
    path = output["url"].removeprefix("http://gateway.test")
    data = await (await gateway.client.get(path)).get_data()
    assert Image.open(io.BytesIO(data)).format == "WEBP"


async def test_nonsense_is_asked_for_again(gateway, payer, provider):
    nonsense = Result(outputs=(Output(data=b"<html>", media_type="image/png"),))
    provider.script = [nonsense, nonsense]
    answer = await buy(gateway, payer.header())
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert (task["status"], task["attempt"]) == ("completed", 3)


async def test_a_picture_is_checked_for_pictures_only(gateway, payer, provider):
    """A document's own output is whatever it is."""
    registered = gateway.services.catalog["picture"]
    registered.endpoint = attrs.evolve(registered.endpoint, capability="document-parsing")
    provider.script = [Result(outputs=(Output(data=b"%PDF", media_type="application/pdf"),))]
    answer = await buy(gateway, payer.header())
    task = await gateway.wait((await answer.get_json())["taskId"])
    assert task["result"]["outputs"][0]["mimeType"] == "application/pdf"
