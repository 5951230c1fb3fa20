"""Converts workbooks and CSV files to Markdown tables without empty rows and columns."""

import csv
import datetime as dt
import io
from collections.abc import Iterable, Sequence

from openpyxl import load_workbook

from gateway_documents.errors import Unreadable

# Cells of a table, including empty ones; writing this many takes ten seconds.
MAX_CELLS = 5_000_000
_DELIMITERS = ",;\t|"
_MIDNIGHT = dt.time()
# A larger float would show digits beyond its precision.
_EXACT_BELOW = 1e15

Row = list[str]
"""The texts of a row, up to the last non-empty one."""


def workbook_to_markdown(data: bytes) -> str:
    """Return every sheet as a table under its name; formulas as the values that Excel saved."""
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    parts = []
    for sheet in book.worksheets:
        # The file may claim a million rows.
        sheet.reset_dimensions()
        parts.append(f"## {sheet.title}\n\n{_table(sheet.iter_rows(values_only=True))}".strip())
    return "\n\n".join(parts)


def csv_to_markdown(text: str) -> str:
    """Return a CSV file as a table; the delimiter is the most frequent one in the first line."""
    first_line = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first_line.count)
    csv.field_size_limit(len(text) + 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return _table(reader)


def _row(values: Sequence[object]) -> Row:
    length = len(values)
    while length and values[length - 1] in (None, ""):
        length -= 1
    return [_cell(value) for value in values[:length]]


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).upper()
        case float() if value.is_integer() and abs(value) < _EXACT_BELOW:
            return str(int(value))
        case dt.datetime() if value.time() == _MIDNIGHT:
            return value.date().isoformat()
        case dt.datetime():
            return value.isoformat(" ", "seconds")
    return " ".join(str(value).split()).replace("|", r"\|")


def _table(source: Iterable[Sequence[object]]) -> str:
    """Format a Markdown table; the first non-empty row is the header."""
    rows = [row for row in map(_row, source) if row]
    columns = sorted({at for row in rows for at, cell in enumerate(row) if cell})
    if len(rows) * len(columns) > MAX_CELLS:
        raise Unreadable(
            f"A table of {len(rows):,} rows and {len(columns):,} columns is too large to parse."
        )
    if not rows:
        return ""
    lines = [_line(row[at] if at < len(row) else "" for at in columns) for row in rows]
    lines.insert(1, _line("---" for _ in columns))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
