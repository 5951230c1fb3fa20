"""Converts one file with the parser of its format."""

from collections.abc import Callable, Mapping

from gateway_documents.child.html import page
from gateway_documents.child.office import office_document
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.pdf import pdf_document
from gateway_documents.child.scans import picture
from gateway_documents.child.sheets import csv_table, workbook
from gateway_documents.child.text import plain_text
from gateway_documents.errors import DAMAGED, NO_TEXT, TOO_DEEP, Unreadable

_PARSERS: Mapping[str, Callable[[bytes], Parsed]] = {
    "pdf": pdf_document.parse,
    "docx": office_document.parse_word,
    "pptx": office_document.parse_slides,
    "xlsx": workbook.parse,
    "xls": workbook.parse,
    "ods": workbook.parse,
    "odt": office_document.parse_open_document,
    "odp": office_document.parse_open_document,
    "doc": office_document.parse_older,
    "ppt": office_document.parse_older,
    "rtf": office_document.parse_rich_text,
    "epub": office_document.parse_book,
    "html": page.parse,
    "csv": csv_table.parse,
    "text": plain_text.parse,
    "picture": picture.parse,
}


def parse(kind: str, data: bytes) -> Parsed:
    """Return the document in a file.

    Raises `Unreadable` for a file that cannot be parsed or has neither text nor pages to be read
    as pictures, and `MemoryError` at the memory limit.
    """
    try:
        parsed = _PARSERS[kind](data)
    except (Unreadable, MemoryError):
        raise
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    except BaseException:  # noqa: BLE001 - parsers raise anything, and Rust panics
        raise Unreadable(DAMAGED) from None
    if not parsed.has_text and not parsed.textless:
        raise Unreadable(NO_TEXT)
    return parsed
