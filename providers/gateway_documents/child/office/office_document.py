"""Word, PowerPoint, OpenDocument, rich text and EPUB, by anydoc."""

import re
from collections.abc import Mapping, Sequence

import anydoc

from gateway_documents.child import tables
from gateway_documents.child.office import (
    book_xml,
    office_markdown,
    open_document,
    rich_text,
    slide_xml,
    zip_parts,
)
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.word import binary_word, chunks, word_xml
from gateway_documents.errors import DAMAGED, ENCRYPTED, NO_TEXT, TOO_DEEP, Unreadable

# The first bytes of a document by Word 6 and 95, in the container of older Office files.
_WORD_95 = re.compile(rb"\A\xd0\xcf\x11\xe0.*\xdc\xa5[\x65-\x68]\0", re.DOTALL)
# Files inside of files inside of a document.
_MAX_CHUNK_DEPTH = 2
_HIDDEN = (word_xml.HIDDEN_NOTE,)
_CHUNK_NOTE = "A file inside of the document could not be read."
_OLD_WORD = "The kind of the file is unknown here, a document by Word 95: save it as .docx."
# anydoc's words for a presentation without slides.
_NO_SLIDES = "presentation has no slide list"


def parse_word(data: bytes) -> Parsed:
    """Return a .docx without hidden text and comments, which notes mention."""
    return _parse_word(data, _MAX_CHUNK_DEPTH)


def _parse_word(data: bytes, depth: int) -> Parsed:
    data = zip_parts.with_slashes(data)
    zip_parts.refuse_doctype(data)
    prepared = word_xml.prepared(data)
    text = _markdown(prepared.data, "docx")

    def parse_office(kind: str, inner: bytes) -> Parsed:
        if kind == "rtf":
            return parse_rich_text(inner)
        if not depth:
            raise Unreadable(TOO_DEEP)
        return _parse_word(inner, depth - 1)

    notes = dict.fromkeys(prepared.notes)
    texts: dict[str, str] = {}
    for mark, (name, inner) in prepared.chunks.items():
        try:
            texts[mark] = chunks.parse(name, inner, parse_office)
        except MemoryError:
            raise
        except BaseException:  # noqa: BLE001 - parsers raise anything, and Rust panics
            texts[mark], notes[_CHUNK_NOTE] = "", None
    return _parsed(_with_chunks(text, texts), tuple(notes))


def _with_chunks(text: str, chunks_by_mark: Mapping[str, str]) -> str:
    """Return a text with files in place of their marks, in one line in rows of tables."""
    if not chunks_by_mark:
        return text
    marks = re.compile("|".join(map(re.escape, chunks_by_mark)))
    in_cells = {mark: _in_cell(chunk) for mark, chunk in chunks_by_mark.items()}

    def filled(line: str) -> str:
        found = in_cells if line.startswith("|") else chunks_by_mark
        return marks.sub(lambda mark: found[mark[0]], line)

    return "\n".join(map(filled, text.split("\n"))).strip("\n")


def _in_cell(markdown: str) -> str:
    """Return Markdown for a cell; of its own tables, each row becomes a line."""
    lines = (
        " / ".join(filter(None, tables.cells(line))) if line.startswith("|") else line
        for line in markdown.splitlines()
        if not tables.is_rule(line)
    )
    return tables.cell_markdown("\n".join(lines))


def parse_slides(data: bytes) -> Parsed:
    """Return the slides of a .pptx as pages; a hidden slide is an empty page."""
    data = zip_parts.with_slashes(data)
    zip_parts.refuse_doctype(data)
    prepared, notes = slide_xml.prepared(data)
    before, *slides = _markdown(prepared, "pptx").split(slide_xml.MARK)
    pages = [text.strip("\n") for text in slides] or [before]
    if not any(map(office_markdown.has_words, pages)):
        raise Unreadable(NO_TEXT)
    return Parsed(pages, notes)


def parse_book(data: bytes) -> Parsed:
    """Return the chapters of an EPUB."""
    return _parse(book_xml.prepared(data), "epub")


def parse_open_document(data: bytes) -> Parsed:
    """Return an OpenDocument text or presentation."""
    zip_parts.refuse_doctype(data)
    prepared, notes = open_document.prepared(data)
    return _parsed(_markdown(prepared, None), notes)


def parse_older(data: bytes) -> Parsed:
    """Return a .doc or .ppt."""
    shown, has_hidden = binary_word.shown(data)
    return _parsed(_markdown(shown, None), _HIDDEN if has_hidden else ())


def parse_rich_text(data: bytes) -> Parsed:
    """Return an .rtf."""
    prepared, has_hidden = rich_text.prepared(data)
    return _parsed(_markdown(prepared, "rtf"), _HIDDEN if has_hidden else ())


def _parse(data: bytes, kind: anydoc.Format | None) -> Parsed:
    return _parsed(_markdown(data, kind), ())


def _parsed(text: str, notes: Sequence[str]) -> Parsed:
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
    except anydoc.ConvertError as error:
        if _NO_SLIDES in str(error):
            return ""
        raise Unreadable(_OLD_WORD if _WORD_95.search(data) else DAMAGED) from None
