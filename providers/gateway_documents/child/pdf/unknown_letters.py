"""Finds fonts whose letters a PDF does not name, of which readers copy the numbers of glyphs."""

import contextlib
import ctypes
import io
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import attrs
import pikepdf
import pypdfium2
from pypdfium2 import raw

from gateway_documents.child.parsed import on_pages

# Of 1,000 letters in the languages of Europe.
_USUAL = {
    "e": 130,
    "a": 85,
    "i": 75,
    "n": 72,
    "r": 68,
    "t": 65,
    "o": 65,
    "s": 60,
    "l": 48,
    "d": 38,
    "u": 37,
    "c": 32,
    "m": 30,
    "p": 26,
    "g": 18,
    "h": 20,
    "v": 15,
    "f": 14,
    "b": 13,
    "y": 12,
    "k": 10,
    "z": 8,
    "w": 9,
    "j": 3,
    "x": 2,
    "q": 2,
}
# Text has 60 and more on average, numbers of glyphs have 30, and letters at random 38. The
# average of a few letters varies more.
_USUAL_OF_MANY, _USUAL_OF_FEW = (20, 48), (8, 36)
# The most control characters, letters of rare alphabets, and signs, of all characters.
_ODD, _FAR, _SIGNS = 0.1, 0.3, 0.35
# Between Latin and Japanese.
_RARE = ("\u0180", "\u3040")
_SIGNS_OF_NUMBERS = ".-:/\u2212"
# The fewest characters of a font, and of a run: brackets of formulas have no names either.
_MIN_CHARACTERS, _MIN_RUN = 6, 3
# A page with less of its letters is read as a picture.
_READABLE = 0.25
_NOTE = "{}: text in a font that does not name its letters was left out."
_LEFT_NOTE = "{}: text in a font that does not name its letters is wrong."
_KINDS = ("/Type0", "/Type1", "/MMType1", "/TrueType", "/Type3")
_CMAP = (
    b"/CIDInit /ProcSet findresource begin begincmap /CMapType 2 def "
    b"1 begincodespacerange <0000> <FFFF> endcodespacerange\n"
)
_MAX_BLOCK, _LAST_CODE = 100, 0xFFFF
_name, _flags = ctypes.create_string_buffer(256), ctypes.c_int()


@attrs.frozen
class Decoded:
    """A PDF with spaces in place of unknown letters, or the same bytes if it has none."""

    data: bytes
    unread: AbstractSet[int] = frozenset()
    """Pages, from 0, of which nearly all letters are unknown."""
    is_blank: bool = True
    """Whether no unknown letters are left."""
    notes: Sequence[str] = ()


@attrs.define
class _Page:
    readable: int = 0
    unknown: dict[str, Counter[str]] = attrs.field(factory=dict)
    """The characters without a name by their font, which are codes."""
    runs: dict[str, Counter[str]] = attrs.field(factory=dict)
    """Those of them that are in words."""


def blank(data: bytes) -> Decoded:
    """Return a PDF without the text that is only numbers of glyphs."""
    pages = _pages(data)
    words: dict[str, Counter[str]] = {}
    for page in pages.values():
        for font, characters in page.runs.items():
            words.setdefault(font, Counter()).update(characters)
    fonts = {font for font, characters in words.items() if is_garbled(characters)}
    if not fonts:
        return Decoded(data)
    return _decoded(data, pages, fonts)


def _decoded(data: bytes, pages: Mapping[int, _Page], fonts: AbstractSet[str]) -> Decoded:
    codes: dict[str, set[int]] = {font: set() for font in fonts}
    bad: dict[int, int] = {}
    for number, page in pages.items():
        for font in fonts & page.unknown.keys():
            codes[font].update(map(ord, page.unknown[font]))
            bad[number] = bad.get(number, 0) + page.unknown[font].total()
    unread = {
        number
        for number, count in bad.items()
        if pages[number].readable < _READABLE * (count + pages[number].readable)
    }
    blanked = _with_spaces(data, codes)
    if blanked is None or not _are_blanked(pages, _pages(blanked), fonts):
        return Decoded(
            data, unread, is_blank=False, notes=on_pages(_LEFT_NOTE, bad.keys() - unread)
        )
    return Decoded(blanked, unread, notes=on_pages(_NOTE, bad.keys() - unread))


def _are_blanked(
    before: Mapping[int, _Page], after: Mapping[int, _Page], fonts: AbstractSet[str]
) -> bool:
    """Whether pages lost the letters of these fonts and no letters that have names."""
    return all(
        number in after
        and after[number].readable >= page.readable
        and not fonts & after[number].unknown.keys()
        for number, page in before.items()
    )


def is_garbled(characters: Mapping[str, int]) -> bool:
    """Whether characters without a name, each with its count, are no text in Latin script."""
    total = sum(characters.values())
    if total < _MIN_CHARACTERS:
        return False
    letters: Counter[str] = Counter()
    digits = odd = far = 0
    for char, count in characters.items():
        odd += count if unicodedata.category(char).startswith("C") else 0
        digits += count if char.isdigit() else 0
        if char.isalpha():
            letters[unicodedata.normalize("NFD", char)[0].lower()] += count
            far += count if _RARE[0] <= char < _RARE[1] else 0
    signs = total - letters.total() - digits
    signs -= sum(characters.get(sign, 0) for sign in _SIGNS_OF_NUMBERS)
    if odd > _ODD * total or far > _FAR * total or signs > _SIGNS * total:
        return True
    usual = sum(_USUAL.get(letter, 0) * count for letter, count in letters.items())
    return any(
        letters.total() >= fewest and usual < least * letters.total()
        for fewest, least in (_USUAL_OF_MANY, _USUAL_OF_FEW)
    )


def _pages(data: bytes) -> dict[int, _Page]:
    pages: dict[int, _Page] = {}
    with contextlib.suppress(pypdfium2.PdfiumError):
        document = pypdfium2.PdfDocument(data)
        for number in range(len(document)):
            with contextlib.suppress(pypdfium2.PdfiumError):
                pages[number] = _page(document[number].get_textpage())
    return pages


def _page(text: pypdfium2.PdfTextPage) -> _Page:
    page = _Page()
    for at, run in _runs(text):
        if at < 0:
            page.readable += len(run)
            continue
        size = raw.FPDFText_GetFontInfo(text, at, _name, ctypes.sizeof(_name), _flags)
        font = _name.value[:size].decode(errors="replace")
        page.unknown.setdefault(font, Counter()).update(run)
        if len(run) >= _MIN_RUN:
            page.runs.setdefault(font, Counter()).update(run)
    text.close()
    return page


def _runs(text: pypdfium2.PdfTextPage) -> Iterator[tuple[int, str]]:
    """Yield the runs of characters without a name and their places, and known letters with -1."""
    start, run = 0, ""
    for at in range(text.count_chars()):
        char = chr(raw.FPDFText_GetUnicode(text, at))
        if raw.FPDFText_HasUnicodeMapError(text, at) == 1:
            start, run = (start, run + char) if run else (at, char)
            continue
        if run:
            yield start, run
            run = ""
        if char.isalnum():
            yield -1, char
    if run:
        yield start, run


def _with_spaces(data: bytes, codes: Mapping[str, AbstractSet[int]]) -> bytes | None:
    """Return a PDF in which fonts call these codes spaces; None if qpdf cannot write it."""
    try:
        with pikepdf.open(io.BytesIO(data), suppress_warnings=True) as document:
            if len(document.pages) != len(pypdfium2.PdfDocument(data)):
                return None
            for font in _fonts_of(document, codes.keys()):
                old = font.get("/ToUnicode")
                known = old.read_bytes() if isinstance(old, pikepdf.Stream) else _CMAP
                spaces = _spaces(codes[_name_of(font)])
                font.ToUnicode = document.make_stream(known + spaces)
            with warnings.catch_warnings(action="ignore"):
                document.save(copy := io.BytesIO())
            return copy.getvalue()
    except (pikepdf.PdfError, pikepdf.PasswordError, ValueError, TypeError):
        return None


def _fonts_of(document: pikepdf.Pdf, names: AbstractSet[str]) -> Iterator[Any]:
    """Yield the fonts of these names; of several of one name, those that need letters most."""
    found: dict[str, list[Any]] = {}
    for font in document.objects:
        if isinstance(font, pikepdf.Dictionary) and font.get("/Subtype") in _KINDS:
            found.setdefault(_name_of(font), []).append(font)
    for name in names & found.keys():
        nameless = [font for font in found[name] if "/ToUnicode" not in font]
        composite = [font for font in nameless if font.Subtype == "/Type0"]
        yield from composite or nameless or found[name]


def _name_of(font: Any) -> str:
    return str(font.get("/BaseFont", "/"))[1:]


def _spaces(codes: AbstractSet[int]) -> bytes:
    blocks = b""
    found = [code for code in sorted(codes) if code <= _LAST_CODE]
    for at in range(0, len(found), _MAX_BLOCK):
        some = found[at : at + _MAX_BLOCK]
        lines = b"".join(b"<%04X> <0020>\n" % code for code in some)
        blocks += b"\n%d beginbfchar\n%bendbfchar\n" % (len(some), lines)
    return blocks
