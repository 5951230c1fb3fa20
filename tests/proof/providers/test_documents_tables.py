"""Tables of PDFs: rows of values without lines, their heads, and grids that draw few lines."""

import documents_pdf as pdf
import pytest
from liteparse import AnnotationRect, LayoutBlock, ParsedPage, VectorGraphics

from gateway_documents.child import libraries, parsing
from gateway_documents.child.lines import Box
from gateway_documents.child.pdf import turned_pages
from gateway_documents.child.pdf.layout import aligned, borderless

BLACK = (0.0, 0.0, 0.0)
LEFTS = (60, 240, 330, 420)


@pytest.fixture(scope="module", autouse=True)
def warm():
    libraries.load_lazy_parts()


def parsed(*pages):
    return "\n\n".join(parsing.parse("pdf", pdf.write(pages)).pages)


def rows_of(markdown):
    lines = [line for line in markdown.split("\n") if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if row[0] != "---"]


def lines_of(page, rows, lefts=LEFTS, top=700, pitch=14):
    """Write rows of texts; None leaves a cell out, a number moves the next row down."""
    y = top
    for row in rows:
        if isinstance(row, int):
            y -= row
            continue
        for left, text in zip(lefts, row, strict=False):
            if text is not None:
                page.text(left, y, text)
        y -= pitch


def rule(page, left, right, y):
    page.frame(left, y, right - left, 0.5, BLACK)


PORTS = [
    ["Port", "Ships", "Tons", "Share"],
    ["Bergen", "1,204", "88,100", "12.5%"],
    ["Ålesund", "860", "42,300", "6.0%"],
    ["Tromsø", "412", "19,750", "2.8%"],
    ["Bodø", "77", "3,010", "0.4%"],
]


def test_rows_of_values_are_a_table_with_their_head():
    page = pdf.Page()
    lines_of(page, PORTS)
    assert rows_of(parsed(page)) == PORTS


def test_labels_of_groups_stay_in_the_table():
    rows = [PORTS[0], ["North"], *PORTS[1:3], 10, ["South"], *PORTS[3:]]
    page = pdf.Page()
    lines_of(page, rows)
    found = rows_of(parsed(page))
    assert found == [
        PORTS[0],
        ["North", "", "", ""],
        *PORTS[1:3],
        ["South", "", "", ""],
        *PORTS[3:],
    ]
    assert "#" not in parsed(page)


def test_a_label_of_two_lines_is_one_cell():
    page = pdf.Page()
    lines_of(
        page, [*PORTS[:3], ["Harbours of the outer"], ["islands and the rest", "9", "8", "0.1%"]]
    )
    assert rows_of(parsed(page))[-1] == [
        "Harbours of the outer islands and the rest",
        "9",
        "8",
        "0.1%",
    ]


def test_a_head_of_two_lines_is_one_row():
    page = pdf.Page()
    lines_of(page, [[None, "Ships", "Tons of", "Share of"]], pitch=11)
    lines_of(page, [["Port", "a year", "cargo", "all"]], top=689)
    lines_of(page, PORTS[1:], top=672)
    assert rows_of(parsed(page))[0] == ["Port", "Ships a year", "Tons of cargo", "Share of all"]


def test_a_head_over_several_columns_has_a_row_of_its_own():
    page = pdf.Page()
    page.text(280, 714, "2025")
    lines_of(page, PORTS)
    page.text(375, 714, "2026")
    assert rows_of(parsed(page))[:2] != PORTS[:2]


def test_a_rule_below_a_head_shows_its_columns():
    page = pdf.Page()
    page.text(330, 716, "Traffic")
    rule(page, 240, 450, 712)
    lines_of(page, PORTS)
    rule(page, 60, 450, 730)
    rule(page, 60, 450, 696)
    assert rows_of(parsed(page)) == [
        ["Port", "Traffic", "", ""],
        ["", *PORTS[0][1:]],
        *PORTS[1:],
    ]


def test_a_price_list_is_read_by_rows():
    page = pdf.Page()
    prices = [["Coffee", "2.40"], ["Tea with lemon", "1.90"], ["Water", "1.10"], ["Cake", "3.20"]]
    page.text(60, 730, "Prices of the harbour cafe")
    lines_of(page, prices, lefts=(60, 300))
    assert rows_of(parsed(page)) == prices


@pytest.mark.parametrize("left", [60, 330])
def test_a_table_beside_running_text_is_read(left):
    page = pdf.Page()
    text = [
        "The harbours of the north have",
        "grown for years, and the ships",
        "that call there are larger than",
    ]
    text += [
        "those of the south, whose quays",
        "were built when cargo came in",
        "barrels and on small sailing",
    ]
    for number, line in enumerate(text):
        page.text(390 - left, 700 - 14 * number, line)
    lines_of(page, [[row[0], row[1]] for row in PORTS], lefts=(left, left + 120))
    found = parsed(page)
    assert rows_of(found) == [[row[0], row[1]] for row in PORTS]
    assert "grown for years, and the ships that call there" in found


def test_text_in_columns_with_numbers_is_no_table():
    page = pdf.Page()
    left = [
        "In 1998 the harbour had 12 quays",
        "and in 2004 it had 15 of them,",
        "which was more than the town",
        "had asked for in its plans",
    ]
    right = [
        "and a third of the 900 ships",
        "that came in 2005 carried fish",
        "from the north, while the rest",
        "carried timber and some wool",
    ]
    for number, pair in enumerate(zip(left, right, strict=True)):
        page.text(60, 700 - 14 * number, pair[0])
        page.text(320, 700 - 14 * number, pair[1])
    assert rows_of(parsed(page)) == []


def test_a_table_of_contents_is_no_table():
    page = pdf.Page()
    lines_of(
        page,
        [["Introduction", "3"], ["Harbours", "7"], ["Ships", "12"], ["Index", "40"]],
        lefts=(60, 480),
    )
    assert rows_of(parsed(page)) == []


def test_two_rows_are_a_table_if_head_and_rows_are_full():
    page = pdf.Page()
    lines_of(page, PORTS[:2])
    assert rows_of(parsed(page)) == PORTS[:2]


def test_stacked_lines_of_a_drawn_row_are_rows():
    page = pdf.Page()
    for left, right in ((60, 240), (240, 330), (330, 420), (420, 500)):
        page.frame(left, 690, right - left, 20, BLACK)
        page.frame(left, 620, right - left, 70, BLACK)
    lines_of(page, PORTS[:1], lefts=[left + 4 for left in LEFTS], top=696)
    lines_of(page, PORTS[1:], lefts=[left + 4 for left in LEFTS], top=676)
    assert rows_of(parsed(page)) == PORTS


def test_tight_drawn_rows_stay_rows():
    page = pdf.Page()
    for number, row in enumerate(PORTS):
        for at, text in enumerate(row):
            page.frame(LEFTS[at], 700 - 10.5 * number, 90 if at else 180, 10.5, BLACK)
            page.text(LEFTS[at] + 4, 702 - 10.5 * number, text)
    assert rows_of(parsed(page)) == PORTS


def test_words_without_a_place_on_the_page_end_nothing():
    blocks = [LayoutBlock(kind="paragraph", text="Quay", bbox=AnnotationRect(60, 100, 50, 10))]
    page = ParsedPage(1, 600, 800, "", text_items=[], vector_graphics=VectorGraphics([], []))
    assert borderless.replace_blocks(page, blocks) == blocks


def test_a_page_of_only_a_table_is_read():
    page = pdf.Page()
    lines_of(page, PORTS[1:])
    assert rows_of(parsed(page)) == PORTS[1:]


@pytest.mark.parametrize("angle", [90, 270])
def test_a_table_turned_on_its_page_is_read(angle):
    page = pdf.Page()
    lines_of(page, PORTS)
    turn = "0 1 -1 0 800 0 cm" if angle == 90 else "0 -1 1 0 -200 600 cm"
    page.operators.insert(0, turn)
    assert rows_of(parsed(page)) == PORTS


def test_an_empty_page_is_not_turned():
    turned = ParsedPage(1, 600, 800, "", text_items=[])
    assert turned_pages.find([turned]) == {}


ADDRESSES = [("Customer: Smith Ltd", "Date: 12.03.2026"), ("4 High Street", "Due: 11.04.2026")]
INVOICE = [
    ["Pos", "Description", "Hours", "Total"],
    ["1", "Advice in the harbour and preparation", "8", "960.00"],
    ["2", "Licence for a year", "1", "499.00"],
    ["3", "Support", "12", "1,020.00"],
]


@pytest.mark.parametrize("sentence", ["For our services we charge as follows.", ""])
def test_lines_above_an_invoice_are_no_head(sentence):
    page = pdf.Page()
    lines_of(page, ADDRESSES, lefts=(60, 380), top=760)
    page.text(60, 725, sentence)
    lines_of(page, INVOICE, lefts=(60, 90, 330, 420), top=732 if not sentence else 705)
    markdown = parsed(page)
    assert rows_of(markdown) == INVOICE
    assert sentence in markdown


def test_a_table_below_lines_that_each_start_a_column_is_read():
    page = pdf.Page()
    steps = 45
    for number in range(steps):
        page.text(60, 780 - 9 * number, "step", size=7)
        page.text(100 + 9 * number, 780 - 9 * number, str(number), size=7)
    lines_of(page, PORTS, top=300)
    markdown = parsed(page)
    assert rows_of(markdown)[-len(PORTS) :] == PORTS
    assert markdown.count("step") == steps


def test_a_table_below_text_with_numbers_in_columns_is_read():
    page = pdf.Page()
    lines = 30
    for number in range(lines):
        y = 780 - 14 * number
        page.text(60, y, "this label is a long piece of text going")
        page.text(330, y, str(number))
        page.text(420, y, "5")
    lines_of(page, PORTS, top=250)
    markdown = parsed(page)
    assert rows_of(markdown)[-len(PORTS) :] == PORTS
    assert markdown.count("this label") == lines


def test_many_tables_among_text_are_read():
    page = pdf.Page()
    rows = [["Oak", "3", "7"], ["Elm", "4", "9"], ["Ash", "5", "2"]]
    tables = 8
    for number in range(tables):
        top = 780 - 90 * number
        page.text(60, top, f"Part {number} of the report has prose that is in no table at all")
        lines_of(page, rows, lefts=(60, 240, 330), top=top - 26)
    markdown = parsed(page)
    assert rows_of(markdown) == rows * tables
    assert [line for line in markdown.split("\n") if line.startswith("Part")] == [
        f"Part {number} of the report has prose that is in no table at all"
        for number in range(tables)
    ]


def test_a_row_of_more_columns_than_a_table_has_keeps_its_words():
    columns = [aligned.Span(20.0 * at, 20.0 * at + 8) for at in range(101)]
    words = [
        Box(span.left, span.right, 10.0 * row, 10.0 * row + 8, str(row + at))
        for row in range(4)
        for at, span in enumerate(columns)
    ]
    assert [*aligned.find_groups(words)] == []
    ((group, above),) = aligned.find_groups(words[:100] + words[101:201] + words[202:302])
    assert [len(cells) for _, cells in group.rows] == [100] * 3
    assert above == []
