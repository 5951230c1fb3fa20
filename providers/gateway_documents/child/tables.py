"""Writes grids of cells as Markdown tables, and reads such tables."""

import re
from collections.abc import Iterable, Sequence

from gateway_documents.child import escaping
from gateway_documents.errors import Unreadable

# Cells of the largest table, including empty ones; writing it takes ten seconds.
MAX_CELLS = 5_000_000
# Cells that `find` returns.
MAX_FOUND_CELLS = 1_000_000
_PIPE = re.compile(r"(?<!\\)\|")
_BREAK = re.compile(r"(?<!\\)<br>")
_RULE = re.compile(r"\|(?: *:?-+:? *\|)+")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")

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


def find(markdown: str, limit: int = MAX_FOUND_CELLS) -> tuple[list[list[list[str]]], bool]:
    """Return the cells of each table in a text by row, the head first, and whether all fit.

    Rows after the limit of cells are left out.
    """
    found: list[list[list[str]]] = []
    above, is_inside, is_code = "", False, False
    for line in map(str.strip, markdown.splitlines()):
        is_code ^= bool(_FENCE.match(line))
        is_row = line.startswith("|") and not is_code
        is_head = is_row and not is_inside and bool(above) and is_rule(line)
        if is_head or (is_row and is_inside):
            row = above if is_head else line
            limit -= max(row.count("|") - row.endswith("|"), 1)
            if limit < 0:
                return found, False
            if is_head:
                found.append([])
            found[-1].append(cells(row))
        is_inside = is_row and (is_inside or is_head)
        above = line if is_row else ""
    return found, True


def is_rule(line: str) -> bool:
    """Whether a line separates a table's head from its body."""
    return bool(_RULE.fullmatch(line))


def cells(row: str) -> list[str]:
    """Return the texts of a row's cells, as they were before `cell_text`."""
    inner = row.strip().removeprefix("|").removesuffix("|")
    if "\\" not in inner and "<" not in inner:
        # Most rows: a large file has a million of them.
        return [part.strip() for part in inner.split("|")]
    parts = (_BREAK.sub("\n", part.strip()) for part in _PIPE.split(inner))
    return [escaping.shown(part) for part in parts]


def _used_columns(rows: Sequence[Row]) -> list[int]:
    return sorted({at for row in rows for at, cell in enumerate(row) if cell})


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
