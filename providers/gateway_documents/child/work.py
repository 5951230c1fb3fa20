"""The child's work on a paid document: parsing and extraction."""

import json

from gateway_documents.child import extraction, pages, parsing
from gateway_documents.errors import NO_TEXT, Unreadable

# Markdown of ten thousand pages.
MAX_ANSWER_BYTES = 16_000_000


def work(action: str, about: str, data: bytes) -> list[bytes]:
    """Parse any file, or extract data from Markdown.

    For "extract", `about` is the buyer's prompt and `data` the Markdown in UTF-8; returns JSON. For
    "parse", `about` is the file type; returns JSON, then the Markdown of the pages. That JSON has
    the pages without text by number, from 0; true: certainly a picture. Raises `Unreadable` for a
    file that cannot be parsed, `MemoryError` at the memory limit.
    """
    if action == "extract":
        return [extraction.extract(about, data.decode()).encode(errors="replace")]
    found = _parse(about, data)
    texts = [pages.without_controls(page).encode(errors="replace") for page in found.pages]
    if not found.textless and not any(text.strip() for text in texts):
        raise Unreadable(NO_TEXT)
    if sum(map(len, texts)) > MAX_ANSWER_BYTES:
        raise Unreadable("The file holds more than 16 MB of text.")
    return [json.dumps(found.textless).encode(), *texts]


def _parse(kind: str, data: bytes) -> pages.Parsed:
    if kind == "pdf":
        return pages.parse(data)
    return pages.Parsed([parsing.to_markdown(kind, data)])
