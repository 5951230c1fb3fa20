"""Tables of PDFs side by side, and rows that name a group of rows."""

import pytest
from documents_raw_pdf import raw_pdf, text

from gateway_documents.child import libraries, parsing

ROOMS = (("Room", "Size", "Rent"), ("A1", "20", "410"), ("A2", "35", "690"), ("A3", "50", "980"))
METERS = (("Meter", "Start", "End"), ("Gas", "118", "240"), ("Water", "55", "81"))
HEAD = ("Order Date", "Item Code", "Description", "Status", "Unit Cost", "Tax", "Total")
PLACES = (48, 108, 190, 300, 380, 460, 540)


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(*operators):
    return parsing.parse("pdf", raw_pdf(["\n".join(operators)])).pages[0]


def ruled(rows, left, top=700, width=70, height=20):
    """Return the operators of a table with lines around its cells."""
    right, below = left + width * len(rows[0]), top - height * len(rows)
    lines = [
        f"{left} {top - height * at} m {right} {top - height * at} l S"
        for at in range(len(rows) + 1)
    ]
    lines += [
        f"{left + width * at} {top} m {left + width * at} {below} l S"
        for at in range(len(rows[0]) + 1)
    ]
    cells = [
        text(left + width * column + 5, top - height * line - 14, cell, size=9)
        for line, row in enumerate(rows)
        for column, cell in enumerate(row)
    ]
    return "\n".join(("0.7 w", *lines, *cells))


def markdown(rows):
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], f"|{' --- |' * len(rows[0])}", *lines[1:]])


@pytest.mark.parametrize("gap", [12, 30, 70])
@pytest.mark.parametrize("second", [METERS, (*METERS, ("Power", "900", "1310"))])
def test_tables_side_by_side_are_two(gap, second):
    found = parsed(ruled(ROOMS, 50), ruled(second, 260 + gap))
    assert found == f"{markdown(ROOMS)}\n\n{markdown(second)}"


def test_three_tables_side_by_side():
    found = parsed(*(ruled(METERS, left, width=50) for left in (40, 220, 400)))
    assert found == "\n\n".join([markdown(METERS)] * 3)


def test_a_wide_empty_column_parts_no_table():
    rows = [(*row[:1], "", *row[1:]) for row in ROOMS]
    assert parsed(ruled(rows, 50, width=120)).count("\n| ---") == 1


def row(cells, height, places=PLACES):
    return "\n".join(
        text(place, height, cell, size=7) for place, cell in zip(places, cells, strict=True) if cell
    )


def orders(*, label="03/14/2024", more=()):
    items = [
        ("", "IC-1048", "WIDGET ASSEMBLY", "Shipped", "$482.40", "$9.75", "$491.15"),
        ("", "IC-1049", "BRACKET SET", "Shipped", "$0.00", "$0.00", "$0.00"),
        ("", "IC-1050", "CONTROL MODULE", "Open", "$31.22", "$0.00", "$36.22"),
    ]
    return [HEAD, (label, *[""] * 6), *items, *more]


def drawn(rows):
    return parsed(*(row(cells, 700 - 14 * at) for at, cells in enumerate(rows)))


def test_a_row_that_names_a_group_is_a_row_of_the_table():
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in drawn(orders()).split("\n")
    ]
    assert [lines[0], *lines[2:]] == [list(cells) for cells in orders()]


def test_several_groups_are_one_table():
    second = (
        ("03/15/2024", *[""] * 6),
        ("", "IC-1051", "PANEL", "Open", "$5.00", "$1.00", "$6.00"),
    )
    rows = orders(more=second)
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in drawn(rows).split("\n")]
    assert [lines[0], *lines[2:]] == [list(cells) for cells in rows]


def test_a_title_above_the_head_is_no_group():
    rows = [cells[1:] for cells in (HEAD, *orders()[2:])]
    title = text(48, 714, "Orders of March", size=7)
    found = parsed(title, *(row(cells, 700 - 14 * at, PLACES[1:]) for at, cells in enumerate(rows)))
    assert "Orders of March" in found.split("|")[0]
    assert found.count("\n| ---") == 1
