"""Elements of a WebM (RFC 8794), and numbers in them."""

import struct
from collections.abc import Iterator

import attrs

from gateway_media.child.bounds import CUT_OFF, UnfitError

VOID = 0xEC
_MOST_ID_BYTES, _MOST_SIZE_BYTES = 4, 8
_MOST_SIZE = 1 << 7 * _MOST_SIZE_BYTES
# A size of one byte is below this.
_SHORT_SIZE = 0x7F
# Of one range; clusters and their blocks are counted elsewhere.
_MOST_ELEMENTS = 2_000


@attrs.frozen
class Element:
    """An element: its begin, the begin of its content, and its end."""

    id: int
    at: int
    body: int
    # None: unknown, so the next element of a higher level ends it.
    end: int | None

    @property
    def place(self) -> tuple[int, int, int]:
        """Its range, for blanking; raises `UnfitError` for one without an end."""
        if self.end is None:
            raise UnfitError("has a part without an end")
        return self.at, self.body, self.end


def element_at(data: bytes, at: int, end: int) -> Element:
    """Return the element that begins here; raises `UnfitError` if it is longer than the range."""
    name, body = _variable(data, at, end, _MOST_ID_BYTES, is_marked=True)
    size, body = _variable(data, body, end, _MOST_SIZE_BYTES)
    if size is None:
        return Element(name or 0, at, body, None)
    if body + size > end:
        raise UnfitError(CUT_OFF)
    return Element(name or 0, at, body, body + size)


def elements(data: bytes, at: int, end: int) -> Iterator[Element]:
    """Yield the elements of a range, each with its end; raises `UnfitError` for very many."""
    for _ in range(_MOST_ELEMENTS):
        if at >= end:
            return
        found = element_at(data, at, end)
        _, _, at = found.place
        yield found
    raise UnfitError(f"has more than {_MOST_ELEMENTS:,} parts in a part")


def _variable(
    data: bytes, at: int, end: int, most: int, *, is_marked: bool = False
) -> tuple[int | None, int]:
    """Return a number of variable length, None for an unknown size, and the place after it."""
    first = data[at] if at < end else 0
    length = 9 - first.bit_length()
    if not first or length > most or at + length > end:
        raise UnfitError("is damaged, or cut off")
    value = int.from_bytes(data[at : at + length])
    if is_marked:
        return value, at + length
    value &= (1 << 7 * length) - 1
    return (None if value == (1 << 7 * length) - 1 else value), at + length


def block_head(data: bytes, body: int, end: int) -> tuple[int, int, int, int]:
    """Return track, relative time and flags of a block, and the begin of its frame."""
    track, at = _variable(data, body, end, _MOST_SIZE_BYTES)
    if track is None or at + 3 > end:
        raise UnfitError("has a malformed block")
    time, flags = struct.unpack_from(">hB", data, at)
    return track, time, flags, at + 3


def number(data: bytes, element: Element, *, is_signed: bool = False) -> int:
    """Return a whole number."""
    _, body, end = element.place
    if end - body > 8:  # noqa: PLR2004 - bytes
        raise UnfitError("has a malformed number")
    return int.from_bytes(data[body:end], signed=is_signed)


def real(data: bytes, element: Element) -> float:
    """Return a floating-point number."""
    _, body, end = element.place
    form = {0: "", 4: ">f", 8: ">d"}.get(end - body)
    if form is None:
        raise UnfitError("has a malformed number")
    return float(struct.unpack_from(form, data, body)[0]) if form else 0.0


def blank(data: bytes, places: list[tuple[int, int, int]]) -> bytes:
    """Return the file with empty space in place of some elements."""
    blanked = bytearray(data)
    for at, _, end in places:
        size = end - at - 2
        if size < _SHORT_SIZE:
            head = bytes((VOID, 0x80 | size))
        else:
            # The longest size: a marker of one byte, and seven bytes.
            head = bytes((VOID, 1)) + (end - at - 9).to_bytes(7)
        blanked[at:end] = head + bytes(end - at - len(head))
    return bytes(blanked)
