"""Pictures: one page each, and a TIFF's frames as pages. Their text is read by `recognition`."""

from gateway.sandbox.tiff_child import count_frames
from gateway_documents.child.parsed import Parsed

_TIFF = (b"II", b"MM")


def parse(data: bytes) -> Parsed:
    """Return the pages of a picture, all without text."""
    pages = range(count_frames(data) if data.startswith(_TIFF) else 1)
    return Parsed([""] * len(pages), textless=dict.fromkeys(pages, True))
