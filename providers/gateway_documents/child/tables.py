"""Writes grids of cells as Markdown tables."""

import re
from collections.abc import Iterable, Sequence

from gateway_documents.errors import Unreadable

# Cells of the largest table, including empty ones; writing it takes ten seconds.
MAX_CELLS = 5_000_000
_PIPE = re.compile(r"(?<!\\)\|")

Row = Sequence[str]
"""The texts of a row's cells; rows may have different lengths."""


def cell_text(value: str) -> str:
    """Return a text on one line, with its pipes escaped; empty lines of it become one `<br>`."""
    lines = (" ".join(line.split()) for line in value.strip().splitlines())
    return _PIPE.sub(r"\\|", "<br>".join(line for line in lines if line))


def to_markdown(rows: Iterable[Row], *, keep_columns: bool = False) -> str:
    """Return rows as a table without empty rows and columns; the first row is its head.

    With `keep_columns`, empty columns stay. Raises `Unreadable` for more than 5 million cells.
    """
    filled = [row for row in rows if any(row)]
    if not filled:
        return ""
    width = max(map(len, filled))
    columns = range(width) if keep_columns else _used_columns(filled)
    if len(filled) * len(columns) > MAX_CELLS:
        raise Unreadable(
            f"The file is too large: a table of {len(filled):,} rows and {len(columns):,} columns."
        )
    lines = [_line(row[at] if at < len(row) else "" for at in columns) for row in filled]
    lines.insert(1, _line("---" for _ in columns))
    return "\n".join(lines)


def _used_columns(rows: Sequence[Row]) -> list[int]:
    return sorted({at for row in rows for at, cell in enumerate(row) if cell})


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
