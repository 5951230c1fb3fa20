"""Tells whether a picture's file holds that picture and nothing else.

Metadata, a second picture, and bytes that no viewer shows are something else. The resolution in
dots per inch and the description of the colours may stay.
"""

import re

_PNG_START = 8
# Length, name and checksum of a chunk.
_PNG_AROUND = 12
_PNG_CHUNKS = frozenset(
    (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"gAMA", b"cHRM", b"sRGB", b"sBIT", b"bKGD", b"pHYs")
)

_JPEG_START = 2
_START_OF_SCAN, _END_OF_IMAGE, _JFIF, _ADOBE = 0xDA, 0xD9, 0xE0, 0xEE
# Frames, tables and scans.
_JPEG_PARTS = frozenset((*range(0xC0, 0xD0), 0xDA, 0xDB, 0xDC, 0xDD)) - {0xC8}
# The kinds of data that only describe pixels or colours, by marker: their start and whole length.
# A longer one holds a small second picture.
_JPEG_DATA = {_JFIF: (b"JFIF\0", 16), _ADOBE: (b"Adobe", 14)}
# Ends the data of a scan, in which 00 and restarts belong to the data.
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")

_RIFF_START = 12
_RIFF_HEAD = 8
_WEBP_CHUNKS = frozenset((b"VP8 ", b"VP8L", b"VP8X", b"ALPH"))


def is_bare(kind: str, data: bytes) -> bool:
    """Whether a decodable file of a kind (png, jpg or webp) is one picture and nothing else."""
    return {"png": _is_bare_png, "jpg": _is_bare_jpeg, "webp": _is_bare_webp}[kind](data)


def _is_bare_png(data: bytes) -> bool:
    at, name = _PNG_START, b""
    while name != b"IEND":
        name = data[at + 4 : at + 8]
        if name not in _PNG_CHUNKS:
            return False
        at += _PNG_AROUND + int.from_bytes(data[at : at + 4])
    return at == len(data)


def _is_bare_jpeg(data: bytes) -> bool:
    at = _JPEG_START
    while data[at : at + 1] == b"\xff":
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if marker == _END_OF_IMAGE:
            return at + 2 == len(data)
        start, whole = _JPEG_DATA.get(marker, (b"", 0))
        is_data = bool(whole) and length == whole and data.startswith(start, at + 4)
        if marker not in _JPEG_PARTS and not is_data:
            return False
        at += 2 + length
        if marker == _START_OF_SCAN:
            end = _MARKER.search(data, at)
            at = end.start() if end else len(data)
    return False


def _is_bare_webp(data: bytes) -> bool:
    at, seen = _RIFF_START, set()
    end = _RIFF_HEAD + int.from_bytes(data[4:8], "little")
    while at < end:
        name, length = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if name not in _WEBP_CHUNKS or name in seen:
            return False
        seen.add(name)
        # Chunks have an even length.
        at += _RIFF_HEAD + length + length % 2
    return at == len(data) == end + end % 2
