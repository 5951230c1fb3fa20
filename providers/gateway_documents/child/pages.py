"""A PDF's pages: which hold text, and their Markdown."""

import attrs
import pdf_inspector

from gateway_documents.child.parsing import DAMAGED
from gateway_documents.errors import Unreadable

_ENCRYPTED = "The PDF is encrypted: save it without a password."


@attrs.frozen
class Parsed:
    """The Markdown of a document's pages; one piece where every page has text."""

    pages: list[str]
    textless: dict[int, bool] = attrs.field(factory=dict)  # page from 0: is it surely a picture?


def look(data: bytes) -> Parsed:
    """Return the same as `parse`, without reading to its end a PDF that has text enough.

    Raises `Unreadable` where the file is to blame.
    """
    try:
        if pdf_inspector.classify_pdf_bytes(data).pdf_type == "text_based":
            return Parsed(["There is some."])
        return _by_page(data)
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in Rust is no Exception
        raise _cause(error) from None


def parse(data: bytes) -> Parsed:
    """Return the Markdown of a PDF.

    Where every page has text it is made of the document as a whole, which joins what a page's
    end has torn apart. Raises `Unreadable` where the file is to blame.
    """
    try:
        found = _by_page(data)
        if found.textless:
            return found
        return Parsed([pdf_inspector.process_pdf_bytes(data).markdown or ""])
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in Rust is no Exception
        raise _cause(error) from None


def _by_page(data: bytes) -> Parsed:
    pages = pdf_inspector.extract_pages_markdown_bytes(data).pages
    textless = {page.page: page.ocr_reason is not None for page in pages if page.needs_ocr}
    return Parsed([page.markdown or "" for page in pages], textless)


def _cause(error: BaseException) -> Unreadable:
    words = str(error).lower()
    return Unreadable(_ENCRYPTED if "encrypt" in words or "password" in words else DAMAGED)
