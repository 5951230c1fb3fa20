"""Counts the pages of a document before the buyer pays."""

import attrs

from gateway.domain import Attachment
from gateway.errors import ExecutionError, InvalidInput
from gateway.sandbox import (
    UNPAID_NICE,
    Sandbox,
    SandboxEnded,
    SandboxLimits,
    SandboxLost,
    SandboxRefusal,
)

_KINDS = {".pdf": "pdf", ".pptx": "pptx", ".tif": "tiff", ".tiff": "tiff"}
# PDF readers accept this many bytes before the header.
_PDF_HEADER_WITHIN_BYTES = 1024
# Vendors detect a file's type by its first bytes, not by its name, and bill accordingly.
_ZIP = (b"PK\x03\x04",)
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_OLDER_OFFICE = (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",)
_FIRST_BYTES = {
    ".pdf": (b"%PDF-",),
    ".tif": _TIFF,
    ".tiff": _TIFF,
    ".doc": _OLDER_OFFICE,
    ".ppt": _OLDER_OFFICE,
    ".xls": _OLDER_OFFICE,
    ".pptx": _ZIP,
    ".docx": _ZIP,
    ".xlsx": _ZIP,
    ".epub": _ZIP,
    ".odt": _ZIP,
    ".odp": _ZIP,
    ".ods": _ZIP,
    ".png": (b"\x89PNG\r\n\x1a\n",),
    ".jpg": (b"\xff\xd8\xff",),
    ".jpeg": (b"\xff\xd8\xff",),
    ".bmp": (b"BM",),
    ".gif": (b"GIF8",),
    ".webp": (b"RIFF",),
}
# A file with any other extension must not begin like these.
# An encrypted .docx, .pptx or .xlsx is an older container with this stream (MS-OFFCRYPTO §2.3).
_NEWER_OFFICE = (".docx", ".pptx", ".xlsx")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_FIRST_BYTES_WITH_PAGES = (*_ZIP, *_TIFF, *_OLDER_OFFICE)
# HEIF and AVIF have their type after the length of the first box (ISO/IEC 14496-12 §4.3).
_BOXED = (".heif", ".avif")
_BOX = b"ftyp"
_SENTENCES = {
    "out of time": "The file is too slow to read: counting its pages takes too much time.",
    "out of memory": "The file is too large: counting its pages takes too much memory.",
    "crashed": "The file is damaged, or counting its pages takes too much memory.",
}
# Zeros, white space, and the marks of UTF-8 and UTF-16.
_NOTHING = b"\0\t\n\v\f\r \xef\xbb\xbf\xff\xfe"
# A PDF of 7 MB with 25,000 pages takes 1.5 s and 150 MB; one of 1,000 pages takes 0.1 s.
_LIMITS = SandboxLimits(
    memory_bytes=500_000_000, cpu_s=3, wall_s=10.0, answer_bytes=100, nice=UNPAID_NICE
)


def _check_name(extension: str, data: bytes) -> None:
    """Raise `InvalidInput` for a misleading name: a PDF called scan.png would not be counted.

    A damaged PDF or TIFF passes, because its counter has a better message.
    """
    if not data.strip(_NOTHING):
        raise InvalidInput("The file is empty.")
    if extension in _NEWER_OFFICE and data.startswith(_OLDER_OFFICE) and _ENCRYPTED in data:
        raise InvalidInput("The file is encrypted: save it without a password.")
    if extension == ".pdf" and _is_pdf(data):
        return
    if extension in _KINDS and not data.startswith(_FIRST_BYTES_WITH_PAGES) and not _is_pdf(data):
        return
    expected = _FIRST_BYTES.get(extension)
    if expected is not None:
        is_right = data.startswith(expected)
    elif extension in _BOXED:
        is_right = data[4:8] == _BOX
    else:
        is_right = not data.startswith(_FIRST_BYTES_WITH_PAGES)
    if not is_right or (extension != ".pdf" and _is_pdf(data)):
        named = f"The kind of the file is unknown: its name ends in {extension}"
        raise InvalidInput(f"{named}, but it is something else.")


def _is_pdf(data: bytes) -> bool:
    return b"%PDF-" in data[:_PDF_HEADER_WITHIN_BYTES]


def _make_sandbox() -> Sandbox:
    child = "gateway.sandbox.pages_child"
    # ZIP's default character set must be loaded before the fork.
    warm = ("encodings.cp437", f"{child}:open_random_source")
    return Sandbox(function=f"{child}:count", warm=warm, limits=_LIMITS)


@attrs.define(eq=False, repr=False)
class Pages:
    """Counts pages in a sandboxed process, because the sender has not paid yet."""

    _sandbox: Sandbox = attrs.field(factory=_make_sandbox)

    async def count(self, attachment: Attachment) -> int | None:
        """Return the pages of a PDF, slides of a .pptx or frames of a TIFF; None for other files.

        Raises `InvalidInput` for a file that is unreadable or takes too much time or memory, and
        `ExecutionError` if the sandbox fails.
        """
        _check_name(attachment.extension, attachment.data)
        kind = _KINDS.get(attachment.extension)
        if kind is None:
            return None
        try:
            return int(await self._sandbox.call(kind, attachment.data))
        except SandboxRefusal as error:
            raise InvalidInput(str(error)) from None
        except SandboxEnded as error:
            raise InvalidInput(_SENTENCES[error.end]) from None
        except SandboxLost as error:
            raise ExecutionError("The pages of the file cannot be counted now.") from error

    def close(self) -> None:
        """End the counting process; the next document starts another."""
        self._sandbox.close()
