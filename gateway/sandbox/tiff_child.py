"""Counts the frames of a TIFF in a sandboxed process; loads nothing else of the gateway."""

import struct

from gateway.sandbox.errors import SandboxRefusal

# More frames do not fit into 7.5 MB.
_MAX_FRAMES = 1_000_000
# TIFF 6.0 is version 42, BigTIFF is 43. For each: the formats of an offset and of the tag count,
# and the size of a tag in bytes.
_TIFF_VERSIONS = {42: ("I", "H", 12), 43: ("Q", "Q", 20)}


def count_frames(data: bytes) -> int:
    """Return the length of the chain of directories, up to the first that repeats.

    Raises `SandboxRefusal` for a damaged file.
    """
    try:
        order = {b"II": "<", b"MM": ">"}[data[:2]]
        (version,) = struct.unpack_from(order + "H", data, 2)
        offset, number, tag_bytes = _TIFF_VERSIONS[version]
        link, total = struct.Struct(order + offset), struct.Struct(order + number)
        (at,) = link.unpack_from(data, 4 if version == 42 else 8)  # noqa: PLR2004 - TIFF 6.0
        seen: set[int] = set()
        while at and at not in seen and len(seen) < _MAX_FRAMES:
            seen.add(at)
            (tags,) = total.unpack_from(data, at)
            (at,) = link.unpack_from(data, at + total.size + tags * tag_bytes)
    except (KeyError, struct.error, OverflowError):
        raise SandboxRefusal("The TIFF is damaged or incomplete.") from None
    return len(seen)
