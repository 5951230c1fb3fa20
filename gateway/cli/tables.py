"""Prints rows as JSON or as a table: in columns where they fit, else one record below the other."""

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
# A column narrower than this is not worth reading a sentence in.
_LEAST_PROSE_COLUMNS = 24
# An address, a transaction's hash, or anything longer of that kind.
_LONG_HEX = re.compile(r"0x([0-9a-fA-F]{4})[0-9a-fA-F]{32,}([0-9a-fA-F]{4})(?![0-9a-fA-F])")


@attrs.frozen(kw_only=True)
class Table:
    """Headings, and rows with one cell for each; a cell may have several lines."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]]) -> "Table":
        """Return the table of rows that have the same keys, of which there is one at least."""
        cells = [[_format_value(value) for value in row.values()] for row in rows]
        return cls(headings=list(rows[0]), rows=cells)

    def changed(self, change: Callable[[str], str]) -> "Table":
        """Return the table with every cell changed."""
        rows = [[change(cell) for cell in row] for row in self.rows]
        return Table(headings=self.headings, rows=rows)

    def columns(self) -> list[list[str]]:
        """Return each column's lines, its heading first."""
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
    """Print rows of the same keys, as JSON or as a table; no rows print nothing but JSON's `[]`.

    `stacked` returns a row with more lines in a value and fewer keys. It is used where the columns
    of all keys do not fit into the terminal. `wide` prints one line a row, in full.
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
    """Print a table as the terminal's width allows; no word is broken, nothing is cut.

    Addresses and hashes are shortened where they do not fit.
    """
    console = Console(highlight=False)
    table = table.changed(blank_control_chars)
    stacked = stacked.changed(blank_control_chars) if stacked is not None else None
    for line in _draw(table, stacked, console, wide=wide):
        line.rstrip()
        console.print(line, soft_wrap=True)


def _draw(table: Table, stacked: Table | None, console: Console, *, wide: bool) -> Iterator[Text]:
    """Yield the lines of the first form that fits: less and less is kept of the table's look."""
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
    """Return the width of each column's longest line."""
    return [max(map(cell_len, lines)) for lines in table.columns()]


def _fit_unwrapped(table: Table, width: int) -> list[int] | None:
    """Return the columns' widths without a line break; None where that is too much."""
    widths = _measure_columns(table)
    return widths if sum(widths) + len(_GAP) * (len(widths) - 1) <= width else None


def _fit_with_one_wrapped(table: Table, width: int) -> list[int] | None:
    """Return the widths with the widest column wrapped; None where its words do not fit."""
    widths = _measure_columns(table)
    widest = widths.index(max(widths))
    rest = width - len(_GAP) * (len(widths) - 1) - (sum(widths) - widths[widest])
    if rest < max(_measure_longest_word(table.columns()[widest]), _LEAST_PROSE_COLUMNS):
        return None
    widths[widest] = rest
    return widths


def _measure_longest_word(lines: Sequence[str]) -> int:
    return max((cell_len(word) for line in lines for word in line.split()), default=0)


def _wrap(cell: str, width: int, console: Console) -> list[Text]:
    """Return a cell's lines; a word that is wider than the width stays whole."""
    width = max(width, _measure_longest_word([cell]), 1)
    return [
        part for line in cell.split("\n") for part in Text(line).wrap(console, width) or [Text()]
    ]


def _draw_columns(table: Table, widths: Sequence[int], console: Console) -> Iterator[Text]:
    yield from _draw_row(table.headings, widths, console, style="bold")
    # An empty line between rows shows where a row of several lines ends.
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
    """Yield a line or more for each cell that holds something, after its heading."""
    label_width = max(map(cell_len, table.headings)) + len(": ")
    for number, row in enumerate(table.rows):
        if number:
            yield Text()
        for heading, cell in zip(table.headings, row, strict=True):
            if cell:
                yield from _draw_field(heading, cell, label_width, console)


def _draw_field(heading: str, cell: str, label_width: int, console: Console) -> Iterator[Text]:
    """Yield one cell beside its heading, or below it where a word is too wide for that."""
    label = Text(f"{heading}:", style="bold")
    indent, columns = label_width, console.width - label_width
    if _measure_longest_word([cell]) > columns:
        yield label
        label, indent = Text(), len(_GAP)
        columns = console.width - indent
    for line in _wrap(cell, columns, console):
        yield label + Text(" " * (indent - label.cell_len)) + line
        label = Text()
