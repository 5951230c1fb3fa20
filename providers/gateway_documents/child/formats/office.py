"""Word, PowerPoint, OpenDocument, rich text and EPUB, by anydoc."""

import re
from collections.abc import Sequence

import anydoc

from gateway_documents.child import office_markdown, slide_xml, word_xml, zip_parts
from gateway_documents.child.parsed import Parsed
from gateway_documents.errors import DAMAGED, ENCRYPTED, NO_TEXT, Unreadable

# The first bytes of a document by Word 6 and 95, in the container of older Office files.
_WORD_95 = re.compile(rb"\A\xd0\xcf\x11\xe0.*\xdc\xa5[\x65-\x68]\0", re.DOTALL)
_OLD_WORD = "The kind of the file is unknown here, a document by Word 95: save it as .docx."


def parse_word(data: bytes) -> Parsed:
    """Return a .docx without hidden text and comments, which notes mention."""
    zip_parts.refuse_doctype(data)
    prepared, notes = word_xml.prepared(data)
    return _parse(prepared, "docx", notes)


def parse_slides(data: bytes) -> Parsed:
    """Return the slides of a .pptx as pages; a hidden slide is an empty page."""
    zip_parts.refuse_doctype(data)
    prepared, notes = slide_xml.prepared(data)
    before, *slides = _markdown(prepared, "pptx").split(slide_xml.MARK)
    pages = [text.strip("\n") for text in slides] or [before]
    if not any(map(office_markdown.has_words, pages)):
        raise Unreadable(NO_TEXT)
    return Parsed(pages, notes)


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
    text = _markdown(data, kind)
    if not office_markdown.has_words(text):
        raise Unreadable(NO_TEXT)
    return Parsed([text], notes)


def _markdown(data: bytes, kind: anydoc.Format | None) -> str:
    try:
        return office_markdown.tidied(anydoc.to_markdown_bytes(data, kind))
    except anydoc.EncryptedError:
        raise Unreadable(ENCRYPTED) from None
    except anydoc.ResourceLimitError:
        raise Unreadable("The file is too large to parse.") from None
    except anydoc.ConvertError:
        raise Unreadable(_OLD_WORD if _WORD_95.search(data) else DAMAGED) from None
