"""Blanks text of a .doc that Word does not show: anydoc prints deleted and hidden text.

The names are those of [MS-DOC]: a file's text is in pieces, formats are in runs of file positions.
"""

import io
import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import attrs
import olefile

_DOCUMENT, _TABLES = "WordDocument", ("0Table", "1Table")
_MAGIC, _ENCRYPTED, _SECOND_TABLE = 0xA5EC, 0x0100, 0x0200
# Where the header (FIB) has its flags, and the places of the table of formats and of the pieces.
_FLAGS, _BTE_CHPX, _CLX = 0x0A, 0xFA, 0x1A2
_PAGE = 512
_DELETED, _HIDDEN = 0x0800, 0x083C
# The same properties as the short form in a piece has them.
_SHORT = {0x41: _DELETED, 0x5C: _HIDDEN}
# Switched on, also against the style.
_ON = (0x01, 0x81)
# The operand's size by the highest bits of a property; 6 has its size in front.
_SIZES = (1, 1, 2, 4, 2, 2, 0, 3)
_TABLE_DEFINITION = 0xD608
# The ends of cells and sections, and the marks of fields, which anydoc needs in pairs.
_KEPT = frozenset((0x07, 0x0C, 0x13, 0x14, 0x15))
# anydoc drops it.
_BLANK = 0x7F
_TO_BLANK = bytes(char if char in _KEPT else _BLANK for char in range(256))

Range = tuple[int, int]
"""File positions from the first to behind the last."""


@attrs.frozen
class _Piece:
    start: int
    end: int
    width: int
    """Bytes of a character."""
    properties: bytes


def shown(data: bytes) -> tuple[bytes, bool]:
    """Return a .doc of the same size without deleted and hidden text, and whether some was hidden.

    A file that is encrypted, damaged or from before Word 97 stays as it is.
    """
    try:
        with olefile.OleFileIO(copy := io.BytesIO(data)) as container:
            document = bytearray(container.openstream(_DOCUMENT).read())
            flags = _number("<H", document, _FLAGS)
            if _number("<H", document, 0) != _MAGIC or flags & _ENCRYPTED:
                return data, False
            name = _TABLES[bool(flags & _SECOND_TABLE)]
            file = _File(document, container.openstream(name).read())
            if not (ranges := [*file.unseen()]):
                return data, False
            for piece, start, end in ranges:
                document[start:end] = _blanked(bytes(document[start:end]), piece.width)
            container.write_stream(_DOCUMENT, bytes(document))
            return copy.getvalue(), file.has_hidden
    except (OSError, ValueError, IndexError, struct.error):
        return data, False


def _number(form: str, data: bytes | bytearray, at: int) -> int:
    number: int = struct.unpack_from(form, data, at)[0]
    return number


def _blanked(text: bytes, width: int) -> bytes:
    if width == 1:
        return text.translate(_TO_BLANK)
    units = array("H", text)
    return array("H", (unit if unit in _KEPT else _BLANK for unit in units)).tobytes()


@attrs.define
class _File:
    document: bytearray
    table: bytes
    has_hidden: bool = attrs.field(default=False, init=False)

    def unseen(self) -> Iterator[tuple[_Piece, int, int]]:
        """Yield the parts of pieces that Word does not show."""
        pieces = [*self._pieces()]
        if sum(piece.end - piece.start for piece in pieces) > 2 * len(self.document):
            raise ValueError("pieces of the text overlap")
        runs = _joined(self._runs())
        starts = [start for start, _ in runs]
        for piece in pieces:
            if self._is_unseen(piece.properties):
                yield piece, piece.start, piece.end
                continue
            for at in range(max(bisect_right(starts, piece.start) - 1, 0), len(runs)):
                start, end = max(runs[at][0], piece.start), min(runs[at][1], piece.end)
                if runs[at][0] >= piece.end:
                    break
                if start < end:
                    yield piece, start, start + (end - start) // piece.width * piece.width

    def _pieces(self) -> Iterator[_Piece]:
        """Yield the pieces of the text with the properties of each."""
        at = _number("<I", self.document, _CLX)
        groups: list[bytes] = []
        while self.table[at] == 1:
            size = _number("<H", self.table, at + 1)
            groups.append(self.table[at + 3 : at + 3 + size])
            at += 3 + size
        size = _number("<I", self.table, at + 1)
        plc = self.table[at + 5 : at + 5 + size]
        count = (len(plc) - 4) // 12
        for number in range(count):
            first, last = struct.unpack_from("<II", plc, 4 * number)
            place, short = struct.unpack_from("<IH", plc, 4 * (count + 1) + 8 * number + 2)
            width = 1 if place & 0x4000_0000 else 2
            start = (place & 0x3FFF_FFFF) // (2 if width == 1 else 1)
            end = min(start + max(last - first, 0) * width, len(self.document))
            yield _Piece(start, max(end, start), width, _properties(short, groups))

    def _runs(self) -> Iterator[Range]:
        """Yield the runs whose format says that Word does not show them."""
        place, size = struct.unpack_from("<II", self.document, _BTE_CHPX)
        plc = self.table[place : place + size]
        count = (len(plc) - 4) // 8
        pages = {_number("<I", plc, 4 * (count + 1 + at)) & 0x3F_FFFF for at in range(count)}
        for number in pages:
            page = bytes(self.document[number * _PAGE : (number + 1) * _PAGE])
            for at in range(page[_PAGE - 1] if len(page) == _PAGE else 0):
                start, end = struct.unpack_from("<II", page, 4 * at)
                offset = 2 * page[4 * (page[_PAGE - 1] + 1) + at]
                properties = page[offset + 1 : offset + 1 + page[offset]] if offset else b""
                if self._is_unseen(properties):
                    yield start, end

    def _is_unseen(self, properties: bytes) -> bool:
        found = dict(_switches(properties))
        is_hidden = found.get(_HIDDEN) in _ON
        self.has_hidden = self.has_hidden or is_hidden
        return is_hidden or found.get(_DELETED) in _ON


def _properties(short: int, groups: Sequence[bytes]) -> bytes:
    """Return the properties of a piece, of which the short form has one."""
    if short & 1:
        return groups[short >> 1] if short >> 1 < len(groups) else b""
    name = _SHORT.get(short >> 1 & 0x7F)
    return b"" if name is None else struct.pack("<HB", name, short >> 8)


def _switches(properties: bytes) -> Iterator[Range]:
    """Yield the properties with an operand of one byte."""
    at = 0
    while at + 2 < len(properties):
        name = _number("<H", properties, at)
        at += 2
        size = _SIZES[name >> 13]
        if size == 1:
            yield name, properties[at]
        elif name == _TABLE_DEFINITION:
            size = _number("<H", properties, at) + 1
        at += size or properties[at] + 1


def _joined(ranges: Iterable[Range]) -> list[Range]:
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
