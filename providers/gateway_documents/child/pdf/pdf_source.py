"""Brings a PDF into the form that is read: as its pages show it, upright, with known letters."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

import attrs
import liteparse

from gateway_documents.child.pdf import (
    annotations,
    font_weights,
    invisible_text,
    scanned_pages,
    turned_pages,
    unknown_letters,
)
from gateway_documents.child.pdf.pdf_reader import Pages, read

_HIDDEN_NOTE = "Text that the pages do not show was left out."


@attrs.frozen
class Source:
    """A PDF that was read, and what belongs to its pages, which count from 0."""

    data: bytes
    pages: Sequence[liteparse.ParsedPage]
    lost: AbstractSet[int]
    """Pages that could not be read."""
    fields: Mapping[int, Sequence[liteparse.FormField]]
    unread: AbstractSet[int]
    """Pages that must be read as pictures, although they have some letters."""
    is_wrong: AbstractSet[int]
    """Those of them whose letters are wrong."""
    texts: Mapping[int, Sequence[str]]
    """Texts of annotations that readers draw themselves."""
    notes: Sequence[str]


def prepare(data: bytes) -> Source:
    """Return a PDF with its annotations in its pages and without invisible text.

    Raises `Unreadable` for a PDF that is encrypted or cannot be opened.
    """
    drawn = annotations.draw(data)
    shown = invisible_text.removed(drawn.data)
    decoded = unknown_letters.blank(shown)
    found, data_read = _upright(decoded.data)
    notes = [*found.notes, *drawn.notes, *decoded.notes]
    if shown is not drawn.data:
        notes.append(_HIDDEN_NOTE)
    return Source(
        data=data_read,
        pages=found.pages,
        lost=found.lost,
        fields={
            at: _shown(page.form_fields or (), drawn.unseen.get(at, frozenset()))
            for at, page in enumerate(found.pages)
        },
        unread=decoded.unread | scanned_pages.find(data_read, found.pages),
        is_wrong=frozenset() if decoded.is_blank else decoded.unread,
        texts=drawn.texts,
        notes=tuple(notes),
    )


def _upright(data: bytes) -> tuple[Pages, bytes]:
    """Return the pages of a PDF, and the PDF with pages upright that lay on their side."""
    found = read(font_weights.mended(data))
    if turns := turned_pages.find(found.pages):
        data = turned_pages.upright(data, turns)
        found = read(font_weights.mended(data))
    return found, data


def _shown(
    fields: Sequence[liteparse.FormField], unseen: AbstractSet[int]
) -> Sequence[liteparse.FormField]:
    return [field for field in fields if field.annotation_index not in unseen]
