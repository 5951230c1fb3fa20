"""Reads a PDF with liteparse, and keeps the places of pages that it cannot read."""

import contextlib
import os
import resource
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import attrs
import liteparse

from gateway_documents.child.parsed import on_pages
from gateway_documents.errors import DAMAGED, ENCRYPTED, Unreadable

# Enough for a page, and too little for the pool.
_WARM_UP_BYTES = 500_000_000
# The name of an encryption that only the owner of a certificate can undo.
_FOR_CERTIFICATES = b"Adobe.PubSec"
# Holds the one reader.
_reader: list[liteparse.LiteParse] = []
ONE_PAGE = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF"
)


@attrs.frozen
class Pages:
    """The pages of a PDF in the order of the file."""

    pages: Sequence[liteparse.ParsedPage]
    lost: AbstractSet[int]
    """Pages that could not be read, from 0."""

    @property
    def notes(self) -> Sequence[str]:
        """A sentence that names the lost pages."""
        return on_pages("{} could not be read: the file is damaged there.", self.lost)


def load() -> None:
    """Make the reader and use it once: it cannot be made after a fork."""
    _reader.append(
        liteparse.LiteParse(
            ocr_enabled=False,
            quiet=True,
            output_format="markdown",
            # Without this, repeated lines of the body are dropped, too.
            keep_headers_footers=True,
            continue_on_page_error=True,
            num_workers=1,
            extract_blocks=True,
            emit_word_boxes=True,
            extract_vector_graphics=True,
            image_mode="off",
            extract_form_fields=True,
            include_complexity=True,
        )
    )
    with without_pool():
        read(ONE_PAGE)


@contextlib.contextmanager
def without_pool() -> Iterator[None]:
    """Let PDFium fail to reserve a pool of 1 GiB, and allocate ordinarily instead.

    The reservation counts as address space of every child, and left nothing of its limit.
    """
    limits = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(OSError, ValueError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        used = pages * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + _WARM_UP_BYTES, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def read(data: bytes) -> Pages:
    """Return all pages; those that PDFium cannot load are empty.

    Raises `Unreadable` for a PDF that is encrypted, or of which no page can be loaded.
    """
    try:
        result = _reader[0].parse(data)
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - a Rust panic is a BaseException
        words = str(error).lower()
        is_locked = "password" in words or "encrypt" in words or _FOR_CERTIFICATES in data
        raise Unreadable(ENCRYPTED if is_locked else DAMAGED) from None
    found = {page.page_num: page for page in result.pages}
    if not found:
        raise Unreadable(DAMAGED)
    last = max(*found, *(error.page_num for error in result.page_errors), 0)
    numbers = range(1, last + 1)
    lost = [number for number in numbers if number not in found]
    pages = [found.get(number) or liteparse.ParsedPage(number, 0, 0, "") for number in numbers]
    return Pages(pages, frozenset(number - 1 for number in lost))
