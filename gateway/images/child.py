"""Decodes one picture in a process of its own, and is gone: a stranger's bytes meet no secret.

Reads the wanted format on one line and the picture after it; writes one line of JSON, and the new
picture where it had to be made anew. Run by its path: it imports Pillow and nothing of ours.
"""

import io
import json
import sys

_KINDS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
_MAX_PIXELS = 4096 * 4096 * 3 // 2  # half as many again as the largest picture on sale
_MEMORY_BYTES = 1_500_000_000  # decoded, converted and encoded, and as much again
_CPU_S = 60
_ORIENTATION = 0x0112  # the EXIF tag
_QUALITIES = {
    "png": {"compress_level": 4},  # half the time of the default, 3 % more bytes
    "jpg": {"quality": 92, "subsampling": 0},
    "webp": {"quality": 92},
}


class NotAPicture(Exception):
    """Why these bytes cannot be sold as a picture."""


def main() -> None:
    """Check the picture on standard input."""
    sys.path[:] = sys.argv[1:]
    _limit()
    wanted = sys.stdin.buffer.readline().decode().strip()
    facts, made = _facts(sys.stdin.buffer.read(), wanted)
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n" + made)


def _limit() -> None:
    """Cap memory and time where the system can."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))


def _facts(data: bytes, wanted: str) -> tuple[dict[str, object], bytes]:
    try:
        return _checked(data, wanted)
    except NotAPicture as error:
        return {"refused": str(error)}, b""
    except Exception as error:  # noqa: BLE001 - a decoder may raise anything
        return {"refused": f"it cannot be decoded ({type(error).__name__})"}, b""


def _checked(data: bytes, wanted: str) -> tuple[dict[str, object], bytes]:
    """Return format and measures; the bytes only where they are new."""
    from PIL import Image, ImageOps  # noqa: PLC0415 - found by the path that main() sets

    Image.MAX_IMAGE_PIXELS = None  # ours is lower, and no warning
    with Image.open(io.BytesIO(data), formats=list(_KINDS)) as image:
        if image.width * image.height > _MAX_PIXELS:
            raise NotAPicture("it has too many pixels")
        if getattr(image, "n_frames", 1) != 1:
            raise NotAPicture("it moves")
        kind = _KINDS[image.format or ""]
        image.load()  # all of it: half a picture is none
        is_upright = image.getexif().get(_ORIENTATION, 1) in (0, 1)
        if is_upright and wanted in ("", kind):
            return {"format": kind, "width": image.width, "height": image.height}, b""
        made_kind = wanted or kind
        turned = ImageOps.exif_transpose(image)
        made = _encoded(turned, made_kind)
        return {"format": made_kind, "width": turned.width, "height": turned.height}, made


def _encoded(image: "Image.Image", kind: str) -> bytes:  # type: ignore[name-defined]  # noqa: F821
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


def _on_white(image: "Image.Image") -> "Image.Image":  # type: ignore[name-defined]  # noqa: F821
    from PIL import Image  # noqa: PLC0415 - found by the path that main() sets

    paper = Image.new("RGB", image.size, "white")
    paper.paste(image, mask=image.getchannel("A"))
    return paper


if __name__ == "__main__":
    main()
