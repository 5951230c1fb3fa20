"""The sizes of pictures; every side is a multiple of 16 pixels."""

import attrs

MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}
# Width and height in pixels at 1K; each pair has exactly the ratio of its name.
_SIZES = {
    "1:1": (1024, 1024),
    "4:3": (1152, 864),
    "3:4": (864, 1152),
    "16:9": (1280, 720),
    "9:16": (720, 1280),
}
# The scale at which a picture is drawn, and the factor by which it is then enlarged.
_SCALES = {"1K": (1, 1), "2K": (2, 1), "4K": (2, 2)}


@attrs.frozen
class Size:
    """The size of one picture: drawn at `scale` times its 1K size, then enlarged."""

    width_1k: int
    height_1k: int
    scale: int
    enlarge: int

    @property
    def width(self) -> int:
        """The finished width in pixels."""
        return self.width_1k * self.scale * self.enlarge

    @property
    def height(self) -> int:
        """The finished height in pixels."""
        return self.height_1k * self.scale * self.enlarge


def size_of(aspect_ratio: str, resolution: str) -> Size:
    """Return the size for a ratio such as 16:9 and a resolution such as 2K."""
    return Size(*_SIZES[aspect_ratio], *_SCALES[resolution])
