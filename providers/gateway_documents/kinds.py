"""Detects a file's type from its bytes, and checks that its name matches."""

import re

from gateway_documents import archives, text
from gateway_documents.errors import Unreadable

KINDS = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".pptx": "pptx",
    ".xlsx": "xlsx",
    ".epub": "epub",
    ".html": "html",
    ".htm": "html",
    ".csv": "csv",
    ".txt": "text",
    ".md": "text",
}
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")

_PDF_HEADER = b"%PDF-"
# Acrobat and other readers accept this many bytes before the header.
_PDF_HEADER_WITHIN = 1024
_ZIP_HEADERS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
# PNG, JPEG, WebP, TIFF, BigTIFF and BMP.
_PICTURE_HEADER = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|RIFF....WEBP|II[*+]\0|MM\0[*+]|BM....\0\0\0\0", re.DOTALL
)
_OLE_HEADER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

_NAMES = {
    "pdf": "a PDF",
    "docx": "a Word document (.docx)",
    "pptx": "a PowerPoint presentation (.pptx)",
    "xlsx": "an Excel workbook (.xlsx)",
    "epub": "an EPUB book",
    "zip": "a ZIP archive",
    "picture": "a picture",
}


def recognise(extension: str, data: bytes) -> str:
    """Return the type of a file: a value of `KINDS`, or "picture".

    Reads only headers, ZIP directories and charsets, in at most 50 ms. Raises `Unreadable` for an
    empty, locked or damaged file, and for one with a wrong extension.
    """
    kind = "picture" if extension in PICTURES else KINDS.get(extension)
    if kind is None:
        endings = ", ".join((*KINDS, *PICTURES))
        raise Unreadable(f"The name of the file must end in one of {endings}.")
    if not data.strip(b"\0\t\n\r "):
        raise Unreadable("The file is empty.")
    found = _binary_kind(data)
    if kind in ("html", "csv", "text") and found is None:
        text.decode(data, declares_charset=kind == "html")
    elif kind == "pdf" and found is None and _PDF_HEADER in data[:_PDF_HEADER_WITHIN]:
        return kind
    elif kind != found:
        raise Unreadable(f"The name ends in {extension}, but the file is {_name(found)}.")
    return kind


def _binary_kind(data: bytes) -> str | None:
    if data.startswith(_PDF_HEADER):
        return "pdf"
    if data.startswith(_ZIP_HEADERS):
        return archives.kind_of(data) or "zip"
    if _PICTURE_HEADER.match(data):
        return "picture"
    if data.startswith(_OLE_HEADER):
        raise Unreadable(
            "The file is an Office file that is encrypted or of the old kind (.doc, .xls, .ppt): "
            "save it without a password as .docx, .xlsx or .pptx."
        )
    return None


def _name(kind: str | None) -> str:
    return _NAMES[kind] if kind else "something else"
