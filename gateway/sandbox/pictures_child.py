"""Decodes one picture in a sandboxed process, and is gone: a stranger's bytes meet no secret."""

import io
import json

from PIL import Image, ImageOps

from gateway.sandbox.errors import SandboxRefusal

_KINDS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
MAX_PIXELS = 4096 * 4096 * 3 // 2  # half as many again as the largest picture on sale
_ORIENTATION = 0x0112  # the EXIF tag
_QUALITIES = {
    "png": {"compress_level": 4},  # half the time of the default, 3 % more bytes
    "jpg": {"quality": 92, "subsampling": 0},
    "webp": {"quality": 92},
}


def load_decoders() -> None:
    """Check one pixel of every format, lying on its side: Pillow loads much at first use."""
    Image.MAX_IMAGE_PIXELS = None  # ours is lower, and no warning
    exif = Image.Exif()
    exif[_ORIENTATION] = 6
    for name, kind in _KINDS.items():
        file = io.BytesIO()
        Image.new("RGB", (1, 1)).save(file, name, exif=exif)
        for wanted in (kind, *_QUALITIES):
            _checked(file.getvalue(), wanted)


def check(wanted: str, data: bytes) -> tuple[bytes, bytes]:
    """Return format and measures as JSON, and the picture where it had to be made anew.

    Raises `SandboxRefusal` for what cannot be sold as a picture.
    """
    try:
        facts, made = _checked(data, wanted)
    except (SandboxRefusal, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - a decoder may raise anything
        raise SandboxRefusal(f"it cannot be decoded ({type(error).__name__})") from None
    return json.dumps(facts).encode(), made


def _checked(data: bytes, wanted: str) -> tuple[dict[str, object], bytes]:
    """Return format and measures; the bytes only where they are new."""
    with Image.open(io.BytesIO(data), formats=list(_KINDS)) as image:
        if image.width * image.height > MAX_PIXELS:
            raise SandboxRefusal("it has too many pixels")
        if getattr(image, "n_frames", 1) != 1:
            raise SandboxRefusal("it moves")
        kind = _KINDS[image.format or ""]
        image.load()  # all of it: half a picture is none
        is_upright = image.getexif().get(_ORIENTATION, 1) in (0, 1)
        if is_upright and wanted in ("", kind):
            return {"format": kind, "width": image.width, "height": image.height}, b""
        made_kind = wanted or kind
        turned = ImageOps.exif_transpose(image)
        made = _encoded(turned, made_kind)
        return {"format": made_kind, "width": turned.width, "height": turned.height}, made


def _encoded(image: Image.Image, kind: str) -> bytes:
    """Return a picture anew: its colours' profile is kept, all other metadata is not."""
    profile = image.info.get("icc_profile") if image.mode in ("RGB", "RGBA", "P") else None
    has_alpha = image.has_transparency_data
    plain = image.convert("RGBA" if has_alpha else "RGB")
    if has_alpha and kind == "jpg":
        plain = _on_white(plain)
    plain.info.clear()
    file = io.BytesIO()
    plain.save(file, {"jpg": "JPEG"}.get(kind, kind), icc_profile=profile, **_QUALITIES[kind])
    return file.getvalue()


def _on_white(image: Image.Image) -> Image.Image:
    paper = Image.new("RGB", image.size, "white")
    paper.paste(image, mask=image.getchannel("A"))
    return paper
