"""The child's work: checking a file before its payment, parsing it after, and extraction."""

import json

from gateway_documents.child import MAX_PAGES, page_json, parsing
from gateway_documents.child.extraction import extraction
from gateway_documents.child.parsed import Parsed
from gateway_documents.errors import Unreadable

# Markdown of ten thousand pages.
MAX_ANSWER_BYTES = 16_000_000
MAX_CHECKED_BYTES = 250_000


def work(action: str, about: str, data: bytes) -> list[bytes]:
    """Check or parse a file, describe its pages, or extract data from Markdown.

    - "check" and "parse" take the kind of the file, and return the facts as JSON and the Markdown
      of each page, in UTF-8. "check" leaves the pages out if both have more than 250 kB. The
      facts are `notes` and `textless` of `Parsed`, `has_text`, and the number of `pages`.
    - "describe" takes JSON of the notes and of the pages, and returns JSON.
    - "extract" takes the buyer's prompt and Markdown, and returns JSON.

    Raises `Unreadable` for a file that cannot be parsed, `MemoryError` at the memory limit.
    """
    if action == "describe":
        described = page_json.describe(json.loads(data), json.loads(about))
        return [described.encode(errors="replace")]
    if action == "extract":
        return [extraction.extract(about, data.decode()).encode(errors="replace")]
    parsed = parsing.parse(about, data)
    pages = [page.encode(errors="replace") for page in parsed.pages]
    size = sum(map(len, pages))
    if size > MAX_ANSWER_BYTES:
        raise Unreadable("The file is too large: it contains more than 16 MB of text.")
    if len(pages) > MAX_PAGES:
        raise Unreadable(f"The file is too large: it has more than {MAX_PAGES:,} pages.")
    facts = _facts(parsed)
    is_left_out = action == "check" and len(facts) + size > MAX_CHECKED_BYTES
    return [facts] if is_left_out else [facts, *pages]


def _facts(parsed: Parsed) -> bytes:
    facts = {
        "has_text": parsed.has_text,
        "notes": list(parsed.notes),
        "pages": len(parsed.pages),
        "textless": {str(page): is_picture for page, is_picture in parsed.textless.items()},
    }
    return json.dumps(facts).encode()
