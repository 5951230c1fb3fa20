"""What a child does with a document: looks at it before payment, or parses it after."""

import json
import re

from gateway_documents.child import pages, parsing
from gateway_documents.errors import Unreadable

MAX_ANSWER_BYTES = 16_000_000  # of Markdown; ten thousand pages
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # PDFs hold some; databases refuse NUL


def work(deed: str, kind: str, data: bytes) -> list[bytes]:
    """Look at a PDF or parse any file; return JSON, and the Markdown of the pages.

    The JSON tells which pages are without text, from 0, and which of them are surely pictures.
    Raises `Unreadable` where the file is to blame, `MemoryError` where the limit is met.
    """
    found = _DEEDS[deed](kind, data)
    texts = [_CONTROLS.sub("", page).encode(errors="replace") for page in found.pages]
    if not found.textless and not any(text.strip() for text in texts):
        raise Unreadable("The file holds no text.")
    if sum(map(len, texts)) > MAX_ANSWER_BYTES:
        raise Unreadable("The file holds more than 16 MB of text.")
    return [json.dumps(found.textless).encode(), *texts]


def _look(_kind: str, data: bytes) -> pages.Parsed:
    return pages.look(data)


def _parse(kind: str, data: bytes) -> pages.Parsed:
    if kind == "pdf":
        return pages.parse(data)
    return pages.Parsed([parsing.to_markdown(kind, data)])


_DEEDS = {"look": _look, "parse": _parse}
