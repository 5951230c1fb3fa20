"""Prints rows as JSON or as a table: in columns if they fit, else as records."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from gateway.cli.terminal import blank_control_chars

_GAP = "  "
# The minimum width of a column with sentences.
_MIN_PROSE_COLUMNS = 24
# An address, a transaction hash, or longer hex.
_LONG_HEX = re.compile(r"0x([0-9a-fA-F]{4})[0-9a-fA-F]{32,}([0-9a-fA-F]{4})(?![0-9a-fA-F])")


@attrs.frozen(kw_only=True)
class Table:
    """Headings, and rows with one cell per heading; a cell may have several lines."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> "Table":
        """Return the table of rows with the same keys; at least one row."""
        cells = [[_format_value(value) for value in row.values()] for row in rows]
        return cls(headings=list(rows[0]), rows=cells)

    def changed(self, change: Callable[[str], str]) -> "Table":
        """Return the table with a function applied to every cell."""
        rows = [[change(cell) for cell in row] for row in self.rows]
        return Table(headings=self.headings, rows=rows)

    def columns(self) -> list[list[str]]:
        """Return each column's lines, starting with its heading."""
        return [
            [heading, *(line for row in self.rows for line in row[place].split("\n"))]
            for place, heading in enumerate(self.headings)
        ]


def print_rows(
    rows: list[dict[str, Any]],
    *,
    as_json: bool,
    wide: bool = False,
    stacked: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> None:
    """Print rows with the same keys, as JSON or as a table; without rows, only JSON's `[]`.

    `stacked` returns a row with fewer keys and more lines per value. It is used if the columns do
    not fit into the terminal. `wide` prints one line per row, in full.
    """
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        return
    narrow = Table.of([stacked(row) for row in rows]) if stacked is not None else None
    _print_fitting(Table.of(rows), narrow, wide=wide)


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    return ", ".join(value) if isinstance(value, list) else str(value)


def _print_fitting(table: Table, stacked: Table | None, *, wide: bool) -> None:
    """Print a table without breaking or truncating words.

    Addresses and hashes are shortened if they do not fit.
    """
    console = Console(highlight=False)
    table = table.changed(blank_control_chars)
    stacked = stacked.changed(blank_control_chars) if stacked is not None else None
    for line in _draw(table, stacked, console, wide=wide):
        line.rstrip()
        console.print(line, soft_wrap=True)


def _draw(table: Table, stacked: Table | None, console: Console, *, wide: bool) -> Iterator[Text]:
    if wide:
        flat = table.changed(lambda cell: "; ".join(cell.split("\n")))
        return _draw_columns(flat, _measure_columns(flat), console)
    ellipsis = "..." if console.options.ascii_only else "…"
    for form in (table, stacked):
        for fit in (_fit_unwrapped, _fit_with_one_wrapped):
            for shown in (form, form and form.changed(_make_shortener(ellipsis))):
                if shown is not None and (widths := fit(shown, console.width)):
                    return _draw_columns(shown, widths, console)
    return _draw_records(table.changed(_make_shortener(ellipsis)), console)


def _make_shortener(ellipsis: str) -> Callable[[str], str]:
    return lambda cell: _LONG_HEX.sub(rf"0x\1{ellipsis}\2", cell)


def _measure_columns(table: Table) -> list[int]:
    return [max(map(cell_len, lines)) for lines in table.columns()]


def _fit_unwrapped(table: Table, width: int) -> list[int] | None:
    """Return the unwrapped widths, or None if they do not fit."""
    widths = _measure_columns(table)
    return widths if sum(widths) + len(_GAP) * (len(widths) - 1) <= width else None


def _fit_with_one_wrapped(table: Table, width: int) -> list[int] | None:
    """Wrap the widest column; None if its words do not fit."""
    widths = _measure_columns(table)
    widest = widths.index(max(widths))
    rest = width - len(_GAP) * (len(widths) - 1) - (sum(widths) - widths[widest])
    if rest < max(_measure_longest_word(table.columns()[widest]), _MIN_PROSE_COLUMNS):
        return None
    widths[widest] = rest
    return widths


def _measure_longest_word(lines: Sequence[str]) -> int:
    return max((cell_len(word) for line in lines for word in line.split()), default=0)


def _wrap(cell: str, width: int, console: Console) -> list[Text]:
    """Wrap a cell without breaking words wider than the column."""
    width = max(width, _measure_longest_word([cell]), 1)
    return [
        part for line in cell.split("\n") for part in Text(line).wrap(console, width) or [Text()]
    ]


def _draw_columns(table: Table, widths: Sequence[int], console: Console) -> Iterator[Text]:
    yield from _draw_row(table.headings, widths, console, style="bold")
    # Separate rows with several lines.
    is_spaced = any("\n" in cell for row in table.rows for cell in row)
    for number, row in enumerate(table.rows):
        if is_spaced and number:
            yield Text()
        yield from _draw_row(row, widths, console)


def _draw_row(
    cells: Sequence[str], widths: Sequence[int], console: Console, style: str = ""
) -> Iterator[Text]:
    wrapped = [_wrap(cell, width, console) for cell, width in zip(cells, widths, strict=True)]
    for height in range(max(map(len, wrapped))):
        line = Text(style=style)
        for lines, width in zip(wrapped, widths, strict=True):
            part = lines[height] if height < len(lines) else Text()
            line.append_text(part).append(" " * (width - part.cell_len) + _GAP)
        yield line


def _draw_records(table: Table, console: Console) -> Iterator[Text]:
    label_width = max(map(cell_len, table.headings)) + len(": ")
    for number, row in enumerate(table.rows):
        if number:
            yield Text()
        for heading, cell in zip(table.headings, row, strict=True):
            if cell:
                yield from _draw_field(heading, cell, label_width, console)


def _draw_field(heading: str, cell: str, label_width: int, console: Console) -> Iterator[Text]:
    """Put a cell beside its heading, or below it if a word is too wide."""
    label = Text(f"{heading}:", style="bold")
    indent, columns = label_width, console.width - label_width
    if _measure_longest_word([cell]) > columns:
        yield label
        label, indent = Text(), len(_GAP)
        columns = console.width - indent
    for line in _wrap(cell, columns, console):
        yield label + Text(" " * (indent - label.cell_len)) + line
        label = Text()
