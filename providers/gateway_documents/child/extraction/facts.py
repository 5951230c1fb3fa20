"""Finds title, headings, labelled values, tables, dates and amounts in Markdown, by fixed rules."""

import re
from collections.abc import Iterable, Iterator

import attrs

from gateway_documents.child import escaping, tables

# Per document. Each rule scans a line once, so a document of this length takes a few seconds.
MAX_CHARS = 500_000
_MAX_LINE_CHARS = 2_000
_MAX_FINDS = 1_000
# The number of columns of a table whose rows are labels with their values.
_PAIR = 2

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_MONTH = "|".join(_MONTHS)
_DATE = re.compile(
    r"\b(?P<y1>\d{4})-(?P<m1>\d\d)-(?P<d1>\d\d)\b"
    rf"|\b(?P<d2>\d{{1,2}})\.? (?P<m2>{_MONTH}) (?P<y2>\d{{4}})\b"
    rf"|\b(?P<m3>{_MONTH}) (?P<d3>\d{{1,2}}),? (?P<y3>\d{{4}})\b"
)
_MONEY = r"[$€£]|USDC?|EUR|GBP"
_AMOUNT = re.compile(
    rf"(?:{_MONEY}) ?-?\d[\d,.]{{0,20}}(?<=\d)|\d[\d,.]{{0,20}} ?(?:{_MONEY})(?!\w)"
)
_NUMBER = re.compile(r"-?\d[\d,]{0,20}(?:\.\d{1,12})?")
_HEADING = re.compile(r"(#{1,6}) +(.+)")
_BOLD_LABEL = re.compile(r"\*\*([^*:]{1,60}):\*\*|\*\*([^*:]{1,60})\*\*:")
_LABEL = re.compile(r"(?:[-*+] )?([^\W\d_][^:|]{0,39}): (?=\S)")
_TOTAL = re.compile(rf"(?:#{{1,6}} )?([^\W\d_][^\d|]{{0,38}}?) ((?:{_MONEY}) ?\d[\d,.]{{0,20}})")


@attrs.define
class Facts:
    """The facts in a document, in order."""

    title: str | None = None
    headings: list[str] = attrs.field(factory=list)
    values: dict[str, str] = attrs.field(factory=dict)
    """The first value of each label, such as `Due: 30 October 2026`."""
    dates: list[str] = attrs.field(factory=list)
    amounts: list[str] = attrs.field(factory=list)
    tables: list[list[dict[str, str]]] = attrs.field(factory=list)
    """Rows by column name."""


def find_facts(markdown: str) -> Facts:
    """Return the facts in the first 500,000 characters of a document."""
    stripped = (line.strip() for line in markdown[:MAX_CHARS].splitlines())
    lines = [line[:_MAX_LINE_CHARS] for line in stripped if line]
    found = Facts(tables=[rows for rows in list(_tables(lines)) if rows])
    for line in lines:
        if heading := _HEADING.fullmatch(line):
            _add(found.headings, [escaping.shown(heading[2])])
        for label, value in _labelled(line):
            if len(found.values) < _MAX_FINDS:
                found.values.setdefault(escaping.shown(label), escaping.shown(value))
        _add(found.dates, (match[0] for match in _DATE.finditer(line)))
        _add(found.amounts, (match[0] for match in _AMOUNT.finditer(line)))
    largest = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    title = next(iter([*largest, *found.headings, *lines[:1]]), None)
    found.title = None if title is None else escaping.shown(title)
    return found


def _add(finds: list[str], more: Iterable[str]) -> None:
    finds.extend(more)
    del finds[_MAX_FINDS:]


def _labelled(line: str) -> Iterator[tuple[str, str]]:
    labels = list(_BOLD_LABEL.finditer(line))
    ends = [*(label.start() for label in labels[1:]), len(line)]
    for label, end in zip(labels, ends, strict=False):
        if value := line[label.end() : end].strip(" *"):
            yield (label[1] or label[2]).strip(), value
    if line.startswith("|"):
        yield from _pair_of_row(line)
        return
    if labels:
        return
    if begin := _LABEL.match(line):
        yield begin[1].strip("* "), line[begin.end() :].strip("* ")
    elif total := _TOTAL.fullmatch(line):
        yield total[1].strip("*# "), total[2]


def _pair_of_row(line: str) -> Iterator[tuple[str, str]]:
    """Yield the label and value of a row with these two cells only, such as a total."""
    cells = _cells(line)
    filled = [cell for cell in cells if cell]
    if len(filled) == _PAIR and not tables.is_rule(line):
        yield filled[0].rstrip(": "), filled[1]


def _is_total(cells: list[str]) -> bool:
    """Whether a row of more columns has only a label, behind its first cell, and a last value."""
    return (
        len(cells) > _PAIR and not cells[0] and sum(map(bool, cells[1:-1])) == 1 == bool(cells[-1])
    )


def _tables(lines: list[str]) -> Iterator[list[dict[str, str]]]:
    """Yield tables, to which rows are added later."""
    above, left = "", _MAX_FINDS
    head: list[str] = []
    rows: list[dict[str, str]] = []
    for line in lines:
        if above.startswith("|") and tables.is_rule(line):
            head, rows = _cells(above), []
            yield rows
        elif not line.startswith("|"):
            head = []
        elif head and left and not _is_total(_cells(line)):
            rows.append(dict(zip(head, _cells(line), strict=False)))
            left -= 1
        above = line


def _cells(row: str) -> list[str]:
    return [cell.strip(" *") for cell in tables.cells(row)]


def to_number(text: str) -> float | int | None:
    """Return the first number in a text, with commas as thousands separators, or None."""
    found = _NUMBER.search(text)
    if found is None:
        return None
    digits = found[0].replace(",", "")
    return float(digits) if "." in digits else int(digits)


def to_date(text: str) -> str | None:
    """Return the first date in a text as `2026-10-30`, or None."""
    found = _DATE.search(text)
    if found is None:
        return None
    parts = {name[0]: value for name, value in found.groupdict().items() if value}
    month = parts["m"] if parts["m"].isdigit() else str(_MONTHS.index(parts["m"]) + 1)
    return f"{parts['y']}-{int(month):02}-{int(parts['d']):02}"
