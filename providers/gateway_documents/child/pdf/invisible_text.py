"""Removes the text of a PDF that its pages do not show: white on white, or on a hidden layer.

Text that lies over a picture or a drawing stays: it was recognised there, or drawn as curves.
White text stays where the drawn page would differ without it, as on a gradient.
"""

import contextlib
import ctypes
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import pypdfium2
from pypdfium2 import raw

# The least brightness of white, and the most opacity of invisible text.
_WHITE, _CLEAR = 250, 8
# More objects of a page would take too long to compare; its text stays.
_MAX_OBJECTS, _MAX_SUSPECTS = 20_000, 2_000
# Pages that are drawn, twice, to find hidden text, and pixels of one; a point is a pixel at most.
_MAX_DRAWN, _MAX_PIXELS = 40, 2_000_000
_SHOWN, _CLEAR_TEXT, _WHITE_TEXT = "", "clear", "white"
# Forms within forms.
_MAX_DEPTH = 5
_LAYER = "OC\0".encode("utf-16-le")
_BLACK = (0, 0, 0, 255)
# Buffers for PDFium's answers: a page has thousands of objects.
_parts = [ctypes.c_uint() for _ in range(4)]
_name, _name_size = (raw.FPDF_WCHAR * 8)(), ctypes.c_ulong()
# Fonts that PDFium draws without a font file.
_BUILT_IN = ("Helvetica", "Arial", "Times", "Courier", "Symbol", "ZapfDingbats")

_Edges = tuple[float, float, float, float]
"""Left, bottom, right and top in points."""


@attrs.define
class _Page:
    """The objects of a page that matter."""

    clear: list[Any] = attrs.field(factory=list)
    """Texts that are never drawn."""
    white: list[Any] = attrs.field(factory=list)
    layered: list[Any] = attrs.field(factory=list)
    backgrounds: list[_Edges] = attrs.field(factory=list)


def removed(data: bytes) -> bytes:
    """Return a PDF without invisible text, or the same bytes if it has none.

    A PDF that would lose other letters stays as it is: PDFium does not write every kind of text.
    """
    with contextlib.suppress(pypdfium2.PdfiumError):
        document = pypdfium2.PdfDocument(data)
        kept: dict[int, Counter[str]] = {}
        drawn = 0
        for number in range(len(document)):
            with contextlib.suppress(pypdfium2.PdfiumError):
                page = document[number]
                found = _objects(page)
                texts = _over_nothing(found, found.clear)
                if (found.white or found.layered) and drawn < _MAX_DRAWN:
                    drawn += 1
                    texts += _undrawn(page, document[number], found)
                if (letters := _remove(page, texts)) is not None:
                    kept[number] = letters
        if kept:
            document.save(copy := io.BytesIO())
            if _has(copy.getvalue(), kept):
                return copy.getvalue()
    return data


def _has(data: bytes, letters: Mapping[int, Counter[str]]) -> bool:
    document = pypdfium2.PdfDocument(data)
    return all(
        some <= _letters(document[number].get_textpage().get_text_range())
        for number, some in letters.items()
    )


def _letters(text: str) -> Counter[str]:
    return Counter(filter(str.isalnum, text))


def _objects(page: pypdfium2.PdfPage) -> _Page:
    found = _Page()
    count = raw.FPDFPage_CountObjects(page)
    for at in range(count if count <= _MAX_OBJECTS else 0):
        one = raw.FPDFPage_GetObject(page, at)
        look = _look(one)
        if look == _CLEAR_TEXT:
            found.clear.append(one)
        elif look == _WHITE_TEXT:
            found.white.append(one)
        elif raw.FPDFPageObj_GetType(one) == raw.FPDF_PAGEOBJ_TEXT:
            if _is_on_a_layer(one) and _is_drawable(one):
                found.layered.append(one)
        elif not _is_white_path(one):
            found.backgrounds.append(_edges(one))
    suspects = len(found.clear) + len(found.white) + len(found.layered)
    return found if suspects <= _MAX_SUSPECTS else _Page()


def _look(one: Any, depth: int = 0) -> str:
    """Return whether an object is a text that is clear or white, or a form of such texts only."""
    kind = raw.FPDFPageObj_GetType(one)
    if kind == raw.FPDF_PAGEOBJ_FORM and depth < _MAX_DEPTH:
        looks = {_look(part, depth + 1) for part in _objects_of(one) if not _is_white_path(part)}
        return max(looks) if looks and _SHOWN not in looks else _SHOWN
    if kind != raw.FPDF_PAGEOBJ_TEXT:
        return _SHOWN
    mode = raw.FPDFTextObj_GetTextRenderMode(one)
    colour = _colour(one) if mode == raw.FPDF_TEXTRENDERMODE_FILL else _BLACK
    if mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE or colour[3] <= _CLEAR:
        return _CLEAR_TEXT
    # PDFium calls a text white also if it is filled with a gradient.
    return _WHITE_TEXT if min(colour[:3]) >= _WHITE else _SHOWN


def _objects_of(form: Any) -> Iterator[Any]:
    count = raw.FPDFFormObj_CountObjects(form)
    for at in range(count if count <= _MAX_OBJECTS else 0):
        yield raw.FPDFFormObj_GetObject(form, at)


def _is_white_path(one: Any) -> bool:
    """Whether an object is a path that shows nothing on paper: white, or only a clip."""
    if raw.FPDFPageObj_GetType(one) != raw.FPDF_PAGEOBJ_PATH:
        return False
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(one, fill, stroke)
    return not stroke.value and (not fill.value or min(_colour(one)[:3]) >= _WHITE)


def _is_on_a_layer(text: Any) -> bool:
    marks = (raw.FPDFPageObj_GetMark(text, at) for at in range(raw.FPDFPageObj_CountMarks(text)))
    return any(
        raw.FPDFPageObjMark_GetName(mark, _name, ctypes.sizeof(_name), _name_size)
        and bytes(_name).startswith(_LAYER)
        for mark in marks
    )


def _is_drawable(text: Any) -> bool:
    font = raw.FPDFTextObj_GetFont(text)
    name = ctypes.create_string_buffer(64)
    raw.FPDFFont_GetBaseFontName(font, name, len(name))
    is_built_in = name.value.decode(errors="replace").startswith(_BUILT_IN)
    return is_built_in or raw.FPDFFont_GetIsEmbedded(font) == 1


def _over_nothing(page: _Page, texts: Sequence[Any]) -> list[Any]:
    return [
        text
        for text in texts
        if not any(_overlap(_edges(text), background) for background in page.backgrounds)
    ]


def _overlap(one: _Edges, other: _Edges) -> bool:
    left, bottom, right, top = one
    return left < other[2] and other[0] < right and bottom < other[3] and other[1] < top


def _undrawn(page: pypdfium2.PdfPage, copy: pypdfium2.PdfPage, found: _Page) -> list[Any]:
    """Return the texts without which the page looks the same. The copy loses them."""
    before = _draw(page)
    same = _objects(copy)
    for one in (*same.white, *same.layered):
        raw.FPDFPage_RemoveObject(copy, one)
    after = _draw(copy)
    return [
        text
        for text in (*_over_nothing(found, found.white), *found.layered)
        if _are_alike(_part(page, before, text), _part(page, after, text))
        and (_is_drawable(text) or min(_part(page, after, text), default=255) >= _WHITE)
    ]


def _are_alike(one: bytes, other: bytes) -> bool:
    return one == other or all(
        abs(before - after) <= 255 - _WHITE for before, after in zip(one, other, strict=True)
    )


def _draw(page: pypdfium2.PdfPage) -> pypdfium2.PdfBitmap:
    width, height = page.get_size()
    scale = min(1.0, (_MAX_PIXELS / max(width * height, 1)) ** 0.5)
    bitmap: pypdfium2.PdfBitmap = page.render(scale=scale, grayscale=True)
    return bitmap


def _part(page: pypdfium2.PdfPage, drawn: pypdfium2.PdfBitmap, text: Any) -> bytes:
    """Return the pixels at the place of a text, row by row."""
    left, bottom, right, top = _edges(text)
    xs, ys = [], []
    for x, y in ((left, bottom), (right, top)):
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, drawn.width, drawn.height, 0, x, y, across, down)
        xs.append(min(max(across.value, 0), drawn.width))
        ys.append(min(max(down.value, 0), drawn.height))
    pixels, stride = memoryview(drawn.buffer).cast("B"), drawn.stride
    return b"".join(
        pixels[row * stride + min(xs) : row * stride + min(max(xs) + 1, drawn.width)]
        for row in range(min(ys), min(max(ys) + 1, drawn.height))
    )


def _remove(page: pypdfium2.PdfPage, texts: Sequence[Any]) -> Counter[str] | None:
    """Remove the texts, and return the letters that stay; None if nothing was removed.

    White space is no hidden text.
    """
    if not texts:
        return None
    read = page.get_textpage()
    words = [(text, word) for text in texts if (word := _text_of(text, read)).strip()]
    letters = _letters(read.get_text_range())
    letters.subtract(_letters("".join(word for _, word in words)))
    read.close()
    for text, _ in words:
        raw.FPDFPage_RemoveObject(page, text)
    return +letters if words and raw.FPDFPage_GenerateContent(page) else None


def _text_of(text: Any, read: pypdfium2.PdfTextPage) -> str:
    if raw.FPDFPageObj_GetType(text) == raw.FPDF_PAGEOBJ_FORM:
        return "".join(_text_of(part, read) for part in _objects_of(text))
    size = raw.FPDFTextObj_GetText(text, read, None, 0)
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    raw.FPDFTextObj_GetText(text, read, buffer, size)
    return bytes(buffer).decode("utf-16-le", errors="replace").partition("\0")[0]


def _colour(one: Any) -> tuple[int, int, int, int]:
    if not raw.FPDFPageObj_GetFillColor(one, *_parts):
        return 0, 0, 0, 0
    red, green, blue, alpha = _parts
    return red.value, green.value, blue.value, alpha.value


def _edges(one: Any) -> _Edges:
    edges = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(one, *edges)
    left, bottom, right, top = (edge.value for edge in edges)
    return left, bottom, right, top
