"""Comma-separated values, with any common delimiter."""

import csv
import io
import re
from collections import Counter

from gateway_documents.child import tables
from gateway_documents.child.charsets import decode
from gateway_documents.child.formats.text import guess_note
from gateway_documents.child.parsed import Parsed

# Of two delimiters that fit, the earlier wins: with ";" the comma is a decimal comma.
_DELIMITERS = "\t;,|"
# Excel's line that names the delimiter.
_SEP_LINE = re.compile(r"\A\ufeff?\"?sep=(.)\"?\r?\n", re.IGNORECASE)
_MAX_TITLES = 3
_SAMPLE_ROWS = 200
_SAMPLE_CHARS = 200_000


def parse(data: bytes) -> Parsed:
    """Return the values as a table; lines of one cell above it are titles."""
    decoded = decode(data)
    text, delimiter = decoded.text, None
    if found := _SEP_LINE.match(text):
        text, delimiter = text[found.end() :], found[1]
    rows = _read(text, delimiter or _sniff(text))
    at = _head_of(rows)
    titles = [tables.cell_text(" ".join(row)) for row in rows[:at]]
    table = tables.to_markdown([tables.cell_text(cell) for cell in row] for row in rows[at:])
    return Parsed(["\n\n".join((*titles, table))], guess_note(decoded.guess))


def _head_of(rows: list[list[str]]) -> int:
    """Return the place of the table's head: up to three rows of one cell before it are titles."""
    wide = next((at for at, row in enumerate(rows) if _width(row) > 1), 0)
    return wide if wide <= _MAX_TITLES else 0


def _width(row: list[str]) -> int:
    return sum(1 for cell in row if cell.strip())


def _read(text: str, delimiter: str) -> list[list[str]]:
    csv.field_size_limit(len(text) + 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return [row for row in reader if any(cell.strip() for cell in row)]


def _sniff(text: str) -> str:
    """Return the delimiter that gives the most rows the same number of cells."""
    sample = text[:_SAMPLE_CHARS]
    scores = {delimiter: _score(sample, delimiter) for delimiter in _DELIMITERS}
    best = max(scores.values())
    return next(d for d in _DELIMITERS if scores[d] >= 0.9 * best) if best else ","


def _score(sample: str, delimiter: str) -> float:
    """Return the share of rows with the most frequent number of cells, 0 if that is one."""
    rows = [row for row in _read(sample, delimiter)[:_SAMPLE_ROWS] if row]
    counts = Counter(map(len, rows))
    counts.pop(1, None)
    if not counts:
        return 0
    # The head has the number of cells of most rows; a decimal comma is in the values only.
    most, times = max(counts.items(), key=lambda one: one[1])
    head = next((row for row in rows if len(row) > 1), [])
    return times / len(rows) * (1 if len(head) == most else 0.5)
