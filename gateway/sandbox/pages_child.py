"""Counts the pages of one document in a sandboxed process; loads nothing else of the gateway."""

import io
import re
import struct
import zipfile
import zlib

import pdf_inspector

from gateway.sandbox.errors import SandboxRefusal

_SLIDE = re.compile(r"ppt/slides/slide\d+\.xml", re.ASCII)
_SLIDE_LINK = re.compile(rb"/relationships/slide[\"']")
_LINKS = "ppt/_rels/presentation.xml.rels"
# The links of 20,000 slides, unpacked.
_MAX_LINKS_BYTES = 4_000_000
# More frames do not fit into 7.5 MB.
_MAX_FRAMES = 1_000_000
# What `zipfile` raises for a missing, an encrypted or an unknown member.
_UNREADABLE = (KeyError, ValueError, EOFError, RuntimeError)
# TIFF 6.0 is version 42, BigTIFF version 43. For each: the format of an offset, the format of the
# number of tags, and the bytes of a tag.
_TIFF_VERSIONS = {42: ("I", "H", 12), 43: ("Q", "Q", 20)}


def count(kind: str, data: bytes) -> bytes:
    """Return the number of pages of a pdf, pptx or tiff in decimal digits.

    Raises `SandboxRefusal` for a file that cannot be read.
    """
    return str(_COUNTERS[kind](data)).encode()


def _count_pdf_pages(data: bytes) -> int:
    """Count the pages that the page tree holds; the number that it claims is not trusted."""
    try:
        pages: int = pdf_inspector.classify_pdf_bytes(data).page_count
    except MemoryError:
        raise
    except BaseException as error:  # noqa: BLE001 - a panic in Rust is not an Exception
        if "encrypt" in str(error).lower() or "password" in str(error).lower():
            raise SandboxRefusal("The PDF is encrypted: save it without a password.") from None
        raise SandboxRefusal("The PDF is damaged or incomplete: it cannot be read.") from None
    if pages == 0:
        raise SandboxRefusal("The PDF is damaged or incomplete: it holds no pages.")
    return pages


def _count_slides(data: bytes) -> int:
    """Return the larger number: slides with the usual name, or slides that are linked."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = set(archive.namelist())
            with archive.open(_LINKS) as links:
                linked = len(_SLIDE_LINK.findall(links.read(_MAX_LINKS_BYTES)))
    except (zipfile.BadZipFile, zlib.error, struct.error, *_UNREADABLE):
        raise SandboxRefusal("The presentation is damaged or incomplete.") from None
    slides = max(linked, sum(1 for name in names if _SLIDE.fullmatch(name)))
    if slides == 0:
        raise SandboxRefusal("The presentation is damaged or incomplete: it holds no slides.")
    return slides


def _count_tiff_frames(data: bytes) -> int:
    """Follow the chain of directories and count them; stop at one that was counted before."""
    try:
        order = {b"II": "<", b"MM": ">"}[data[:2]]
        (version,) = struct.unpack_from(order + "H", data, 2)
        offset, number, tag_bytes = _TIFF_VERSIONS[version]
        link, total = struct.Struct(order + offset), struct.Struct(order + number)
        (at,) = link.unpack_from(data, 4 if version == 42 else 8)  # noqa: PLR2004 - TIFF 6.0
        seen: set[int] = set()
        while at and at not in seen and len(seen) < _MAX_FRAMES:
            seen.add(at)
            (tags,) = total.unpack_from(data, at)
            (at,) = link.unpack_from(data, at + total.size + tags * tag_bytes)
    except (KeyError, struct.error, OverflowError):
        raise SandboxRefusal("The TIFF is damaged or incomplete.") from None
    return len(seen)


_COUNTERS = {"pdf": _count_pdf_pages, "pptx": _count_slides, "tiff": _count_tiff_frames}
