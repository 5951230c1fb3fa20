"""Boxes of an MP4 (ISO/IEC 14496-12), and numbers in them."""

import struct
from collections.abc import Iterator

import attrs

from gateway_media.child.bounds import CUT_OFF, UnfitError

_HEAD_BYTES, _LARGE_HEAD_BYTES = 8, 16
_MOST_BOXES = 2_000


@attrs.frozen
class Box:
    """A box of a file: its begin, the begin of its content, and its end."""

    name: bytes
    at: int
    body: int
    end: int

    @property
    def place(self) -> tuple[int, int, int]:
        """Its range, for blanking."""
        return self.at, self.body, self.end


def boxes(data: bytes, at: int, end: int) -> Iterator[Box]:
    """Yield the boxes of a range; raises `UnfitError` for one that is longer than the range."""
    for _ in range(_MOST_BOXES):
        if at >= end:
            return
        if end - at < _HEAD_BYTES:
            # QuickTime ends lists with zeros, and a transfer may add bytes to a file.
            if end != len(data) and data[at:end].strip(b"\0"):
                raise UnfitError(CUT_OFF)
            return
        size, name = struct.unpack_from(">I4s", data, at)
        body = at + _HEAD_BYTES
        if size == 1:
            body = at + _LARGE_HEAD_BYTES
            size = int.from_bytes(data[at + _HEAD_BYTES : body])
        elif size == 0 and end == len(data):
            size = end - at
        if size < body - at or at + size > end:
            raise UnfitError(CUT_OFF)
        yield Box(name, at, body, at + size)
        at += size
    raise UnfitError(f"has more than {_MOST_BOXES:,} parts")


def only(found: list[Box], name: bytes) -> Box:
    """Return the single box of a name; raises `UnfitError` for none or several."""
    named = [box for box in found if box.name == name]
    if len(named) != 1:
        raise UnfitError(f"has {len(named)} boxes {name.decode()} in a place for one")
    return named[0]


def number(data: bytes, box: Box, at: int, size: int = 4) -> int:
    """Return a number at an offset of a box's content; raises `UnfitError` outside of it."""
    if box.body + at + size > box.end:
        raise UnfitError("has a box that is too short")
    return int.from_bytes(data[box.body + at : box.body + at + size])


def version(data: bytes, box: Box) -> int:
    """Return the version of a full box."""
    return number(data, box, 0, 1)


def table(data: bytes, box: Box, form: str, at: int = 4) -> list[tuple[int, ...]]:
    """Return the rows of a table: a number of rows, and the rows, each in a form of `struct`."""
    count, size = number(data, box, at), struct.calcsize(form)
    begin = box.body + at + 4
    if count * size > box.end - begin:
        raise UnfitError("has a table that is cut off")
    return list(struct.iter_unpack(form, data[begin : begin + count * size]))


def blank(data: bytes, places: list[tuple[int, int, int]]) -> bytes:
    """Return the file with free space in place of some boxes."""
    blanked = bytearray(data)
    for at, body, end in places:
        blanked[at + 4 : at + 8] = b"free"
        blanked[body:end] = bytes(end - body)
    return bytes(blanked)
