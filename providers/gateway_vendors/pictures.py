"""The picture that a buyer sends to be edited: its size, a vendor's limits, its data URI.

The gateway decodes the picture in a sandbox before an adapter gets it. Here its size is read again
from the header alone.
"""

import math
import struct

import attrs

from gateway.domain import MAX_PICTURE_PIXELS, MIN_PICTURE_SIDE, Attachment
from gateway.errors import InvalidInput
from gateway_vendors.documents import base64_text, media_type

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8"
# Limits the search for the size; real files have some dozen markers.
_MAX_MARKERS = 2_000
# Start of frame: C0 to CF without the tables (C4, CC) and the reserved C8.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MARK = 0xFF
_MEGA = 1_000_000


@attrs.frozen(kw_only=True)
class PictureLimits:
    """A vendor's limits for the picture to edit, in addition to the gateway's own."""

    least_side: int = MIN_PICTURE_SIDE
    """In pixels."""
    most_pixels: int = MAX_PICTURE_PIXELS
    most_bytes: int | None = None
    """Of the file, before Base64."""
    most_ratio: float | None = None
    """The longer side divided by the shorter one."""

    def check(self, attachment: Attachment) -> None:
        """Raise `InvalidInput`, with a message for the buyer, if the picture exceeds the limits."""
        if self.most_bytes is not None and len(attachment.data) > self.most_bytes:
            most = f"{self.most_bytes / _MEGA:g} MB"
            raise InvalidInput(f"The picture is larger than {most}, which is the most here.")
        width, height = picture_size(attachment)
        if min(width, height) < self.least_side:
            raise InvalidInput(f"The picture needs {self.least_side} pixels or more a side here.")
        if width * height > self.most_pixels:
            most = f"{self.most_pixels / _MEGA:.3g} megapixels"
            raise InvalidInput(f"The picture has more than {most}, which is the most here.")
        if self.most_ratio is not None and max(width, height) > self.most_ratio * min(
            width, height
        ):
            raise InvalidInput(
                f"One side of the picture is more than {self.most_ratio:g} times the other, "
                "which is the most here."
            )


async def data_uri(attachment: Attachment) -> str:
    """Return a picture as `data:image/png;base64,…`; its media type follows from its name."""
    return f"data:{media_type(attachment)};base64,{await base64_text(attachment)}"


def picture_size(attachment: Attachment) -> tuple[int, int]:
    """Return width and height in pixels from the header of a PNG, JPEG or WebP.

    EXIF rotation is ignored. Raises `InvalidInput` for other data.
    """
    data = attachment.data
    try:
        if data.startswith(_PNG):
            return struct.unpack_from(">II", data, 16)
        if data.startswith(_JPEG):
            return _jpeg_size(data)
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return _webp_size(data)
    except (struct.error, IndexError):
        pass
    raise InvalidInput("The size of the picture cannot be read.")


def size_like(
    attachment: Attachment, *, most_pixels: int, longest_side: int, step: int = 16
) -> tuple[int, int]:
    """Return the largest size with about the picture's aspect ratio, in multiples of `step`.

    For APIs that take, and bill, an edit's size in pixels. Raises as `picture_size` does.
    """
    width, height = picture_size(attachment)
    scale = min(math.sqrt(most_pixels / (width * height)), longest_side / max(width, height))
    # The epsilon turns 511.9999 into 512: a vendor may refuse the next smaller size.
    return int(width * scale / step + 1e-6) * step, int(height * scale / step + 1e-6) * step


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Find the frame; raises `IndexError` if there is none."""
    at = len(_JPEG)
    for _ in range(_MAX_MARKERS):
        if data[at] != _MARK:
            break
        marker = data[at + 1]
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        if marker == _MARK:
            # A fill byte.
            at += 1
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + length
    raise IndexError


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        width, height = data[24:27], data[27:30]
        return int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    raise IndexError
