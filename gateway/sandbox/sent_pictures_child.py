"""Puts a buyer's picture right, in a child process that holds no secrets and exits afterwards.

Every provider gets the same plain picture: upright, one frame, 8 bits, RGB or RGBA in sRGB, without
metadata. One that is plain already keeps its bytes.
"""

import io
import math
import time
from collections.abc import Iterable
from typing import Any

from PIL import Image, ImageCms
from PIL.JpegImagePlugin import JpegImageFile, get_sampling

from gateway.sandbox.errors import SandboxRefusal
from gateway.sandbox.pictures_child import KINDS, ORIENTATION, turned_upright
from gateway.sandbox.plain_files import is_bare

# A phone's photo may contain a second, hidden picture. Pillow has another name for that.
_SENT_KINDS = KINDS | {"MPO": "jpg"}
# The place of a PNG's bit depth.
_PNG_DEPTH = 24
_PLAIN_DEPTH = 8
# The formats' options from the best quality down, until the file is small enough. A JPEG is saved
# with its own quality first. WebP's methods above 1 take too long.
_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "png": ({"compress_level": 3}, {"compress_level": 9}),
    "jpg": tuple({"quality": quality, "subsampling": 2} for quality in (90, 78, 55, 30)),
    "webp": tuple({"quality": quality, "method": 1} for quality in (92, 75, 40)),
}
# Larger numbers in a JPEG's tables of quality need a kind of JPEG that few programs read.
_MOST_COARSE = 255
# No further options are tried after this processor time, and PNG's level 9 is given up: 25 million
# pixels would take a minute. The sandbox ends its child after 10 s.
_TRIED_S = 7.0
_FORMATS = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP"}
_MEGA = 1_000_000


def load_decoders() -> None:
    """Put one small picture of every format right, because Pillow loads lazily."""
    Image.MAX_IMAGE_PIXELS = None
    exif = Image.Exif()
    exif[ORIENTATION] = 6
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    for name, kind in KINDS.items():
        file = io.BytesIO()
        Image.new("RGB", (1, 1)).save(file, name, exif=exif, icc_profile=profile)
        put_right(file.getvalue(), "1", "1", str(_MEGA))
        file = io.BytesIO()
        Image.new("RGB", (1, 1)).save(file, name)
        plain = put_right(file.getvalue(), "1", "1", str(_MEGA))
        assert plain == (kind.encode(), b"", b"1")  # noqa: S101


def put_right(
    data: bytes, least_side: str, most_pixels: str, most_bytes: str
) -> tuple[bytes, bytes, bytes]:
    """Return format (png, jpg or webp), new bytes if it was not plain, and pixels of a picture.

    One with more than `most_bytes` is not plain. Decodes all of it, but only after checking its
    size. Raises `SandboxRefusal` with a message for
    the buyer.
    """
    try:
        with Image.open(io.BytesIO(data), formats=list(KINDS)) as image:
            kind = _SENT_KINDS[image.format or ""]
            _check_size(image, int(least_side), int(most_pixels))
            pixels = b"%d" % (image.width * image.height)
            # Decode all of it, to detect truncation.
            image.load()
            if _is_plain(image, kind, data) and len(data) <= int(most_bytes):
                return kind.encode(), b"", pixels
            options = (*_own_options(image), *_OPTIONS[kind])
            encoded = _encode(_plain_copy(image), kind, options, int(most_bytes))
            return kind.encode(), encoded, pixels
    except (SandboxRefusal, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - a decoder may raise anything
        raise SandboxRefusal("The picture is damaged, or is no PNG, JPEG or WebP.") from None


def _check_size(image: Image.Image, least_side: int, most_pixels: int) -> None:
    size = f"{image.width:,} x {image.height:,} pixels"
    if image.width * image.height > most_pixels:
        raise SandboxRefusal(f"The picture has {size}; up to {most_pixels:,} in all are taken.")
    if min(image.size) < least_side:
        raise SandboxRefusal(f"The picture has {size}; each side needs {least_side} or more.")
    if image.format != "MPO" and getattr(image, "n_frames", 1) != 1:
        raise SandboxRefusal("The picture moves: send one that stands still.")


def _is_plain(image: Image.Image, kind: str, data: bytes) -> bool:
    """Whether a decoded picture needs no change."""
    if image.format == "MPO" or image.mode not in ("RGB", "RGBA"):
        return False
    if image.mode == "RGB" and image.has_transparency_data:
        return False
    if kind == "png" and data[_PNG_DEPTH] != _PLAIN_DEPTH:
        return False
    return is_bare(kind, data)


def _plain_copy(image: Image.Image) -> Image.Image:
    """Return an upright copy in RGB or RGBA, with the colours of sRGB."""
    profile = image.info.get("icc_profile")
    upright = turned_upright(image)
    if upright.mode.startswith("I"):
        # 16 bits of grey; `convert` would cut instead of scaling.
        upright = upright.convert("I").point(lambda level: level / 257).convert("L")
    alpha = upright.convert("RGBA").getchannel("A") if upright.has_transparency_data else None
    plain = _in_srgb(upright, profile)
    if alpha is not None:
        plain.putalpha(alpha)
    plain.info.clear()
    return plain


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Convert to RGB, by the picture's colour profile if it fits and is not sRGB itself."""
    colours = image if image.mode in ("RGB", "CMYK", "L") else image.convert("RGB")
    if profile:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            if "sRGB" not in ImageCms.getProfileDescription(source):
                target = ImageCms.createProfile("sRGB")
                return ImageCms.profileToProfile(colours, source, target, outputMode="RGB") or image
        except (ImageCms.PyCMSError, OSError):
            # A broken profile, or one of other colours: viewers ignore it too.
            pass
    return colours.convert("RGB")


def _own_options(image: Image.Image) -> Iterable[dict[str, Any]]:
    """Yield the options of a JPEG's own quality: a higher one would only make it larger."""
    if not isinstance(image, JpegImageFile):
        return
    tables = image.quantization
    if tables and max(map(max, tables.values())) <= _MOST_COARSE:
        is_progressive = bool(image.info.get("progressive"))
        own = {"qtables": list(tables.values()), "subsampling": get_sampling(image)}
        yield {**own, "progressive": is_progressive, "optimize": True}
        yield own


class _File(io.BytesIO):
    """A file that is given up when it gets too large, or takes too much processor time."""

    def __init__(self, most_bytes: int, until: float) -> None:
        super().__init__()
        self._most_bytes = most_bytes
        self._until = until

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self._most_bytes or time.process_time() > self._until:
            raise _TooMuchError
        return super().write(data)


class _TooMuchError(Exception):
    """A file has too many bytes, or takes too long."""


def _encode(
    plain: Image.Image, kind: str, options: Iterable[dict[str, Any]], most_bytes: int
) -> bytes:
    """Encode in the picture's own format; raises `SandboxRefusal` if it gets too large."""
    if kind == "jpg":
        plain = plain.convert("RGB")
    begun, until = time.process_time(), math.inf
    for each in options:
        file = _File(most_bytes, until)
        try:
            plain.save(file, _FORMATS[kind], **each)
            return file.getvalue()
        except (_TooMuchError, OSError):
            # Pillow raises `OSError` for an optimized JPEG above two bytes a pixel.
            until = begun + _TRIED_S
    raise SandboxRefusal(
        f"The picture has more than {most_bytes / _MEGA:g} MB as a plain picture of 8 bits: "
        "send a smaller one, or a JPEG."
    )
