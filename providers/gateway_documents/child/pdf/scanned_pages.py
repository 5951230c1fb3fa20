"""Finds scans whose text layer is only a stamp, a header or a scanner's advertisement."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import liteparse
import pypdfium2

from gateway_documents.child.lines import Box
from gateway_documents.child.pdf.layout.grids import words_of

# The share of a page that its pictures cover, and the most letters that such a layer has.
_COVERED, _MAX_LETTERS = 0.7, 600
# Pages that are drawn; the others are judged by them.
_MAX_DRAWN = 40
_POINTS_PER_INCH, _DPI, _MAX_PIXELS = 72, 100, 2_000_000
# Ink differs from the paper by so many of 256 levels. Paper covers most of a page of text.
_INK, _PAPER = 60, 0.6
# Changes from paper to ink in a letter of usual size, of all its rows of pixels.
_CHANGES = 12
# The share of a picture's letters that a layer has, also one of OCR, which a graph or a seal may
# look like more letters than it has; and the fewest letters of a text.
_SHARE, _SHARE_OF_OCR, _FEWEST = 0.3, 0.1, 40
# liteparse's word for a layer of OCR.
_OF_OCR = "invisible-text-layer"
# Of a photograph, nothing is known but the place of the layer: in the margin, of this height.
_MARGIN = 0.12


def find(data: bytes, pages: Sequence[liteparse.ParsedPage]) -> AbstractSet[int]:
    """Return the pages, from 0, whose pictures have far more text than their layer."""
    candidates = [number for number, page in enumerate(pages) if _may_be_scan(page)]
    if not candidates:
        return frozenset()
    shares: dict[int, float] = {}
    drawn = candidates[:_MAX_DRAWN]
    with contextlib.suppress(pypdfium2.PdfiumError):
        document = pypdfium2.PdfDocument(data)
        for number in drawn:
            with contextlib.suppress(pypdfium2.PdfiumError):
                shares[number] = _share_of_layer(document[number], pages[number])
    found = {number for number, share in shares.items() if share < _least_share(pages[number])}
    if 2 * len(found) <= len(drawn):
        return found
    # If most layers of OCR have few letters, a page with some more is no graph or seal.
    found.update(number for number, share in shares.items() if share < _SHARE)
    return found.union(candidates[_MAX_DRAWN:])


def _may_be_scan(page: liteparse.ParsedPage) -> bool:
    pictures = page.complexity
    if pictures is None or not 0 < _letters(page.text or "") <= _MAX_LETTERS:
        return False
    return bool(pictures.full_page_image or pictures.image_coverage >= _COVERED)


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _least_share(page: liteparse.ParsedPage) -> float:
    is_of_ocr = page.complexity is not None and _OF_OCR in page.complexity.reasons
    return _SHARE_OF_OCR if is_of_ocr else _SHARE


def _share_of_layer(drawn: pypdfium2.PdfPage, page: liteparse.ParsedPage) -> float:
    """Return the letters of a page's layer per letter that its picture shows; 1 if it has few."""
    words = [*words_of(page)]
    letters = letters_drawn(drawn, page, words)
    if letters is None:
        height = _MARGIN * page.height
        is_in_margin = (word.bottom < height or word.top > page.height - height for word in words)
        return 0.0 if all(is_in_margin) else 1.0
    return 1.0 if letters < _FEWEST else _letters(page.text or "") / letters


def letters_drawn(
    drawn: pypdfium2.PdfPage, page: liteparse.ParsedPage, words: Sequence[Box]
) -> int | None:
    """Return about how many letters a page shows beside its words; None for a photograph."""
    width, height = drawn.get_size()
    scale = min(_DPI / _POINTS_PER_INCH, (_MAX_PIXELS / max(width * height, 1)) ** 0.5)
    bitmap = drawn.render(scale=scale, grayscale=True)
    pixels, stride = memoryview(bitmap.buffer).cast("B"), bitmap.stride
    levels = Counter(bytes(pixels))
    paper = max(levels, key=levels.__getitem__)
    if sum(count for level, count in levels.items() if abs(level - paper) <= _INK) < (
        _PAPER * levels.total()
    ):
        return None
    table = bytes(abs(level - paper) > _INK for level in range(256))
    rows = [
        bytearray(bytes(pixels[at * stride : at * stride + bitmap.width]).translate(table))
        for at in range(bitmap.height)
    ]
    across, down = bitmap.width / max(page.width, 1), bitmap.height / max(page.height, 1)
    for word in words:
        left, right = int(max(word.left * across - 1, 0)), int(max(word.right * across + 2, 0))
        for row in rows[int(max(word.top * down - 1, 0)) : int(max(word.bottom * down + 2, 0))]:
            row[left:right] = bytes(len(row[left:right]))
    return sum(row.count(b"\0\1") for row in rows) // _CHANGES
