"""Detects the type of a ZIP file from its directory, without unpacking it."""

import io
import re
import struct
import zipfile
import zlib

from gateway_documents.errors import ENCRYPTED, Unreadable

# As declared by the directory; parsers need 3 to 7 times as much memory.
MAX_UNPACKED_BYTES = 200_000_000
# Unpacked to packed size: real Office files stay under 100, a bomb reaches 1,000.
MAX_RATIO = 250
# A bomb that unpacks to less is harmless.
_RATIO_FROM_BYTES = 10_000_000
# About 10,000 members; parsing a larger directory would take too long.
_MAX_DIRECTORY_BYTES = 1_000_000
_ENCRYPTED_FLAG = 0x1

# The end of central directory record, APPNOTE.TXT §4.3.16.
_END = struct.Struct("<4s4H2LH")
_END_MAGIC = b"PK\x05\x06"
_MAX_COMMENT_BYTES = 0xFFFF
_OPEN_DOCUMENTS = {
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/vnd.oasis.opendocument.presentation": "odp",
    b"application/vnd.oasis.opendocument.spreadsheet": "ods",
}
_TYPES = "[Content_Types].xml"
_MEDIA_TYPE = "mimetype"
_MAX_PART_BYTES = 1_000_000
# Media types of main parts; those of files with macros begin with "ms-".
_MAIN_PART = re.compile(
    rb"\b(?:ms-)?(word(?:processingml)?|presentationml|powerpoint|spreadsheetml|excel)"
    rb"\.[\w.]{1,40}\.main\+xml"
)
# The methods of Office (ISO/IEC 29500-2), OpenDocument and EPUB files. Nothing else is unpacked in
# this process, because decoders such as LZMA's belong into the sandbox.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ODD_METHOD = (
    "The file is damaged, or its ZIP container is compressed as no document is: save it again."
)
_DAMAGED = "The file is damaged or incomplete: the directory of its ZIP container cannot be read."

# What zipfile raises for damaged data.
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, struct.error),
    *(EOFError, OSError, NotImplementedError, ValueError),
)


def kind_of(data: bytes) -> str | None:
    """Return docx, pptx, xlsx, odt, odp, ods or epub; None for another kind of ZIP file.

    Raises `Unreadable` for a damaged or encrypted file, and for one that unpacks to too much.
    """
    members = _members(data)
    _refuse_bombs(members, len(data))
    if any(member.flag_bits & _ENCRYPTED_FLAG for member in members):
        raise Unreadable(ENCRYPTED)
    names = {member.filename for member in members}
    if _TYPES in names:
        return _office_kind(names, data)
    if "META-INF/container.xml" in names:
        return "epub"
    # It should be the first member and stored (ODF 1.3 part 2), but some programs pack it again.
    media_type = _beginning(data, _MEDIA_TYPE) if _MEDIA_TYPE in names else b""
    return _OPEN_DOCUMENTS.get(media_type.strip().removesuffix(b"-template"))


def _office_kind(names: set[str], data: bytes) -> str | None:
    if "xl/workbook.bin" in names:
        raise Unreadable(
            "The kind of the file is unknown here, a binary workbook: save it as .xlsx."
        )
    folders = {"word/": "docx", "ppt/": "pptx", "xl/": "xlsx"}
    kinds = {kind for folder, kind in folders.items() if any(n.startswith(folder) for n in names)}
    return kinds.pop() if len(kinds) == 1 else _declared_kind(data)


def _declared_kind(data: bytes) -> str | None:
    """Return the kind of the main part, which may be in any folder."""
    found = _MAIN_PART.search(_beginning(data, _TYPES))
    kinds = {b"word": "docx", b"pres": "pptx", b"powe": "pptx", b"spre": "xlsx", b"exce": "xlsx"}
    return kinds[found[1][:4]] if found else None


def _beginning(data: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if archive.getinfo(name).compress_type in _METHODS:
                with archive.open(name) as part:
                    return part.read(_MAX_PART_BYTES)
    except _DAMAGES:
        raise Unreadable(_DAMAGED) from None
    raise Unreadable(_ODD_METHOD)


def _members(data: bytes) -> list[zipfile.ZipInfo]:
    at = data.rfind(_END_MAGIC, max(0, len(data) - _END.size - _MAX_COMMENT_BYTES))
    if at < 0 or at + _END.size > len(data):
        raise Unreadable(_DAMAGED)
    directory_bytes = _END.unpack_from(data, at)[5]
    if directory_bytes > _MAX_DIRECTORY_BYTES:
        raise Unreadable("The file is too large: it holds too many parts for a document.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.infolist()
    except _DAMAGES:
        raise Unreadable(_DAMAGED) from None


def _refuse_bombs(members: list[zipfile.ZipInfo], packed_bytes: int) -> None:
    """Check declared sizes: zipfile never unpacks more of a member."""
    unpacked_bytes = sum(member.file_size for member in members)
    ratio_is_absurd = unpacked_bytes > max(_RATIO_FROM_BYTES, MAX_RATIO * packed_bytes)
    if unpacked_bytes > MAX_UNPACKED_BYTES or ratio_is_absurd:
        raise Unreadable(
            f"The file is too large: it unpacks to {unpacked_bytes // 1_000_000:,} MB."
        )
