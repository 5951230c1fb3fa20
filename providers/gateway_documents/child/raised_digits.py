"""Raised and lowered digits of a PDF, which its text layer has as ordinary ones: 10⁶ as "106"."""

import contextlib
import ctypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs
import pypdfium2
from pypdfium2 import raw

RAISED = str.maketrans("0123456789+-\u2212=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
LOWERED = str.maketrans("0123456789+-\u2212=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎")
# Digits behind a letter, a digit or a bracket; only these can be exponents or indices.
_CANDIDATE = re.compile(r"(?<=[A-Za-z0-9)\]%])[-+\u2212]?\d")
# Of the size of the character before.
_SMALLER, _SHIFT = 0.85, 0.1
_CONTEXT_WORDS = 3


def shifted(text: str, table: Mapping[int, int | str]) -> str:
    """Return a text by `RAISED` or `LOWERED`; the same text if it has other characters."""
    return text.translate(table) if all(ord(char) in table for char in text) else text


@attrs.frozen
class Shifted:
    """Digits that are raised or lowered, and the text before them on the page."""

    before: str
    digits: str
    is_raised: bool

    @property
    def shown(self) -> str:
        """The digits as superscript or subscript characters."""
        return self.digits.translate(RAISED if self.is_raised else LOWERED)


@attrs.frozen
class PlainPage:
    """The text of a page as PDFium has it, and its shifted digits."""

    text: str
    shifted: Sequence[Shifted]


def find(data: bytes) -> dict[int, PlainPage]:
    """Return the text and the shifted digits of each page; pages count from 0.

    A page that this library cannot read is left out: its text is read by another.
    """
    found: dict[int, PlainPage] = {}
    with contextlib.suppress(pypdfium2.PdfiumError):
        document = pypdfium2.PdfDocument(data)
        for number in range(len(document)):
            with contextlib.suppress(pypdfium2.PdfiumError):
                text_page = document[number].get_textpage()
                text = text_page.get_text_range()
                shifted = [*_find_on_page(text_page, text)]
                found[number] = PlainPage(_inside(text_page, text), shifted)
                text_page.close()
    return found


def _inside(page: pypdfium2.PdfTextPage, text: str) -> str:
    """Return the text of a page without words outside its box, which a reader does not see."""
    inside: str = page.get_text_bounded()
    # Its spaces are worse.
    return text if "".join(inside.split()) == "".join(text.split()) else inside


def write_into(markdown: str, shifted: Iterable[Shifted]) -> str:
    """Return a page's Markdown with the digits replaced where their context is found."""
    for one in shifted:
        words = one.before.split()[-_CONTEXT_WORDS:]
        for count in range(len(words), 0, -1):
            context = r"\s+".join(map(re.escape, words[-count:]))
            pattern = rf"(?<!\w)({context}){re.escape(one.digits)}(?!\d)"
            markdown, times = re.subn(pattern, rf"\g<1>{one.shown}", markdown, count=1)
            if times:
                break
    return markdown


def _find_on_page(page: pypdfium2.PdfTextPage, text: str) -> Iterator[Shifted]:
    at = 0
    while candidate := _CANDIDATE.search(text, at):
        start = candidate.start()
        at = candidate.end()
        shift = _shift(page, text, start)
        if not shift:
            continue
        while at < len(text) and text[at].isdigit() and _shift(page, text, at, start - 1) == shift:
            at += 1
        yield Shifted(_line_before(text, start), text[start:at], shift > 0)


def _shift(page: pypdfium2.PdfTextPage, text: str, at: int, base: int | None = None) -> int:
    """Return 1 for a raised character, -1 for a lowered one, and 0 for any other."""
    base = at - 1 if base is None else base
    if any(raw.FPDFText_GetUnicode(page, each) != ord(text[each]) for each in (base, at)):
        return 0  # characters outside the basic plane shift the text
    size: float = raw.FPDFText_GetFontSize(page, base)
    if not size or raw.FPDFText_GetFontSize(page, at) > _SMALLER * size:
        return 0
    rise = (_height(page, at) - _height(page, base)) / size
    return int(rise > _SHIFT) - int(rise < -_SHIFT)


def _height(page: pypdfium2.PdfTextPage, at: int) -> float:
    x, y = ctypes.c_double(), ctypes.c_double()
    raw.FPDFText_GetCharOrigin(page, at, x, y)
    return y.value


def _line_before(text: str, at: int) -> str:
    return text[max(text.rfind("\n", 0, at) + 1, at - 100) : at]
