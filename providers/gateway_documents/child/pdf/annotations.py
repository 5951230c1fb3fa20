"""Draws the annotations of a PDF that show text into its pages, so that they are read in order."""

import io
import logging
import warnings
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from operator import not_
from typing import Any

import attrs
import pikepdf
import pypdfium2

# Those of which readers show the words on the page. Of the others, such as a highlight or the
# icon of a comment, the page shows no text; liteparse reads the fields of forms.
_WITH_TEXT = ("/FreeText", "/Stamp", "/Watermark", "/Redact")
_NOTE = "/FreeText"
# Invisible, hidden, and not for the screen (PDF 32000-1, table 165).
_UNSEEN = 1 << 0 | 1 << 1 | 1 << 5
# qpdf's time for drawing grows with the square of their number.
_MAX_ANNOTATIONS, _MAX_DRAWN = 50_000, 2_000
_TOO_MANY = "The notes and stamps on the pages were left out: there are too many."

# What an entry of another kind than expected raises.
_ODD_ENTRY = (ValueError, TypeError, AttributeError, KeyError, IndexError, RuntimeError)
# qpdf's words about damage would go to the operator's terminal.
logging.getLogger("pikepdf").addHandler(logging.NullHandler())


@attrs.frozen
class Drawn:
    """A PDF whose annotations are part of its pages, or the same bytes if it has none."""

    data: bytes
    texts: Mapping[int, Sequence[str]] = attrs.field(factory=dict)
    """Texts without an appearance, which readers draw themselves, by page from 0."""
    unseen: Mapping[int, AbstractSet[int]] = attrs.field(factory=dict)
    """The places of annotations that are not shown, by page."""
    notes: Sequence[str] = ()


def draw(data: bytes) -> Drawn:
    """Return a PDF with its annotations drawn; a damaged or locked one stays as it is."""
    try:
        with pikepdf.open(io.BytesIO(data), suppress_warnings=True) as document:
            return _draw(document, data)
    except (pikepdf.PdfError, pikepdf.PasswordError, *_ODD_ENTRY):
        # PDFium may read the rest of the file.
        return Drawn(data)


def _draw(document: pikepdf.Pdf, data: bytes) -> Drawn:
    pages = [page.obj for page in document.pages]
    found = [_annotations_of(page) for page in pages]
    if sum(map(len, found)) > _MAX_ANNOTATIONS:
        return Drawn(data, notes=(_TOO_MANY,))
    texts = {at: list(filter(None, map(_text_of, some))) for at, some in enumerate(found)}
    unseen = {
        at: {place for place, one in enumerate(some) if _is_unseen(one)}
        for at, some in enumerate(found)
    }
    looks = [[*map(_has_look, some)] for some in found]
    if sum(map(sum, looks)) > _MAX_DRAWN:
        return Drawn(data, texts, unseen, (_TOO_MANY,))
    if not any(map(any, looks)) or len(pages) != _pages_of(data):
        # qpdf leaves damaged pages out, and the numbers of the others would change.
        return Drawn(data, texts, unseen)
    for page, some, has_look in zip(pages, found, looks, strict=True):
        page.Annots = pikepdf.Array(compress(some, has_look))
    document.flatten_annotations("screen")
    for page, some, has_look in zip(pages, found, looks, strict=True):
        # Links stay.
        page.Annots = pikepdf.Array(compress(some, map(not_, has_look)))
    with warnings.catch_warnings(action="ignore"):
        document.save(copy := io.BytesIO())
    return Drawn(copy.getvalue(), texts, unseen)


def _annotations_of(page: Any) -> list[Any]:
    found = page.get("/Annots")
    return list(found) if isinstance(found, pikepdf.Array) else []


def _pages_of(data: bytes) -> int:
    try:
        return len(pypdfium2.PdfDocument(data))
    except pypdfium2.PdfiumError:
        return 0


def _is_unseen(annotation: Any) -> bool:
    return bool(int(annotation.get("/F", 0)) & _UNSEEN)


def _has_look(annotation: Any) -> bool:
    return "/AP" in annotation and annotation.get("/Subtype") in _WITH_TEXT


def _text_of(annotation: Any) -> str:
    """Return the words of a note that has no appearance."""
    if annotation.get("/Subtype") != _NOTE or "/AP" in annotation or _is_unseen(annotation):
        return ""
    return str(annotation.get("/Contents", "")).strip()
