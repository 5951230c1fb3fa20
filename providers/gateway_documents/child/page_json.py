"""Describes a document's pages as JSON: their Markdown, and the cells of their tables."""

import json
from collections.abc import Sequence

from gateway_documents.child import tables

_CUT = (
    f"The tables have more than {tables.MAX_FOUND_CELLS:,} cells:"
    " the rows after them are in the Markdown only."
)


def describe(pages: Sequence[str], notes: Sequence[str]) -> str:
    """Return `{"pages": [{"number", "markdown", "tables"}], "notes"}` as JSON.

    Numbers start at 1. A table is a list of rows, the first of them its head; a row is a list of
    texts. `notes` are sentences about parts that were left out, or read by a guess.
    """
    described: list[dict[str, object]] = []
    are_whole, left = True, tables.MAX_FOUND_CELLS
    for number, page in enumerate((page.strip("\n") for page in pages), start=1):
        found, are_whole = tables.find(page, left) if are_whole else ([], False)
        left -= sum(len(row) for table in found for row in table)
        described.append({"number": number, "markdown": page, "tables": found})
    all_notes = [*notes] if are_whole else [*notes, _CUT]
    return json.dumps({"pages": described, "notes": all_notes}, ensure_ascii=False)
