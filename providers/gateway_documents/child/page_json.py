"""Describes a document's pages as JSON: their Markdown, and the cells of their tables."""

import json
from collections.abc import Sequence

from gateway_documents.child import tables


def describe(pages: Sequence[str], notes: Sequence[str]) -> str:
    """Return `{"pages": [{"number", "markdown", "tables"}], "notes"}` as JSON.

    Numbers start at 1. A table is a list of rows, the first of them its head; a row is a list of
    texts. `notes` are sentences about parts that were left out, or read by a guess.
    """
    described = [
        {"number": number, "markdown": page, "tables": tables.find(page)}
        for number, page in enumerate((page.strip("\n") for page in pages), start=1)
    ]
    return json.dumps({"pages": described, "notes": list(notes)}, ensure_ascii=False)
