"""Tables for a terminal or a pipe: columns where they fit, else one record below the other."""

import re
from collections.abc import Callable, Iterator, Sequence

import attrs
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_GAP = "  "
# A column narrower than this is not worth reading a sentence in.
_LEAST_PROSE_COLUMNS = 24
# An address, a transaction's hash, or anything longer of that kind.
_LONG_HEX = re.compile(r"0x([0-9a-fA-F]{4})[0-9a-fA-F]{32,}([0-9a-fA-F]{4})(?![0-9a-fA-F])")


@attrs.frozen(kw_only=True)
class Table:
    """Headings, and rows of as many cells; a cell may have several lines."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

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


def print_fitting(table: Table, stacked: Table | None, *, wide: bool) -> None:
    """Print a table as the terminal's width allows; no word is broken, nothing is cut.

    `stacked` is the same with more lines in a cell and fewer columns. Addresses and hashes are
    shortened where they do not fit. `wide`: all in full, a line for each row.
    """
    console = Console(highlight=False)
    table = table.changed(_printable)
    stacked = stacked.changed(_printable) if stacked is not None else None
    for line in _lines(table, stacked, console, wide=wide):
        line.rstrip()
        console.print(line, soft_wrap=True)


def _lines(table: Table, stacked: Table | None, console: Console, *, wide: bool) -> Iterator[Text]:
    if wide:
        flat = table.changed(lambda cell: "; ".join(cell.split("\n")))
        return _in_columns(flat, _natural(flat), console)
    ellipsis = "..." if console.options.ascii_only else "…"
    for form in (table, stacked):
        for widths_of in (_untouched, _one_wrapped):
            for shown in (form, form and form.changed(_shortener(ellipsis))):
                if shown is not None and (widths := widths_of(shown, console.width)):
                    return _in_columns(shown, widths, console)
    return _in_records(table.changed(_shortener(ellipsis)), console)


def _printable(cell: str) -> str:
    """Return a cell without control characters: a vendor's words must not steer the terminal."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in cell)


def _shortener(ellipsis: str) -> Callable[[str], str]:
    return lambda cell: _LONG_HEX.sub(rf"0x\1{ellipsis}\2", cell)


def _natural(table: Table) -> list[int]:
    return [max(map(cell_len, lines)) for lines in table.columns()]


def _untouched(table: Table, width: int) -> list[int] | None:
    """Return the columns' widths without a line break; None where that is too much."""
    widths = _natural(table)
    return widths if sum(widths) + len(_GAP) * (len(widths) - 1) <= width else None


def _one_wrapped(table: Table, width: int) -> list[int] | None:
    """Return the widths with the widest column wrapped; None where its words do not fit."""
    widths = _natural(table)
    widest = widths.index(max(widths))
    rest = width - len(_GAP) * (len(widths) - 1) - (sum(widths) - widths[widest])
    if rest < max(_longest_word(table.columns()[widest]), _LEAST_PROSE_COLUMNS):
        return None
    widths[widest] = rest
    return widths


def _longest_word(lines: Sequence[str]) -> int:
    return max((cell_len(word) for line in lines for word in line.split()), default=0)


def _wrapped(cell: str, width: int, console: Console) -> list[Text]:
    """Return a cell's lines; a word that is wider than the width stays whole."""
    width = max(width, _longest_word([cell]), 1)
    return [
        part for line in cell.split("\n") for part in Text(line).wrap(console, width) or [Text()]
    ]


def _in_columns(table: Table, widths: Sequence[int], console: Console) -> Iterator[Text]:
    yield from _row(table.headings, widths, console, style="bold")
    # Rows of several lines are told apart by an empty one.
    is_spaced = any("\n" in cell for row in table.rows for cell in row)
    for number, row in enumerate(table.rows):
        if is_spaced and number:
            yield Text()
        yield from _row(row, widths, console)


def _row(
    cells: Sequence[str], widths: Sequence[int], console: Console, style: str = ""
) -> Iterator[Text]:
    wrapped = [_wrapped(cell, width, console) for cell, width in zip(cells, widths, strict=True)]
    for height in range(max(map(len, wrapped))):
        line = Text(style=style)
        for lines, width in zip(wrapped, widths, strict=True):
            part = lines[height] if height < len(lines) else Text()
            line.append_text(part).append(" " * (width - part.cell_len) + _GAP)
        yield line


def _in_records(table: Table, console: Console) -> Iterator[Text]:
    """Yield a line or more for each cell that holds something, after its heading."""
    label_width = max(map(cell_len, table.headings)) + len(": ")
    for number, row in enumerate(table.rows):
        if number:
            yield Text()
        for heading, cell in zip(table.headings, row, strict=True):
            if cell:
                yield from _field(heading, cell, label_width, console)


def _field(heading: str, cell: str, label_width: int, console: Console) -> Iterator[Text]:
    """Yield one cell beside its heading, or below it where a word is too wide for that."""
    label = Text(f"{heading}:", style="bold")
    indent, room = label_width, console.width - label_width
    if _longest_word([cell]) > room:
        yield label
        label, indent = Text(), len(_GAP)
        room = console.width - indent
    for line in _wrapped(cell, room, console):
        yield label + Text(" " * (indent - label.cell_len)) + line
        label = Text()
