"""Word, PowerPoint, OpenDocument, rich text and EPUB, by anydoc."""

from collections.abc import Sequence

import anydoc

from gateway_documents.child import office_markdown, slide_xml, word_xml, zip_parts
from gateway_documents.child.parsed import Parsed
from gateway_documents.errors import DAMAGED, ENCRYPTED, NO_TEXT, Unreadable


def parse_word(data: bytes) -> Parsed:
    """Return a .docx without hidden text and comments, which notes mention."""
    zip_parts.refuse_doctype(data)
    prepared, notes = word_xml.prepared(data)
    return _parse(prepared, "docx", notes)


def parse_slides(data: bytes) -> Parsed:
    """Return the slides of a .pptx that are not hidden."""
    zip_parts.refuse_doctype(data)
    prepared, notes = slide_xml.prepared(data)
    return _parse(prepared, "pptx", notes)


def parse_book(data: bytes) -> Parsed:
    """Return the chapters of an EPUB."""
    return _parse(data, "epub")


def parse_open_document(data: bytes) -> Parsed:
    """Return an OpenDocument text or presentation."""
    zip_parts.refuse_doctype(data)
    return _parse(data, None)


def parse_older(data: bytes) -> Parsed:
    """Return a .doc or .ppt."""
    return _parse(data, None)


def parse_rich_text(data: bytes) -> Parsed:
    """Return an .rtf."""
    return _parse(data, "rtf")


def _parse(data: bytes, kind: anydoc.Format | None, notes: Sequence[str] = ()) -> Parsed:
    try:
        markdown = anydoc.to_markdown_bytes(data, kind)
    except anydoc.EncryptedError:
        raise Unreadable(ENCRYPTED) from None
    except anydoc.ResourceLimitError:
        raise Unreadable("The file is too large to parse.") from None
    except anydoc.ConvertError:
        raise Unreadable(DAMAGED) from None
    text = office_markdown.tidied(markdown)
    if not office_markdown.has_words(text):
        raise Unreadable(NO_TEXT)
    return Parsed([text], notes)
