"""Comma-separated values, with any common delimiter."""

import contextlib
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterator

from gateway_documents.child import escaping, tables
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.text.charsets import decode
from gateway_documents.child.text.plain_text import guess_note
from gateway_documents.errors import NO_TEXT, Unreadable

# Of two delimiters that fit, the earlier wins: with ";" the comma is a decimal comma.
_DELIMITERS = "\t;,|"
# These are common in text, too: all rows must have the same number of cells, and three at least.
_RARE_DELIMITERS = "^~: "
_MIN_RARE = 3
# Excel's line that names the delimiter.
_SEP_LINE = re.compile(r"\A\ufeff?\"?sep ?=(?: (?=\S))?(.)\1*\"?[ \t]*(?:\r\n?|\n)", re.IGNORECASE)
_SINGLE_QUOTED = re.compile(r"(?:^|(?<=[\t;,|]))\s*'[^'\r\n]*'\s*(?=$|[\t;,|\r])", re.MULTILINE)
_OPENED = re.compile(r"(?:^|(?<=[\t;,|]))\s*'", re.MULTILINE)
_SIGNS = f"{_DELIMITERS}{_RARE_DELIMITERS}\"'\r\n\f\v"
# Separates nothing: text never contains it.
_NO_DELIMITER = "\x1f"
_DECIMAL = re.compile(r"[-+]?\d{1,3}(?:[.\s]?\d{3})*,\d+\s*[%€]?")
_MAX_TITLES = 10
# The lines of one quoted cell, if quotes in the file do not match.
_MAX_CELL_LINES = 20
_SAMPLE_ROWS = 200
_SAMPLE_CHARS = 200_000


def parse(data: bytes) -> Parsed:
    """Return the values as a table; lines of one cell above it are titles."""
    decoded = decode(data)
    text, delimiter = decoded.text, None
    if found := _SEP_LINE.match(text):
        text, delimiter = text[found.end() :], found[1]
    if not text.strip(_SIGNS):
        raise Unreadable(NO_TEXT)
    rows = _read(text, delimiter or _sniff(text))
    at = _head_of(rows)
    titles = [escaping.paragraph(" ".join(row).strip()) for row in rows[:at]]
    table = tables.to_markdown([tables.cell_text(cell) for cell in row] for row in rows[at:])
    return Parsed(["\n\n".join((*titles, table))], guess_note(decoded.guess))


def _head_of(rows: list[list[str]]) -> int:
    """Return the place of the table's head: up to ten rows of one cell before it are titles."""
    wide = next((at for at, row in enumerate(rows) if _width(row) > 1), 0)
    return wide if wide <= _MAX_TITLES else 0


def _width(row: list[str]) -> int:
    return sum(1 for cell in row if cell.strip())


def _read(text: str, delimiter: str) -> list[list[str]]:
    csv.field_size_limit(len(text) + 1)
    lines = list(io.StringIO(text, newline=""))
    rows = _read_strictly(lines, delimiter, quote=_quote_of(text))
    if rows is None and '\\"' in text:
        rows = _read_strictly(lines, delimiter, escape="\\")
    if rows is None:
        rows = list(_read_mismatched(lines, delimiter))
    return [row for row in rows if any(cell.strip() for cell in row)]


def _quote_of(text: str) -> str:
    """Return the single quote if it is around each cell that begins with it, and `"` else."""
    sample = text[:_SAMPLE_CHARS]
    quoted = len(_SINGLE_QUOTED.findall(sample)) if '"' not in sample else 0
    return "'" if quoted and quoted == len(_OPENED.findall(sample)) else '"'


def _read_strictly(
    lines: list[str], delimiter: str, *, escape: str | None = None, quote: str = '"'
) -> list[list[str]] | None:
    """Return the rows; None if quotes do not match."""
    reader = csv.reader(
        lines,
        delimiter=delimiter,
        escapechar=escape,
        quotechar=quote,
        skipinitialspace=True,
        strict=True,
    )
    try:
        return list(reader)
    except csv.Error:
        return None


def _read_mismatched(lines: list[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the rows of a file whose quotes do not match: such a quote is part of its cell."""
    at = 0
    while at < len(lines):
        for after, row in _rows_before_a_mismatch(lines, at, delimiter):
            yield row
            at = after
        if at < len(lines):
            yield _cells(lines[at], delimiter)
            at += 1


def _rows_before_a_mismatch(
    lines: list[str], start: int, delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield rows, each with the number of the line after it."""
    at = start

    def is_near(_: str) -> bool:
        return start + reader.line_num - at < _MAX_CELL_LINES

    rest = map(lines.__getitem__, range(start, len(lines)))
    reader = csv.reader(
        itertools.takewhile(is_near, rest), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    with contextlib.suppress(csv.Error):
        for row in reader:
            at = start + reader.line_num
            yield at, row


def _cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line; quotes count at the beginning and the end of a cell only."""
    pieces = [piece.strip() for piece in line.split(delimiter)]
    ends = [at for at, piece in enumerate(pieces) if piece.endswith('"')]
    cells, at, seen = [], 0, 0
    while at < len(pieces):
        while seen < len(ends) and ends[seen] < at + (pieces[at] == '"'):
            seen += 1
        if pieces[at].startswith('"') and seen < len(ends):
            whole = delimiter.join(pieces[at : ends[seen] + 1])
            cells.append(whole[1:-1].replace('""', '"'))
            at = ends[seen] + 1
        else:
            cells.append(pieces[at])
            at += 1
    return cells


def _sniff(text: str) -> str:
    """Return the delimiter that gives the most rows the same number of cells."""
    sample = text[:_SAMPLE_CHARS]
    if _is_decimal_column(sample):
        return _NO_DELIMITER
    scores = {delimiter: _score(sample, delimiter) for delimiter in _DELIMITERS}
    if best := max(scores.values()):
        return next(delimiter for delimiter in _DELIMITERS if scores[delimiter] >= 0.9 * best)
    rare = (delimiter for delimiter in _RARE_DELIMITERS if _is_regular(sample, delimiter))
    return next(rare, _NO_DELIMITER)


def _is_regular(sample: str, delimiter: str) -> bool:
    """Whether all rows, of which there are several, have the same number of cells."""
    widths = [len([cell for cell in row if cell]) for row in _read(sample, delimiter)]
    return len(widths) > 1 and len(set(widths)) == 1 and widths[0] >= _MIN_RARE


def _is_decimal_column(sample: str) -> bool:
    """Whether the text is one column of numbers with decimal commas.

    A title or head without a comma shows it, or a sign after a number; `1,2` alone is two numbers.
    """
    lines = [line.strip() for line in sample.splitlines() if line.strip()]
    at = next((at for at, line in enumerate(lines) if "," in line), len(lines))
    numbers = lines[at:]
    if not numbers or at > _MAX_TITLES or not all(map(_DECIMAL.fullmatch, numbers)):
        return False
    return at > 0 or any(line[-1] in "%€" for line in numbers)


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
