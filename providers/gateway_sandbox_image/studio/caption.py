"""The sheet: paper around the picture, with a caption."""

import unicodedata
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import attrs
from PIL import Image, ImageFont, ImageStat

from .colour import mix, rgb
from .svg import Drawing

FONTS = Path(__file__).parent.parent / "fonts"
SERIF, SANS = FONTS / "EBGaramond-Italic.ttf", FONTS / "Jost-Medium.ttf"
IMPRINT = "sandbox renderer, not an AI model"
UNTITLED = "Untitled"  # the prompt holds nothing, or nothing the font can set
_PAPER, _INK = "#f6f1e6", "#2a2722"
# The most that the mean of a strip of paper differs from its colour, in a lossy file too, and the
# most that its grain deviates.
_MAX_OFF, _MAX_GRAIN = 3.0, 5.0
_MAX_LINES = 2
_READ_CHARS = 400  # more than two lines can hold
_RULER_PX = 100  # at which type is measured
_GLYPHS = (  # what the serif has, as inclusive ranges of code points
    *((0x20, 0x7E), (0xA0, 0xB1), (0xB4, 0xB8), (0xBA, 0x17F), (0x218, 0x21B)),
    *((0x386, 0x38A), (0x38C, 0x38C), (0x38E, 0x3A1), (0x3A3, 0x3CE)),  # Greek
    *((0x400, 0x45F), (0x490, 0x491)),  # Cyrillic
    *((0x1E80, 0x1E85), (0x1E9E, 0x1E9E), (0x2013, 0x2014), (0x2018, 0x201A), (0x201C, 0x201E)),
    *((0x2020, 0x2020), (0x2022, 0x2022), (0x2026, 0x2026), (0x2032, 0x2033), (0x2039, 0x203A)),
    *((0x20AC, 0x20AC), (0x2122, 0x2122), (0x2212, 0x2212)),
)

Fits = Callable[[str], bool]


@attrs.frozen(kw_only=True)
class Sheet:
    """The layout of paper and picture, in pixels at the smallest resolution."""

    width: int
    height: int

    @property
    def short(self) -> int:
        """The shorter side, the base of all other measures."""
        return min(self.width, self.height)

    @property
    def margin(self) -> int:
        """The paper left, right and above."""
        return round(self.short * 0.042)

    @property
    def foot(self) -> int:
        """The paper below, for the caption."""
        return round(self.short * 0.137)

    @property
    def picture(self) -> tuple[int, int]:
        """The size of the picture."""
        return self.width - 2 * self.margin, self.height - self.margin - self.foot


def is_sheet(picture: Image.Image) -> bool:
    """Whether an RGB picture has the sheet's paper at the left, right and top, and at its foot.

    Its metadata cannot tell: the gateway removes it from what a buyer sends.
    """
    width, height = picture.size
    sheet = Sheet(width=width, height=height)
    # Half of the margin: the other half may be blurred by an enlargement or a lossy file.
    rim = max(1, sheet.margin // 2)
    strips = (
        (0, 0, width, rim),
        (0, 0, rim, height),
        (width - rim, 0, width, height),
        (0, height - rim // 2 - 1, width, height),
    )
    return all(_is_paper(picture.crop(strip)) for strip in strips)


def _is_paper(strip: Image.Image) -> bool:
    found = ImageStat.Stat(strip)
    off = max(abs(mean - wanted) for mean, wanted in zip(found.mean, rgb(_PAPER), strict=True))
    return off <= _MAX_OFF and max(found.stddev) <= _MAX_GRAIN


def paint_sheet(drawing: Drawing, sheet: Sheet, prompt: str, number: str, tint: str) -> None:
    """Paint paper and caption; `tint`, the picture's darkest colour, goes into the ink."""
    ink = mix(_INK, tint, 0.35)
    size, small = sheet.short * 0.031, sheet.short * 0.0112
    lines = set_lines(prompt, sheet.picture[0] * 0.86, size)
    if len(lines) > 1:
        size *= 0.87
        lines = set_lines(prompt, sheet.picture[0] * 0.86, size)
    leading = size * 1.22
    block = len(lines) * leading + small * 2.6
    y = sheet.height - sheet.foot + (sheet.foot - block) / 2 + size * 0.82
    drawing.cover(_PAPER)
    style = f'font-family="EB Garamond" font-style="italic" font-size="{size:.2f}"'
    for index, line in enumerate(lines):
        _paint_line(drawing, line, (sheet.width / 2, y + index * leading), style, ink)
    spacing = small * 0.18
    style = f'font-family="Jost" font-weight="500" font-size="{small:.2f}"'
    below = (sheet.width / 2 + spacing / 2, y + (len(lines) - 1) * leading + small * 3.1)
    imprint = f"{IMPRINT} · no. {number}".upper()
    style += f' letter-spacing="{spacing:.2f}"'
    _paint_line(drawing, imprint, below, style, mix(ink, _PAPER, 0.32))


def set_lines(prompt: str, width: float, size: float) -> list[str]:
    """Return the prompt in one or two lines, truncated with an ellipsis if longer."""
    font = ImageFont.truetype(str(SERIF), _RULER_PX)

    def fits(text: str) -> bool:
        return font.getlength(text) * size / _RULER_PX <= width

    words = _settable(prompt).split()
    lines: list[str] = []
    while words and len(lines) < _MAX_LINES:
        lines.append(_next_line(words, fits))
    if words:
        lines[-1] = _elided(lines[-1], fits)
    elif len(lines) > 1:
        lines = _balanced(*lines)
    return lines or [UNTITLED]


def _balanced(first: str, second: str) -> list[str]:
    """Move words down while that balances the lines."""
    while " " in first:
        shorter, word = first.rsplit(" ", 1)
        if len(shorter) < len(f"{word} {second}"):
            break
        first, second = shorter, f"{word} {second}"
    return [first, second]


def _next_line(words: list[str], fits: Fits) -> str:
    """Take words that fit; a word too long for a line is broken."""
    line = words.pop(0)
    kept = len(line)
    while not fits(line[:kept]):
        kept -= 1
    if kept < len(line):
        words.insert(0, line[kept:])
        return line[:kept]
    while words and fits(f"{line} {words[0]}"):
        line = f"{line} {words.pop(0)}"
    return line


def _elided(line: str, fits: Fits) -> str:
    while not fits(f"{line}…"):
        line = line[:-1]
    return line.rstrip(" ,.;:-") + "…"


def _settable(prompt: str) -> str:
    """Remove characters that the font lacks; empty if most letters are lost."""
    text = unicodedata.normalize("NFC", prompt[:_READ_CHARS])
    kept = "".join(char if _has_glyph(char) else " " for char in text)
    letters = sum(char.isalnum() for char in kept)
    return kept if letters * 2 > sum(char.isalnum() for char in text) else ""


def _has_glyph(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in _GLYPHS)


def _paint_line(
    drawing: Drawing, text: str, spot: tuple[float, float], style: str, ink: str
) -> None:
    drawing.markup(
        f'<text x="{spot[0]:.1f}" y="{spot[1]:.1f}" text-anchor="middle" {style}'
        f' fill="{ink}">{escape(text)}</text>'
    )
