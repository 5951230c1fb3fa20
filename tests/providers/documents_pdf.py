"""A small PDF writer: text in Helvetica, lines, boxes; enough for a report that looks well."""

import hashlib
import zlib
from collections.abc import Iterator, Sequence

import attrs

WIDTH, HEIGHT = 595, 842  # A4 in points
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
_OTHER_WIDTH = 556  # of what lies beyond ASCII: most accented letters


@attrs.frozen
class Font:
    """One of the fonts that every PDF reader has."""

    resource: str
    base: str
    widths: tuple[int, ...]

    def width(self, text: str, size: float) -> float:
        """Return how wide a line is, in points."""
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
    """One page; (0, 0) is its lower left corner, as in every PDF."""

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
        """Write a line that begins, or ends (`align="right"`), at x."""
        if align == "right":
            x -= font.width(text, size)
        escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        self.operators.append(
            f"BT {_rgb(colour)} rg /{font.resource} {size} Tf {x:.2f} {y:.2f} Td ({escaped}) Tj ET"
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
        """Write text in lines of at most `width` points; returns the y below it."""
        for line in _wrap(text, width, size):
            self.text(x, y, line, size=size, colour=colour)
            y -= leading
        return y

    def box(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """Fill a rectangle."""
        self.operators.append(f"{_rgb(colour)} rg {x:.2f} {y:.2f} {width:.2f} {height:.2f} re f")

    def frame(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """Draw the outline of a rectangle."""
        self.operators.append(
            f"{_rgb(colour)} RG 0.7 w {x:.2f} {y:.2f} {width:.2f} {height:.2f} re S"
        )

    def line(self, x: float, y: float, to_x: float, colour: Colour) -> None:
        """Draw a horizontal line."""
        self.operators.append(f"{_rgb(colour)} RG 0.7 w {x:.2f} {y:.2f} m {to_x:.2f} {y:.2f} l S")


def _rgb(colour: Colour) -> str:
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


def write(pages: Sequence[Page], *, title: str = "", password: str | None = None) -> bytes:
    """Return a PDF of these pages; `password` encrypts it (even an empty one)."""
    contents = ["\n".join(page.operators).encode("cp1252") for page in pages]
    return write_contents([zlib.compress(content) for content in contents], title, password)


def write_contents(
    contents: Sequence[bytes], title: str = "", password: str | None = None
) -> bytes:
    """Return a PDF whose pages have these deflated content streams."""
    first_page = 6
    kids = " ".join(f"{first_page + 2 * index} 0 R" for index in range(len(contents)))
    bodies: list[tuple[str, bytes | None]] = [
        ("<< /Type /Catalog /Pages 2 0 R >>", None),
        (f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>", None),
        *((_font_object(font), None) for font in (REGULAR, BOLD)),
        ("<< >>" if password is not None else f"<< /Title ({title}) >>", None),
    ]
    for index, content in enumerate(contents):
        stream = f"{first_page + 2 * index + 1} 0 R"
        bodies.append((_page_object(stream), None))
        bodies.append((f"<< /Length {len(content)} /Filter /FlateDecode >>", content))
    lock = _Lock.of(password) if password is not None else None
    if lock is not None:
        bodies.append((lock.dictionary, None))
    return _assemble(bodies, lock)


def _font_object(font: Font) -> str:
    return f"<< /Type /Font /Subtype /Type1 /BaseFont /{font.base} /Encoding /WinAnsiEncoding >>"


def _page_object(stream: str) -> str:
    return (
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Contents {stream} "
        "/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>"
    )


def _assemble(bodies: Sequence[tuple[str, bytes | None]], lock: "_Lock | None") -> bytes:
    pdf = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, (dictionary, stream) in enumerate(bodies, start=1):
        offsets.append(len(pdf))
        pdf += f"{number} 0 obj\n{dictionary}\n".encode("latin-1")
        if stream is not None:
            pdf += (
                b"stream\n" + (lock.encrypt(number, stream) if lock else stream) + b"\nendstream\n"
            )
        pdf += b"endobj\n"
    xref = len(pdf)
    pdf += f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n".encode()
    pdf += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    encrypt = f" /Encrypt {len(bodies)} 0 R" if lock else ""
    identity = "<00112233445566778899aabbccddeeff>"
    entries = (
        f"/Size {len(bodies) + 1} /Root 1 0 R /Info 5 0 R /ID [{identity} {identity}]{encrypt}"
    )
    return bytes(pdf + f"trailer\n<< {entries} >>\nstartxref\n{xref}\n%%EOF\n".encode())


@attrs.frozen
class _Lock:
    """The standard security handler, revision 2: RC4 with 40 bits (PDF 1.4 §3.5)."""

    key: bytes
    dictionary: str

    @classmethod
    def of(cls, password: str) -> "_Lock":
        padding = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
        padded = (password.encode() + padding)[:32]
        owner = _rc4(hashlib.md5(padded).digest()[:5], padded)
        identity = bytes.fromhex("00112233445566778899aabbccddeeff")
        permissions = -4
        seed = padded + owner + permissions.to_bytes(4, "little", signed=True) + identity
        key = hashlib.md5(seed).digest()[:5]
        return cls(
            key,
            f"<< /Filter /Standard /V 1 /R 2 /O <{owner.hex()}> /U <{_rc4(key, padding).hex()}> "
            f"/P {permissions} >>",
        )

    def encrypt(self, number: int, data: bytes) -> bytes:
        seed = self.key + number.to_bytes(3, "little") + b"\0\0"
        return _rc4(hashlib.md5(seed).digest()[:10], data)


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    out = bytearray()
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
