"""Decodes and encodes pictures within limits."""

import io
from typing import Any

from PIL import Image

from gateway.sandbox.errors import SandboxRefusal

_KINDS = ("PNG", "JPEG", "WEBP")
_MAX_PIXELS = 25_000_000
# The gateway sells pictures of up to 64 MB.
_MAX_BYTES = 63_000_000
# Speed counts more than the last percent of the size.
_OPTIONS: dict[str, dict[str, Any]] = {
    "png": {"format": "PNG", "compress_level": 4},
    "webp": {"format": "WEBP", "quality": 90, "method": 1},
    "jpg": {"format": "JPEG", "quality": 92, "subsampling": 0},
}
_LEVELS = 256
# The gateway sells no picture of one flat colour. These bounds are little wider than its own, so
# that what passes here passes there, also after a lossy format.
_FLAT_LEVELS = 8
_STRAYS, _MOST_STRAYS = 5_000, 200


def load_formats() -> None:
    """Decode and encode one small picture of each format, because Pillow loads lazily."""
    Image.MAX_IMAGE_PIXELS = None
    picture = Image.linear_gradient("L").convert("RGBA")
    for output_format in _OPTIONS:
        open_picture(encode(picture, output_format))


def open_picture(data: bytes) -> Image.Image:
    """Return a picture as RGB or RGBA; the gateway has put it right before.

    Raises `SandboxRefusal` for a picture that cannot be decoded, or of one flat colour.
    """
    try:
        with Image.open(io.BytesIO(data), formats=_KINDS) as image:
            _check_size(image)
            image.load()
            plain = image.convert("RGBA" if image.has_transparency_data else "RGB")
    except (SandboxRefusal, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - decoders raise anything
        raise SandboxRefusal("The picture cannot be decoded: it is damaged.") from None
    if all(max(band) == sum(band) for band in _bands(plain)):
        raise SandboxRefusal("The picture shows nothing: it is one flat colour.")
    return plain


def _check_size(image: Image.Image) -> None:
    if image.width * image.height > _MAX_PIXELS:
        raise SandboxRefusal("The picture has more than 25 million pixels.")


def is_flat(image: Image.Image) -> bool:
    """Whether almost all pixels have about the same colour, as seen, so that it cannot be sold."""
    pixels = image.width * image.height
    strays = min(pixels // _STRAYS, _MOST_STRAYS)
    return all(pixels - _most_alike(band) <= strays for band in _bands(image))


def _bands(image: Image.Image) -> list[list[int]]:
    """Return how many pixels have each level of each band, as seen."""
    counts = [0] * (_LEVELS * len(image.getbands()))
    # In strips, because a copy of a large picture takes too much memory.
    height = max(1, 1_000_000 // image.width)
    for top in range(0, image.height, height):
        strip = image.crop((0, top, image.width, min(image.height, top + height)))
        seen = strip.convert("RGBa") if strip.mode == "RGBA" else strip
        counts = [sum(pair) for pair in zip(counts, seen.histogram(), strict=True)]
    return [counts[at : at + _LEVELS] for at in range(0, len(counts), _LEVELS)]


def _most_alike(band: list[int]) -> int:
    return max(sum(band[low : low + _FLAT_LEVELS]) for low in range(_LEVELS - _FLAT_LEVELS + 1))


class _File(io.BytesIO):
    """A file that is given up when it gets too large to be sold."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if self.tell() + len(data) > _MAX_BYTES:
            raise SandboxRefusal(
                "The result has more than 63 MB in this format: order a smaller resolution, or "
                "webp or jpg as output_format."
            )
        return super().write(data)


def encode(image: Image.Image, output_format: str) -> bytes:
    """Return the file of a picture; a JPEG has white paper instead of transparency.

    Raises `SandboxRefusal` if it is too large to be sold.
    """
    if output_format == "jpg" and image.mode == "RGBA":
        image = on_paper(image, "#ffffff")
    file = _File()
    image.save(file, **_OPTIONS[output_format])
    return file.getvalue()


def on_paper(image: Image.Image, colour: str) -> Image.Image:
    """Return a picture with a background of one colour instead of transparency."""
    paper = Image.new("RGB", image.size, colour)
    paper.paste(image, mask=image.getchannel("A"))
    return paper
