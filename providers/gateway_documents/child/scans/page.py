"""A scanned page: its lines and ruled lines, and a PDF with them."""

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from gateway_documents.child.lines import Box, usual_height
from gateway_documents.child.scans import rules
from gateway_documents.child.scans.lines import Line, Turn, angle_of

# In points: the height of most lines.
_LINE = 10.0
# Of a line's height: the letters, and what is below the base line.
_LETTERS, _DESCENT = 0.8, 0.2
# How much boxes around lines with and without descenders differ.
_SAME_HEIGHT = 0.2
# Of a line's height: the least space between words, and the least gap between columns.
_SPACE, _GAP = 0.15, 1.0
# Of a line's height: the length of a line that is part of a sentence; and the share of letters
# in such lines. Receipts have a quarter.
_LONG, _LONG_SHARE = 12.0, 0.4
# Each glyph is half as wide as its font's size, and is then stretched to its word.
_GLYPH = 0.5

# PDFium ignores the first byte of a range's end.
_RANGES = " ".join(f"<{row:02x}00> <{row:02x}FF> <{row:02x}00>" for row in range(256))
_TO_UNICODE = (
    "begincmap /CMapName /Unicode def /CMapType 2 def"
    " 1 begincodespacerange <0000> <FFFF> endcodespacerange"
    f" 256 beginbfrange {_RANGES} endbfrange endcmap"
)


@attrs.frozen(eq=False)
class Page:
    """The lines of a page in one direction, made level, and its ruled lines; in pixels."""

    lines: Sequence[Line]
    turn: Turn
    boxes: Sequence[Box]
    ruled: Sequence[rules.Rule]
    line_height: float

    @classmethod
    def of(cls, brightness: Any, lines: Sequence[Line]) -> "Page":
        """Return the page of a grey picture."""
        height, width = brightness.shape
        turn = Turn.of(angle_of(lines), width, height)
        boxes = [turn.box(line.corners, line.text) for line in lines]
        line_height = usual_height((line.height, line.size) for line in lines)
        ruled = rules.find(turn.picture(brightness), boxes, line_height)
        return cls(lines, turn, boxes, ruled, line_height)

    @property
    def has_sentences(self) -> bool:
        """Whether many lines are part of a sentence, unlike those of a receipt."""
        longer = sum(line.size for line in self.lines if line.length > _LONG * line.height)
        return longer >= _LONG_SHARE * sum(line.size for line in self.lines)

    @property
    def rare(self) -> dict[int, str]:
        """The characters that have another code in the PDF, by that code."""
        return {_code(char): char for box in self.boxes for char in box.text if char > "\uffff"}

    def to_pdf(self) -> bytes:
        """Return a PDF with the lines as its text layer."""
        scale, (width, height) = _LINE / self.line_height, self.turn.size
        return _document(width * scale, height * scale, "\n".join(self._drawn(scale, height)))

    def _drawn(self, scale: float, height: float) -> Iterator[str]:
        for left, top, right, bottom in self.ruled:
            start, end = _point(left, height - top, scale), _point(right, height - bottom, scale)
            yield f"{start} m {end} l S"
        for line, box in zip(self.lines, self.boxes, strict=True):
            is_body = abs(box.height / self.line_height - 1) <= _SAME_HEIGHT
            high = self.line_height if is_body else box.height
            base = height - (box.top + box.bottom + high) / 2 + _DESCENT * high
            size = _LETTERS * high
            for left, right, text in _words(line, box, self.turn):
                stretched = 100 * (right - left) / (_GLYPH * size * len(text))
                # PDFium omits single letters that none of the machine's fonts have.
                text += " " * (len(text) == 1)  # noqa: PLW2901
                yield (
                    f"BT /F {size * scale:.3f} Tf {stretched:.2f} Tz"
                    f" 1 0 0 1 {_point(left, base, scale)} Tm <{_codes(text)}> Tj ET"
                )


def _point(x: float, y: float, scale: float) -> str:
    return f"{x * scale:.2f} {y * scale:.2f}"


def _words(line: Line, box: Box, turn: Turn) -> Iterator[tuple[float, float, str]]:
    """Yield where words begin and end, and their texts; spaces between them are words, too."""
    words = [turn.box(corners, text) for text, corners in line.words]
    if "".join(word.text for word in words) != "".join(line.text.split()):
        words = [box]
    rest, left, end, text = line.text, box.left, box.left, ""
    for word in words:
        is_parted, rest = rest[:1].isspace(), rest.lstrip()[len(word.text) :]
        is_near = word.left - end < _GAP * box.height
        if text and (is_parted or not is_near):
            yield left, end, text
            left, text = word.left, ""
            if is_near:
                left = max(left, end + _SPACE * box.height)
                yield end, left, " "
        end, text = max(word.right, left + 1), text + word.text
    yield left, end, text


def _codes(text: str) -> str:
    return "".join(f"{_code(char):04x}" for char in text)


def _code(char: str) -> int:
    """Return a character's code of two bytes; that of a rare one is for private use."""
    return ord(char) if char <= "\uffff" else 0xE000 + ord(char) % 0x1900


def _document(width: float, height: float, content: str) -> bytes:
    """Return a PDF with a font whose codes are characters."""
    descriptor = "/Flags 4 /FontBBox [0 -200 500 800] /ItalicAngle 0 /Ascent 800 /Descent -200"
    bodies = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width:.2f} {height:.2f}]"
            " /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>"
        ),
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
        (
            "<< /Type /Font /Subtype /Type0 /BaseFont /Scan /Encoding /Identity-H"
            " /DescendantFonts [6 0 R] /ToUnicode 7 0 R >>"
        ),
        (
            "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Scan /FontDescriptor 8 0 R"
            f" /DW {1000 * _GLYPH:.0f}"
            " /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
        ),
        f"<< /Length {len(_TO_UNICODE)} >>\nstream\n{_TO_UNICODE}\nendstream",
        f"<< /Type /FontDescriptor /FontName /Scan {descriptor} /CapHeight 700 /StemV 80 >>",
    )
    file, places = b"%PDF-1.7\n", []
    for number, body in enumerate(bodies, 1):
        places.append(len(file))
        file += f"{number} 0 obj\n{body}\nendobj\n".encode()
    size = len(bodies) + 1
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"trailer << /Root 1 0 R /Size {size} >>\nstartxref\n{len(file)}\n%%EOF"
    return file + f"xref\n0 {size}\n0000000000 65535 f \n{table}{trailer}".encode()
