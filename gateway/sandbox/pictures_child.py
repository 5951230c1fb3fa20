"""Decodes one picture in a child process that holds no secrets and exits afterwards."""

import io
import json
from typing import cast

from PIL import Image

from gateway.sandbox.errors import SandboxRefusal

KINDS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
# One and a half times the pixels of the largest picture on sale.
MAX_PIXELS = 4096 * 4096 * 3 // 2
# Fewer pixels are too few to be judged as flat; no vendor sells a picture so small.
_MIN_JUDGED_PIXELS = 128 * 128
# Levels of a band, and how many of them the noise of one colour may take up.
_LEVELS = 256
_FLAT_LEVELS = 5
# Levels of 16 bits for each level of 8.
_LEVELS_16 = 257
# A flat picture may have one pixel in so many of another colour, and only so many in all: a moon in
# a large black sky has a thousand.
_STRAYS = 10_000
_MOST_STRAYS = 100
# The EXIF tag, and how a picture with each of its values is turned.
ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# PNG level 4 takes half the time of the default level, for 3 % more bytes.
_QUALITIES = {
    "png": {"compress_level": 4},
    "jpg": {"quality": 92, "subsampling": 0},
    "webp": {"quality": 92},
}

# For small pictures on pages.
_SMALL_QUALITY = 80


def load_decoders() -> None:
    """Check a rotated one-pixel picture of every format, because Pillow loads lazily."""
    # MAX_PIXELS is below Pillow's own limit, which would only warn.
    Image.MAX_IMAGE_PIXELS = None
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    for name, kind in KINDS.items():
        file = io.BytesIO()
        Image.new("RGB", (1, 1)).save(file, name, exif=exif)
        for wanted in (kind, *_QUALITIES):
            _check_picture(file.getvalue(), wanted)


def check(wanted: str, data: bytes) -> tuple[bytes, bytes]:
    """Return format, width and height as JSON, and the new bytes if it was re-encoded.

    Of a picture of one flat colour, the JSON has `is_flat` alone. `wanted` is a format, or empty to
    keep the picture's own. Raises `SandboxRefusal` for bytes that cannot be sold as a picture.
    """
    try:
        facts, encoded = _check_picture(data, wanted)
    except (SandboxRefusal, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a decoder may raise anything
        raise SandboxRefusal(f"it cannot be decoded ({type(error).__name__})") from None
    return json.dumps(facts).encode(), encoded


def shrink(sides: str, data: bytes) -> tuple[bytes, ...]:
    """Return the picture as WebP without metadata for each longest side in `sides`: "1024 128".

    Raises `SandboxRefusal` for bytes that cannot be sold as a picture.
    """
    _, upright = _check_picture(data, "")
    with Image.open(io.BytesIO(upright or data)) as image:
        plain = image.convert("RGB")
    return tuple(_shrink(plain, int(side)) for side in sides.split())


def _shrink(image: Image.Image, side: int) -> bytes:
    copy = image.copy()
    copy.thumbnail((side, side), Image.Resampling.LANCZOS)
    copy.info.clear()
    file = io.BytesIO()
    copy.save(file, "webp", quality=_SMALL_QUALITY, method=6)
    return file.getvalue()


def _check_picture(data: bytes, wanted: str) -> tuple[dict[str, object], bytes]:
    """Return facts and new bytes; the latter are empty if the picture is unchanged."""
    with Image.open(io.BytesIO(data), formats=list(KINDS)) as image:
        if image.width * image.height > MAX_PIXELS:
            raise SandboxRefusal("it has too many pixels")
        if getattr(image, "n_frames", 1) != 1:
            raise SandboxRefusal("it moves")
        kind = KINDS[image.format or ""]
        # Decode all of it, to detect truncation.
        image.load()
        if is_flat(image):
            return {"is_flat": True}, b""
        upright = turned_upright(image)
        if upright is image and wanted in ("", kind):
            return {"format": kind, "width": image.width, "height": image.height}, b""
        new_kind = wanted or kind
        encoded = _encode(upright, new_kind)
        return {"format": new_kind, "width": upright.width, "height": upright.height}, encoded


def turned_upright(image: Image.Image) -> Image.Image:
    """Return the picture as viewers show it: the same object if it is upright already.

    It is if its EXIF data cannot be read.
    """
    try:
        turn = _TURNS.get(image.getexif().get(ORIENTATION, 1))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Pillow raises anything for broken data
        turn = None
    return image if turn is None else image.transpose(turn)


def is_flat(image: Image.Image) -> bool:
    """Whether a decoded picture is one colour, as safety filters return it: black, grey or white.

    All but one of 10,000 pixels (and all but 100) lie within five levels of each band, as seen: a
    fully transparent picture is flat, and a black shape cut out by transparency is not.
    """
    if image.width * image.height < _MIN_JUDGED_PIXELS:
        return False
    if image.mode.startswith("I") or image.mode == "F":
        low, high = cast(tuple[float, float], image.getextrema())
        return high - low <= _FLAT_LEVELS * _LEVELS_16
    # "RGBa" has every colour multiplied by its transparency.
    seen = image.convert("RGBA").convert("RGBa") if image.has_transparency_data else image
    if seen.mode not in ("L", "RGBa"):
        seen = seen.convert("RGB")
    counts, pixels = seen.histogram(), seen.width * seen.height
    strays = min(pixels // _STRAYS, _MOST_STRAYS)
    bands = (counts[at : at + _LEVELS] for at in range(0, len(counts), _LEVELS))
    return all(pixels - _count_alike(band) <= strays for band in bands)


def _count_alike(band: list[int]) -> int:
    """Return the most pixels of a band within any few levels that follow each other."""
    return max(sum(band[low : low + _FLAT_LEVELS]) for low in range(_LEVELS - _FLAT_LEVELS + 1))


def _encode(image: Image.Image, kind: str) -> bytes:
    """Keep only the colour profile of the metadata."""
    profile = image.info.get("icc_profile") if image.mode in ("RGB", "RGBA", "P") else None
    has_alpha = image.has_transparency_data
    plain = image.convert("RGBA" if has_alpha else "RGB")
    if has_alpha and kind == "jpg":
        paper = Image.new("RGB", plain.size, "white")
        paper.paste(plain, mask=plain.getchannel("A"))
        plain = paper
    plain.info.clear()
    file = io.BytesIO()
    plain.save(file, {"jpg": "JPEG"}.get(kind, kind), icc_profile=profile, **_QUALITIES[kind])
    return file.getvalue()
