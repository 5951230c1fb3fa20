"""Keeps the workflow out of sold files: ComfyUI writes the whole graph into them."""

import struct
from collections.abc import Iterator

PNG = b"\x89PNG\r\n\x1a\n"
# The chunks of a PNG that hold text or camera data.
_TEXTS = (b"tEXt", b"zTXt", b"iTXt", b"eXIf")
# Length, type and checksum around the data of a chunk.
_FRAME_BYTES = 12
# In every graph, whatever its quotes. Video players and cameras write text in these encodings.
_MARKS = tuple("class_type".encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be"))


def chunks_of(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the type and the bytes of each whole chunk of a PNG."""
    at = len(PNG)
    while at + _FRAME_BYTES <= len(png):
        (length,) = struct.unpack_from(">I", png, at)
        end = at + _FRAME_BYTES + length
        yield png[at + 4 : at + 8], png[at:end]
        at = end


def without_text(data: bytes) -> bytes:
    """Return a PNG without its text chunks; any other file unchanged."""
    if not data.startswith(PNG):
        return data
    return PNG + b"".join(chunk for kind, chunk in chunks_of(data) if kind not in _TEXTS)


def holds_graph(data: bytes) -> bool:
    """Whether a file contains a workflow in plain text."""
    return any(mark in data for mark in _MARKS)
