"""Writes small PDF files: text in Helvetica, lines and boxes, enough for a report."""

import zlib
from collections.abc import Iterator, Sequence

import attrs

# A4.
WIDTH, HEIGHT = 595, 842  # points
# The object number of the first page, after catalog, page tree, two fonts and title.
_FIRST_PAGE = 6
Colour = tuple[float, float, float]

BLACK: Colour = (0.13, 0.15, 0.18)

# Widths of the characters 32 to 126, in thousandths of the font size (Adobe's AFM files).
_REGULAR = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 "
    "556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 "
    "260 334 584"
)
_BOLD = (
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556 611 556 611 "
    "556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 "
    "280 389 584"
)
# The width of most accented letters, used for all characters beyond ASCII.
_OTHER_WIDTH = 556


@attrs.frozen
class Font:
    """One of the fonts that every PDF reader has."""

    resource: str
    base: str
    widths: tuple[int, ...]

    def width(self, text: str, size: float) -> float:
        """Return the width of a line; this and `size` are in points."""
        codes = [ord(character) - 32 for character in text]
        return (
            sum(self.widths[c] if c < len(self.widths) else _OTHER_WIDTH for c in codes)
            * size
            / 1000
        )


REGULAR = Font("F1", "Helvetica", tuple(map(int, _REGULAR.split())))
BOLD = Font("F2", "Helvetica-Bold", tuple(map(int, _BOLD.split())))


@attrs.define
class Page:
    """One page. Its lower left corner is (0, 0), and all lengths are in points."""

    operators: list[str] = attrs.field(factory=list)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        font: Font = REGULAR,
        size: float = 10,
        colour: Colour = BLACK,
        align: str = "left",
    ) -> None:
        """Write a line that starts, or ends (`align="right"`), at x."""
        if align == "right":
            x -= font.width(text, size)
        escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        self.operators.append(
            f"BT {_format_colour(colour)} rg /{font.resource} {size} Tf "
            f"{x:.2f} {y:.2f} Td ({escaped}) Tj ET"
        )

    def paragraph(
        self,
        x: float,
        y: float,
        text: str,
        *,
        width: float,
        size: float = 10,
        leading: float = 15,
        colour: Colour = BLACK,
    ) -> float:
        """Write text in lines of at most `width` points, and return the y below it."""
        for line in _wrap(text, width, size):
            self.text(x, y, line, size=size, colour=colour)
            y -= leading
        return y

    def box(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """Fill a rectangle."""
        self.operators.append(
            f"{_format_colour(colour)} rg {x:.2f} {y:.2f} {width:.2f} {height:.2f} re f"
        )

    def frame(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """Draw the outline of a rectangle."""
        self.operators.append(
            f"{_format_colour(colour)} RG 0.7 w {x:.2f} {y:.2f} {width:.2f} {height:.2f} re S"
        )

    def line(self, x: float, y: float, to_x: float, colour: Colour) -> None:
        """Draw a horizontal line."""
        self.operators.append(
            f"{_format_colour(colour)} RG 0.7 w {x:.2f} {y:.2f} m {to_x:.2f} {y:.2f} l S"
        )


def _format_colour(colour: Colour) -> str:
    return " ".join(f"{part:.3f}" for part in colour)


def _wrap(text: str, width: float, size: float) -> Iterator[str]:
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and REGULAR.width(longer, size) > width:
            yield line
            longer = word
        line = longer
    yield line


def write(pages: Sequence[Page], *, title: str = "") -> bytes:
    """Return a PDF 1.4 file of these pages."""
    kids = " ".join(f"{_FIRST_PAGE + 2 * index} 0 R" for index in range(len(pages)))
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        *(_write_font(font) for font in (REGULAR, BOLD)),
        f"<< /Title ({title}) >>".encode("cp1252"),
    ]
    for index, page in enumerate(pages):
        content = zlib.compress("\n".join(page.operators).encode("cp1252"))
        bodies.append(_write_page(_FIRST_PAGE + 2 * index + 1))
        head = f"<< /Length {len(content)} /Filter /FlateDecode >>".encode()
        bodies.append(head + b"\nstream\n" + content + b"\nendstream")
    return _assemble(bodies)


def _write_font(font: Font) -> bytes:
    base = font.base.encode()
    return b"<< /Type /Font /Subtype /Type1 /BaseFont /%b /Encoding /WinAnsiEncoding >>" % base


def _write_page(stream: int) -> bytes:
    fonts = " ".join(
        f"/{font.resource} {3 + index} 0 R" for index, font in enumerate((REGULAR, BOLD))
    )
    return (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] "
        f"/Contents {stream} 0 R /Resources << /Font << {fonts} >> >> >>"
    ).encode()


def _assemble(bodies: Sequence[bytes]) -> bytes:
    """Join the numbered objects and the table of their offsets."""
    pdf = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(pdf))
        pdf += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    xref = len(pdf)
    pdf += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    pdf += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    trailer = f"<< /Size {len(bodies) + 1} /Root 1 0 R /Info 5 0 R >>"
    return bytes(pdf + f"trailer\n{trailer}\nstartxref\n{xref}\n%%EOF\n".encode())
