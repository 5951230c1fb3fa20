"""Puts a buyer's picture right, in a child process that holds no secrets and exits afterwards.

Every provider gets the same plain picture: upright, one frame, 8 bits, RGB or RGBA in sRGB, without
metadata. One that is plain already keeps its bytes.
"""

import io
from collections.abc import Iterable

from PIL import Image, ImageCms, ImageOps

from gateway.sandbox.errors import SandboxRefusal
from gateway.sandbox.pictures_child import KINDS

# A phone's photo may contain a second, hidden picture. Pillow has another name for that.
_SENT_KINDS = KINDS | {"MPO": "jpg"}
# Parts of a file that are not the picture, as Pillow names them.
_METADATA = ("exif", "xmp", "XML:com.adobe.xmp", "icc_profile", "comment", "photoshop", "adobe")
# The place of a PNG's bit depth, and what a whole file ends with.
_PNG_DEPTH = 24
_PLAIN_DEPTH = 8
_ENDS = {"png": b"IEND\xae\x42\x60\x82", "jpg": b"\xff\xd9"}
# The formats' options from the best quality down, until the file is small enough. WebP's methods
# above 1 take too long.
_OPTIONS: dict[str, tuple[dict[str, int], ...]] = {
    "png": ({"compress_level": 3},),
    "jpg": (
        {"quality": 95, "subsampling": 0},
        *({"quality": quality, "subsampling": 2} for quality in (90, 78, 55, 30)),
    ),
    "webp": tuple({"quality": quality, "method": 1} for quality in (92, 75, 40)),
}
_FORMATS = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP"}
# The EXIF tag, for the pictures that warm up.
_ORIENTATION = 0x0112
_MEGA = 1_000_000


def load_decoders() -> None:
    """Put one small picture of every format right, because Pillow loads lazily."""
    Image.MAX_IMAGE_PIXELS = None
    exif = Image.Exif()
    exif[_ORIENTATION] = 6
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    for name, kind in KINDS.items():
        file = io.BytesIO()
        Image.new("RGB", (1, 1)).save(file, name, exif=exif, icc_profile=profile)
        put_right(file.getvalue(), "1", "1", str(_MEGA))
        file = io.BytesIO()
        Image.new("RGB", (1, 1)).save(file, name)
        assert put_right(file.getvalue(), "1", "1", str(_MEGA)) == (kind.encode(), b"")  # noqa: S101


def put_right(
    data: bytes, least_side: str, most_pixels: str, most_bytes: str
) -> tuple[bytes, bytes]:
    """Return the format of a buyer's picture (png, jpg or webp), and new bytes if it was not plain.

    Decodes all of it, but only after checking its size. Raises `SandboxRefusal` with a message for
    the buyer.
    """
    try:
        with Image.open(io.BytesIO(data), formats=list(KINDS)) as image:
            kind = _SENT_KINDS[image.format or ""]
            _check_size(image, int(least_side), int(most_pixels))
            # Decode all of it, to detect truncation.
            image.load()
            if _is_plain(image, kind, data):
                return kind.encode(), b""
            return kind.encode(), _encode(_plain_copy(image), kind, int(most_bytes))
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
    """Whether a decoded picture needs no change. Bytes after its end may be another picture."""
    if image.format == "MPO" or image.mode not in ("RGB", "RGBA"):
        return False
    if image.mode == "RGB" and image.has_transparency_data:
        return False
    if kind == "png" and data[_PNG_DEPTH] != _PLAIN_DEPTH:
        return False
    return data.endswith(_ENDS.get(kind, b"")) and not any(_find_metadata(image))


def _find_metadata(image: Image.Image) -> Iterable[str]:
    """Yield what an image holds besides its pixels; the resolution in dots per inch may stay."""
    yield from (name for name in _METADATA if image.info.get(name) and name != "adobe")
    # Texts of a PNG, and segments of a JPEG other than JFIF's and Adobe's, which tells the colours.
    yield from getattr(image, "text", {})
    segments = (name for name, _ in getattr(image, "applist", ()))
    yield from (name for name in segments if name not in ("APP0", "APP14"))


def _plain_copy(image: Image.Image) -> Image.Image:
    """Return an upright copy in RGB or RGBA, with the colours of sRGB."""
    profile = image.info.get("icc_profile")
    upright = ImageOps.exif_transpose(image)
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


def _encode(plain: Image.Image, kind: str, most_bytes: int) -> bytes:
    """Encode in the picture's own format; raises `SandboxRefusal` if it gets too large."""
    if kind == "jpg":
        plain = plain.convert("RGB")
    for options in _OPTIONS[kind]:
        file = io.BytesIO()
        plain.save(file, _FORMATS[kind], **options)
        if file.tell() <= most_bytes:
            return file.getvalue()
    raise SandboxRefusal(
        f"The picture has more than {most_bytes / _MEGA:g} MB as a plain picture of 8 bits: "
        "send a smaller one, or a JPEG."
    )
