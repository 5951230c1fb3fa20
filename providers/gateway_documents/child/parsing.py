"""Converts a file to Markdown with the parser of its type."""

import io
from collections.abc import Callable, Mapping

from markitdown import (
    DocumentConverter,
    FileConversionException,
    MarkItDown,
    StreamInfo,
)
from markitdown.converters import DocxConverter, EpubConverter, HtmlConverter, PptxConverter

from gateway_documents.child import office, sheets
from gateway_documents.errors import DAMAGED, Unreadable
from gateway_documents.text import decode

_TOO_DEEP = "The file cannot be parsed: its parts are nested too deeply."


def to_markdown(kind: str, data: bytes) -> str:
    """Return the Markdown of any file except a PDF.

    Raises `Unreadable` for a file that cannot be parsed, `MemoryError` at the memory limit.
    """
    try:
        return _PARSERS[kind](data)
    except (Unreadable, MemoryError):
        raise
    except FileConversionException as error:
        raise _conversion_error(error) from None
    except RecursionError:
        raise Unreadable(_TOO_DEEP) from None
    except BaseException:  # noqa: BLE001 - parsers raise anything
        raise Unreadable(DAMAGED) from None


def _conversion_error(error: FileConversionException) -> Exception:
    causes = [attempt.exc_info[1] for attempt in error.attempts or () if attempt.exc_info]
    if any(isinstance(cause, MemoryError) for cause in causes):
        return MemoryError()
    if any(isinstance(cause, RecursionError) for cause in causes):
        return Unreadable(_TOO_DEEP)
    return Unreadable(DAMAGED)


def _docx(data: bytes) -> str:
    office.refuse_doctype(data)
    return _convert(DocxConverter, "docx", data)


def _pptx(data: bytes) -> str:
    office.refuse_doctype(data)
    return _convert(PptxConverter, "pptx", data)


def _xlsx(data: bytes) -> str:
    office.refuse_doctype(data)
    return sheets.workbook_to_markdown(data)


def _epub(data: bytes) -> str:
    return _convert(EpubConverter, "epub", data)


def _html(data: bytes) -> str:
    page = decode(data, declares_charset=True).encode(errors="replace")
    return _convert(HtmlConverter, "html", page)


def _csv(data: bytes) -> str:
    return sheets.csv_to_markdown(decode(data))


def _text(data: bytes) -> str:
    return decode(data)


_PARSERS: Mapping[str, Callable[[bytes], str]] = {
    "docx": _docx,
    "pptx": _pptx,
    "xlsx": _xlsx,
    "epub": _epub,
    "html": _html,
    "csv": _csv,
    "text": _text,
}

_MEDIA_TYPES = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "epub": "application/epub+zip",
    "html": "text/html",
}


def _convert(converter: Callable[[], DocumentConverter], kind: str, data: bytes) -> str:
    """Use only one converter, which guesses nothing and fetches no URLs."""
    markitdown = MarkItDown(enable_builtins=False)
    markitdown.register_converter(converter())
    info = StreamInfo(mimetype=_MEDIA_TYPES[kind], extension=f".{kind}", charset="utf-8")
    return markitdown.convert_stream(
        io.BytesIO(data),
        stream_info=info,
        # For markdownify: the first row is the table's header.
        table_infer_header=True,
    ).markdown
