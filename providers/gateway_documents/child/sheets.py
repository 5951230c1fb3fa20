"""Workbooks and CSV files as Markdown tables, without the rows and columns that are empty."""

import csv
import datetime as dt
import io
from collections.abc import Iterable, Sequence

from openpyxl import load_workbook

from gateway_documents.errors import Unreadable

MAX_CELLS = 5_000_000  # of a table, empty ones among them; ten seconds' worth of writing
_DELIMITERS = ",;\t|"
_MIDNIGHT = dt.time()
_EXACT_BELOW = 1e15  # a float above shows digits it does not know

Row = list[str]
"""The texts of a row up to the last that is not empty."""


def workbook_to_markdown(data: bytes) -> str:
    """Return every sheet under its name as a table; formulas as the values Excel last saw."""
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    parts = []
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # the file's own claim may be a million rows
        parts.append(f"## {sheet.title}\n\n{_table(sheet.iter_rows(values_only=True))}".strip())
    return "\n\n".join(parts)


def csv_to_markdown(text: str) -> str:
    """Return a CSV file as a table; its delimiter is what its first line has most of."""
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
    """Return a cell's text, as its reader would write it."""
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
    """Return rows as a Markdown table whose head is the first that is not empty."""
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
