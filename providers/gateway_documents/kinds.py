"""Finds out the kind of a file by its bytes, and checks that its name agrees."""

import re

from gateway_documents.archives import kind_of
from gateway_documents.errors import EMPTY, ENCRYPTED, Unreadable

KINDS = {
    ".pdf": "pdf",
    ".docx": "docx",
    ".pptx": "pptx",
    ".xlsx": "xlsx",
    ".doc": "doc",
    ".ppt": "ppt",
    ".xls": "xls",
    ".odt": "odt",
    ".odp": "odp",
    ".ods": "ods",
    ".rtf": "rtf",
    ".epub": "epub",
    ".html": "html",
    ".htm": "html",
    ".csv": "csv",
    ".txt": "text",
    ".md": "text",
}
PICTURES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")

# Zeros, white space, and the marks of UTF-8 and UTF-16.
_NOTHING = b"\0\t\n\v\f\r \xef\xbb\xbf\xff\xfe"
_PDF_HEADER = b"%PDF-"
# Acrobat and other readers accept this many bytes before the header.
_PDF_HEADER_WITHIN = 1024
_ZIP_HEADERS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
# PNG, JPEG, WebP, TIFF, BigTIFF and BMP.
_PICTURE_HEADER = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|RIFF....WEBP|II[*+]\0|MM\0[*+]|BM....\0\0\0\0", re.DOTALL
)
_OLE_HEADER = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The stream of an encrypted .docx, .pptx or .xlsx.
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")
_RICH_TEXT_HEADER = b"{\\rtf"
_OLDER = ("doc", "ppt", "xls")

_NAMES = {
    "pdf": "a PDF",
    "docx": "a Word document (.docx)",
    "pptx": "a PowerPoint presentation (.pptx)",
    "xlsx": "an Excel workbook (.xlsx)",
    "odt": "an OpenDocument text (.odt)",
    "odp": "an OpenDocument presentation (.odp)",
    "ods": "an OpenDocument spreadsheet (.ods)",
    "ole": "an older Office file (.doc, .ppt or .xls)",
    "rtf": "rich text (.rtf)",
    "epub": "an EPUB book",
    "zip": "a ZIP archive",
    "picture": "a picture",
}


def recognise(extension: str, data: bytes) -> str:
    """Return the kind of a file: a value of `KINDS`, or "picture".

    Reads headers and ZIP directories only. Raises `Unreadable` for an empty or encrypted file, and
    for one whose name is wrong.
    """
    kind = "picture" if extension in PICTURES else KINDS.get(extension)
    if kind is None:
        endings = ", ".join((*KINDS, *PICTURES))
        raise Unreadable(f"The kind of the file is unknown: its name must end in one of {endings}.")
    if not data.strip(_NOTHING):
        raise Unreadable(EMPTY)
    found = _binary_kind(data)
    is_right = kind == found or (found == "ole" and kind in _OLDER)
    if kind in ("html", "csv", "text"):
        is_right = found is None
    elif kind == "pdf" and found is None:
        is_right = _PDF_HEADER in data[:_PDF_HEADER_WITHIN]
    if not is_right:
        named = f"The kind of the file is unknown: it is named {extension}"
        raise Unreadable(f"{named}, but the file is {_name(found)}.")
    return kind


def _binary_kind(data: bytes) -> str | None:
    """Return the kind that the first bytes name; None if they name none."""
    if data.startswith(_PDF_HEADER):
        return "pdf"
    if data.startswith(_ZIP_HEADERS):
        return kind_of(data) or "zip"
    if data.startswith(_RICH_TEXT_HEADER):
        return "rtf"
    if _PICTURE_HEADER.match(data):
        return "picture"
    if data.startswith(_OLE_HEADER):
        if _ENCRYPTED_STREAM in data:
            raise Unreadable(ENCRYPTED)
        return "ole"
    return None


def _name(kind: str | None) -> str:
    return _NAMES[kind] if kind else "something else"
