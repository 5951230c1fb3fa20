"""The child's work on a document: a look before payment, the whole parse after it, extraction."""

import json
import re

from gateway_documents.child import extraction, pages, parsing
from gateway_documents.errors import Unreadable

# Markdown of ten thousand pages.
MAX_ANSWER_BYTES = 16_000_000
# PDFs hold some of these characters, and databases refuse NUL.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def work(action: str, about: str, data: bytes) -> list[bytes]:
    """Look at a PDF, parse any file, or extract data from Markdown.

    `action` is "extract", with the buyer's prompt and Markdown in UTF-8: returns JSON. Or it is
    "look" or "parse", with the kind of the file: returns JSON, and the Markdown of the pages. That
    JSON has the pages without text by number, from 0; true:
    surely a picture. Raises `Unreadable` for a file that cannot be parsed, `MemoryError` at the
    memory limit.
    """
    if action == "extract":
        return [extraction.extract(about, data.decode()).encode(errors="replace")]
    found = _ACTIONS[action](about, data)
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


_ACTIONS = {"look": _look, "parse": _parse}
