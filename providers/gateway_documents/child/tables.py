"""Writes grids of cells as Markdown tables."""

from collections.abc import Iterable, Sequence

from gateway_documents.child import escaping
from gateway_documents.errors import Unreadable

# Cells of the largest table, including empty ones; writing it takes ten seconds.
MAX_CELLS = 5_000_000

Row = Sequence[str]
"""The texts of a row's cells; rows may have different lengths."""


def cell_text(value: str) -> str:
    """Return a text as the Markdown of a cell, which shows it as it is."""
    return cell_markdown(escaping.inline(value.strip()))


def cell_markdown(markdown: str) -> str:
    """Return Markdown on one line, with its pipes escaped; its line breaks become `<br>`."""
    lines = (" ".join(line.split()) for line in markdown.splitlines())
    return "<br>".join(line for line in lines if line).replace("|", "\\|")


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
