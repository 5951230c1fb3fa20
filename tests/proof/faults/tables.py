"""Reads the tables of docs/faults.md: every cell is a case with its expected end."""

from pathlib import Path

import attrs

_PAGE = Path(__file__).parents[3] / "docs" / "faults.md"
# Between calls, or faults, with the same end.
_AND = "; "


@attrs.frozen(kw_only=True)
class Table:
    """One table under its headings."""

    chapter: str  # "X402, one endpoint"
    run: str  # "the gateway submits"
    rows: dict[str, dict[str, str]]  # call: fault: end; cells without a case are left out

    @property
    def cells(self) -> list[tuple[str, str, str]]:
        return [
            (call, fault, end) for call, cells in self.rows.items() for fault, end in cells.items()
        ]


def words(chapter: str) -> set[str]:
    """Return the terms that a chapter explains: the bold words that begin its list entries."""
    lines = _PAGE.read_text().partition(f"## {chapter}\n")[2].partition("\n## ")[0].splitlines()
    entries = [line.partition(":")[0] for line in lines if line.startswith("- **")]
    return {word for entry in entries for word in entry.split("**")[1::2]}


def tables() -> list[Table]:
    """Return every table of the page, in order."""
    found, chapter, run, lines = [], "", "", []
    for line in [*_PAGE.read_text().splitlines(), ""]:
        if line.startswith("|"):
            lines.append(line)
            continue
        if lines:
            found.append(Table(chapter=chapter, run=run, rows=_rows(lines)))
            lines = []
        if line.startswith("## "):
            chapter, run = line[3:], ""
        elif line.startswith("### "):
            run = line[4:]
    return found


def _rows(lines: list[str]) -> dict[str, dict[str, str]]:
    _, *headings = _cells(lines[0])
    rows = {}
    for line in lines[2:]:
        calls, *ends = _cells(line)
        assert len(ends) == len(headings), line
        cells = {
            fault: end
            for heading, end in zip(headings, ends, strict=True)
            if end
            for fault in heading.split(_AND)
        }
        for call in calls.split(_AND):
            assert call not in rows, line
            rows[call.strip("`")] = cells
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]
