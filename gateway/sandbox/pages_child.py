"""Counts the pages of one document in a sandboxed process; loads nothing else of the gateway.

The price depends on this number, and vendors bill the pages that their own readers find. If readers
disagree about a file, it counts as the largest number, or is refused.
"""

import io
import re
from typing import Any

import pikepdf

from gateway.sandbox.errors import SandboxRefusal
from gateway.sandbox.slides_child import count_slides
from gateway.sandbox.tiff_child import count_frames

_HEADER = b"%PDF-"
_AMBIGUOUS = (
    "The PDF is damaged or incomplete: its pages cannot be counted for certain. Open it in another "
    "program and save it again."
)
# Readers search the end of the file for the offset of the cross-reference table; qpdf searches
# 1,054 bytes. One more is the preceding line break.
_TAIL_BYTES = 1055
_START = b"startxref"
_PLAIN_START = re.compile(rb"[\r\n]startxref[ \t\r\n]+\d{1,10}[ \t\r\n]")
_PLAIN_END = re.compile(rb"[\r\n]startxref[ \t\r\n]+\d{1,10}[ \t\r\n]+%%EOF[\0\t\n\f\r ]*\Z")
# Page trees of ordinary files have fewer than ten levels.
_MAX_LEVELS = 200
# qpdf's number of a direct object.
_NO_OBJECT = (0, 0)


def count(kind: str, data: bytes) -> bytes:
    """Return the number of pages of a pdf, pptx or tiff, in decimal digits.

    Raises `SandboxRefusal` for an unreadable file.
    """
    return str(_COUNTERS[kind](data)).encode()


def open_random_source() -> None:
    """Let qpdf open its source of random numbers: AES-256 needs it, and a child opens no file."""
    pikepdf.new().save(io.BytesIO(), encryption=pikepdf.Encryption(owner="any", R=6))


def _count_pdf_pages(data: bytes) -> int:
    """Count the entries of the page tree, with repetitions, without reading any page.

    Refuses any file that a reader has to repair or guess about, because readers guess differently:
    a wrong or ambiguous cross-reference table, offsets that do not count from the first byte, a
    duplicate key, or a cyclic page tree.
    """
    if not data.startswith(_HEADER) or not _ends_plainly(data[-_TAIL_BYTES:]):
        raise SandboxRefusal(_AMBIGUOUS)
    try:
        with _open(data) as pdf:
            pages = _PageTree().count(pdf.Root.Pages)
            doubts = pdf.get_warnings()
    except (SandboxRefusal, MemoryError):
        raise
    except pikepdf.PasswordError:
        raise SandboxRefusal("The PDF is encrypted: save it without a password.") from None
    except Exception:  # noqa: BLE001 - a value of another kind than expected may raise anything
        raise SandboxRefusal(_AMBIGUOUS) from None
    if doubts:
        raise SandboxRefusal(_AMBIGUOUS)
    if pages == 0:
        raise SandboxRefusal("The PDF is damaged or incomplete: it holds no pages.")
    return pages


def _ends_plainly(tail: bytes) -> bool:
    """Whether every reader finds the same cross-reference table."""
    plain = len(_PLAIN_START.findall(tail))
    return _PLAIN_END.search(tail) is not None and plain == tail.count(_START)


def _open(data: bytes) -> pikepdf.Pdf:
    """Open a PDF as it is: by default, qpdf repairs the page tree and drops parts."""
    return pikepdf.open(
        io.BytesIO(data),
        attempt_recovery=False,
        suppress_warnings=True,
        inherit_page_attributes=False,
    )


class _PageTree:
    """Counts pages; a list of kids shared by several nodes is read once."""

    def __init__(self) -> None:
        # By the object that holds the list; None while it is being counted.
        self._counted: dict[tuple[int, int], int | None] = {}

    def count(self, node: Any, level: int = 0) -> int:
        """Return the number of pages below a node: 1 if it has no list of kids."""
        # Readers disagree about some references, such as those with a wrong generation.
        if level > _MAX_LEVELS or not isinstance(node, pikepdf.Dictionary):
            raise SandboxRefusal(_AMBIGUOUS)
        kids = node.get("/Kids")
        if kids is None:
            return 1
        pages = self._count_list(kids, kids.objgen if kids.is_indirect else node.objgen, level)
        return max(pages, 1) if node.get("/Type") == "/Page" else pages

    def _count_list(self, kids: Any, holder: tuple[int, int], level: int) -> int:
        if holder == _NO_OBJECT:
            return sum(self.count(kid, level + 1) for kid in kids)
        if holder not in self._counted:
            self._counted[holder] = None
            self._counted[holder] = sum(self.count(kid, level + 1) for kid in kids)
        known = self._counted[holder]
        if known is None:
            raise SandboxRefusal(_AMBIGUOUS)
        return known


_COUNTERS = {"pdf": _count_pdf_pages, "pptx": count_slides, "tiff": count_frames}
