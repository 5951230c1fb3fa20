"""The pages of a PDF: their Markdown, and which of them have no text."""

import json
import re

import attrs
import pdf_inspector

from gateway_documents.errors import DAMAGED, NO_TEXT, Unreadable

# Databases refuse NUL.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ENCRYPTED = "The PDF is encrypted: save it without a password."


@attrs.frozen
class Parsed:
    """The Markdown of a document by page, or in one piece if every page has text."""

    pages: list[str]
    textless: dict[int, bool] = attrs.field(factory=dict)
    """Pages without text by number, from 0; True: certainly a picture, not an empty page."""


def check(data: bytes) -> list[bytes]:
    """Check a PDF before its payment, faster than `parse` if its pages have text.

    Returns the same `textless` as `parse`, as JSON, and a second part that is empty if no page has
    text. Raises `Unreadable` for a PDF that is empty or cannot be parsed.
    """
    try:
        if pdf_inspector.classify_pdf_bytes(data).pdf_type == "text_based":
            return [b"{}", b"text"]
        found = _parse_by_page(data)
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - a Rust panic is a BaseException
        raise _pdf_error(error) from None
    has_text = any(page.strip() for page in map(without_controls, found.pages))
    if not found.textless and not has_text:
        raise Unreadable(NO_TEXT)
    return [json.dumps(found.textless).encode(), b"text" if has_text else b""]


def without_controls(text: str) -> str:
    """Remove the control characters that some PDFs contain."""
    return _CONTROLS.sub("", text)


def parse(data: bytes) -> Parsed:
    """Return the Markdown of a PDF.

    If every page has text, the document is parsed as a whole, which joins sentences across pages.
    Raises `Unreadable` for a PDF that cannot be parsed.
    """
    try:
        found = _parse_by_page(data)
        if found.textless:
            return found
        return Parsed([pdf_inspector.process_pdf_bytes(data).markdown or ""])
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - a Rust panic is a BaseException
        raise _pdf_error(error) from None


def _parse_by_page(data: bytes) -> Parsed:
    pages = pdf_inspector.extract_pages_markdown_bytes(data).pages
    textless = {page.page: page.ocr_reason is not None for page in pages if page.needs_ocr}
    return Parsed([page.markdown or "" for page in pages], textless)


def _pdf_error(error: BaseException) -> Unreadable:
    words = str(error).lower()
    return Unreadable(_ENCRYPTED if "encrypt" in words or "password" in words else DAMAGED)
