"""Removes the text of a PDF that its pages do not show: white on white, or on a hidden layer.

Text that lies over a picture or a drawing stays: it was recognised there, or drawn as curves.
"""

import contextlib
import ctypes
import io
from collections.abc import Iterator
from typing import Any

import attrs
import pypdfium2
from pypdfium2 import raw

# The least brightness of white, and the most opacity of invisible text.
_WHITE, _CLEAR = 250, 8
# More objects of a page would take too long to compare; its text stays.
_MAX_OBJECTS, _MAX_SUSPECTS = 20_000, 2_000
# Pages that are drawn, twice, to find hidden layers, and pixels of one; a point is a pixel at most.
_MAX_DRAWN, _MAX_PIXELS = 10, 2_000_000
_LAYER = "OC"
# Fonts that PDFium draws without a font file.
_BUILT_IN = ("Helvetica", "Arial", "Times", "Courier", "Symbol", "ZapfDingbats")

_Edges = tuple[float, float, float, float]
"""Left, bottom, right and top in points."""


@attrs.define
class _Page:
    """The objects of a page that matter."""

    hidden: list[Any] = attrs.field(factory=list)
    """Texts without a colour of their own."""
    layered: list[Any] = attrs.field(factory=list)
    backgrounds: list[_Edges] = attrs.field(factory=list)


def removed(data: bytes) -> bytes:
    """Return a PDF without invisible text, or the same bytes if it has none."""
    with contextlib.suppress(pypdfium2.PdfiumError):
        document = pypdfium2.PdfDocument(data)
        changed = drawn = 0
        for number in range(len(document)):
            with contextlib.suppress(pypdfium2.PdfiumError):
                page = document[number]
                found = _objects(page)
                texts = list(_without_background(found))
                if found.layered and drawn < _MAX_DRAWN:
                    drawn += 1
                    texts += _undrawn(page, document[number], found.layered)
                changed += _remove(page, texts)
        if changed:
            document.save(copy := io.BytesIO())
            return copy.getvalue()
    return data


def _objects(page: pypdfium2.PdfPage) -> _Page:
    found = _Page()
    count = raw.FPDFPage_CountObjects(page)
    for at in range(count if count <= _MAX_OBJECTS else 0):
        one = raw.FPDFPage_GetObject(page, at)
        if raw.FPDFPageObj_GetType(one) == raw.FPDF_PAGEOBJ_TEXT:
            if _is_colourless(one):
                found.hidden.append(one)
            elif _is_on_a_layer(one) and _is_drawable(one):
                found.layered.append(one)
        elif not _is_white_path(one):
            found.backgrounds.append(_edges(one))
    return found if len(found.hidden) + len(found.layered) <= _MAX_SUSPECTS else _Page()


def _is_colourless(text: Any) -> bool:
    mode = raw.FPDFTextObj_GetTextRenderMode(text)
    if mode == raw.FPDF_TEXTRENDERMODE_INVISIBLE:
        return True
    red, green, blue, alpha = _colour(text)
    is_white = min(red, green, blue) >= _WHITE
    return mode == raw.FPDF_TEXTRENDERMODE_FILL and (is_white or alpha <= _CLEAR)


def _is_white_path(one: Any) -> bool:
    """Whether an object is a path that shows nothing on paper: white, or only a clip."""
    if raw.FPDFPageObj_GetType(one) != raw.FPDF_PAGEOBJ_PATH:
        return False
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(one, fill, stroke)
    return not stroke.value and (not fill.value or min(_colour(one)[:3]) >= _WHITE)


def _is_on_a_layer(text: Any) -> bool:
    return any(
        _mark_name(raw.FPDFPageObj_GetMark(text, at)) == _LAYER
        for at in range(raw.FPDFPageObj_CountMarks(text))
    )


def _mark_name(mark: Any) -> str:
    name, size = (raw.FPDF_WCHAR * 8)(), ctypes.c_ulong()
    if not raw.FPDFPageObjMark_GetName(mark, name, ctypes.sizeof(name), size):
        return ""
    return bytes(name).decode("utf-16-le").partition("\0")[0]


def _is_drawable(text: Any) -> bool:
    font = raw.FPDFTextObj_GetFont(text)
    name = ctypes.create_string_buffer(64)
    raw.FPDFFont_GetBaseFontName(font, name, len(name))
    is_built_in = name.value.decode(errors="replace").startswith(_BUILT_IN)
    return is_built_in or raw.FPDFFont_GetIsEmbedded(font) == 1


def _without_background(page: _Page) -> Iterator[Any]:
    for text in page.hidden:
        edges = _edges(text)
        if not any(_overlap(edges, background) for background in page.backgrounds):
            yield text


def _overlap(one: _Edges, other: _Edges) -> bool:
    left, bottom, right, top = one
    return left < other[2] and other[0] < right and bottom < other[3] and other[1] < top


def _undrawn(page: pypdfium2.PdfPage, copy: pypdfium2.PdfPage, texts: list[Any]) -> list[Any]:
    """Return the texts without which the page looks the same. The copy loses its layers."""
    before = _draw(page)
    for one in _objects(copy).layered:
        raw.FPDFPage_RemoveObject(copy, one)
    after = _draw(copy)
    return [text for text in texts if _part(page, before, text) == _part(page, after, text)]


def _draw(page: pypdfium2.PdfPage) -> pypdfium2.PdfBitmap:
    width, height = page.get_size()
    scale = min(1.0, (_MAX_PIXELS / max(width * height, 1)) ** 0.5)
    bitmap: pypdfium2.PdfBitmap = page.render(scale=scale, grayscale=True)
    return bitmap


def _part(page: pypdfium2.PdfPage, drawn: pypdfium2.PdfBitmap, text: Any) -> list[bytes]:
    """Return the rows of pixels at the place of a text."""
    left, bottom, right, top = _edges(text)
    xs, ys = [], []
    for x, y in ((left, bottom), (right, top)):
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(page, 0, 0, drawn.width, drawn.height, 0, x, y, across, down)
        xs.append(min(max(across.value, 0), drawn.width))
        ys.append(min(max(down.value, 0), drawn.height))
    pixels, stride = memoryview(drawn.buffer).cast("B"), drawn.stride
    return [
        bytes(pixels[row * stride + min(xs) : row * stride + max(xs) + 1])
        for row in range(min(ys), min(max(ys) + 1, drawn.height))
    ]


def _remove(page: pypdfium2.PdfPage, texts: list[Any]) -> bool:
    for text in texts:
        raw.FPDFPage_RemoveObject(page, text)
    return bool(texts) and bool(raw.FPDFPage_GenerateContent(page))


def _colour(one: Any) -> tuple[int, int, int, int]:
    parts = [ctypes.c_uint() for _ in range(4)]
    raw.FPDFPageObj_GetFillColor(one, *parts)
    red, green, blue, alpha = (part.value for part in parts)
    return red, green, blue, alpha


def _edges(one: Any) -> _Edges:
    edges = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(one, *edges)
    left, bottom, right, top = (edge.value for edge in edges)
    return left, bottom, right, top
