"""The layout of a PDF's page: tables with and without lines, headings, and words that were lost."""

import documents_pdf as pdf
import pytest
from liteparse import (
    AnnotationRect,
    LayoutBlock,
    LayoutCell,
    ParsedPage,
    TextItem,
    VectorGraphics,
    VectorLine,
)

from gateway_documents.child import libraries, parsing
from gateway_documents.child.pdf import pdf_reader
from gateway_documents.child.pdf.layout import (
    grids,
    headings,
    heads,
    loose,
    plain,
    rules,
    spaces,
    styles,
)

BLACK = (0.0, 0.0, 0.0)
REGULAR, BOLD = "Harbour-Regular", "Harbour-Bold"


@pytest.fixture(scope="module", autouse=True)
def warm():
    libraries.load_lazy_parts()


def parsed(*pages):
    return "\n\n".join(parsing.parse("pdf", pdf.write(pages)).pages)


def cells(page, rows, lefts=(60, 240, 320, 400), top=700, height=36):
    """Draw cells: a text, or lines of one; None belongs to the cell before it."""
    for row, texts in enumerate(rows):
        y = top - height * (row + 1)
        for column, text in enumerate(texts):
            if text is None:
                continue
            behind = column + 1
            while behind < len(texts) and texts[behind] is None:
                behind += 1
            page.frame(lefts[column], y, lefts[behind] - lefts[column], height, BLACK)
            for line, part in enumerate(text.split("\n")):
                page.text(lefts[column] + 4, y + height - 14 - 12 * line, part)


def rows_of(markdown):
    lines = [line for line in markdown.split("\n") if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def box(left, top, width, height):
    return AnnotationRect(left, top, width, height)


def item(text, left, top, font=REGULAR, size=10.0):
    return TextItem(text, left, top, 5.0 * len(text), size, font_name=font, font_size=size)


def page_of(*items, lines=()):
    return ParsedPage(
        1, 600, 800, "", text_items=list(items), vector_graphics=VectorGraphics([], list(lines))
    )


def table_of(*rows, top=100.0, pitch=12.0):
    """Return a table without lines, whose rows are `pitch` apart; a number moves the next row."""
    found, y = [], top
    for row in rows:
        if isinstance(row, int):
            y += row
            continue
        found.append(
            [
                LayoutCell(text, box(60 + 120 * at, y, 100, 10) if text else None)
                for at, text in enumerate(row)
            ]
        )
        y += pitch
    return LayoutBlock(kind="table", bbox=box(60, top, 500, y - top), rows=found)


def texts(block):
    return [[cell.text for cell in row] for row in block.rows]


def test_a_cell_of_several_lines_is_one_row():
    page = pdf.Page()
    cells(
        page,
        [
            ["Party", "Votes", "Seats"],
            ["Party of the Harbour\nand of the North", "1,200", "3"],
            ["Party of Coffee", "800", "2"],
        ],
    )
    assert rows_of(parsed(page)) == [
        ["Party", "Votes", "Seats"],
        ["---", "---", "---"],
        ["Party of the Harbour and of the North", "1,200", "3"],
        ["Party of Coffee", "800", "2"],
    ]


def test_a_merged_cell_leaves_the_cells_that_it_covers_empty():
    page = pdf.Page()
    cells(
        page,
        [
            ["Party", "Registered on 7 March", None],
            ["", "Communes", "Candidates"],
            ["Harbour", "12", "300"],
            ["Coffee", "9", "210"],
        ],
    )
    assert rows_of(parsed(page))[0] == ["Party", "Registered on 7 March", ""]
    assert ["", "Communes", "Candidates"] in rows_of(parsed(page))


def test_a_word_broken_at_the_end_of_a_cells_line_is_joined():
    page = pdf.Page()
    cells(page, [["Term", "Meaning", "No"], ["a regis-\ntration", "a list", "1"]])
    assert ["a registration", "a list", "1"] in rows_of(parsed(page))


def test_every_other_row_drawn_is_one_table():
    page = pdf.Page()
    for row in range(5):
        y = 700 - 20 * row
        if row % 2 == 0:
            for left, right in ((60, 240), (240, 400)):
                page.box(left, y - 6, right - left, 20, (0.8, 0.9, 1.0))
        page.text(64, y, f"Harbour {row}")
        page.text(244, y, f"{row} cups")
    assert len([row for row in rows_of(parsed(page)) if row[0].startswith("Harbour")]) == 5
    assert parsed(page).count("---") == 2


def test_a_frame_around_a_text_is_no_table():
    page = pdf.Page()
    page.frame(60, 500, 300, 200, BLACK)
    page.text(70, 650, "A notice in a frame, in two lines,")
    page.text(70, 635, "that is read as a paragraph.")
    assert "|" not in parsed(page)


def test_words_that_cross_a_line_are_no_cells():
    page = pdf.Page()
    for row in range(3):
        page.frame(60, 700 - 30 * row, 100, 30, BLACK)
        page.frame(160, 700 - 30 * row, 100, 30, BLACK)
        page.text(64, 710 - 30 * row, "incomprehensibilities-of-the-harbour-and-of-coffee cup")
    assert "incomprehensibilities-of-the-harbour-and-of-coffee cup" in parsed(page)


def test_a_drawing_of_many_lines_has_no_grids():
    lines = [
        VectorLine(at, 0.0, at, 1200.0, True, 1.0, "ff000000", False, None)
        for at in range(0, 1200, 5)
    ]
    across = [
        VectorLine(0.0, at, 1200.0, at, True, 1.0, "ff000000", False, None)
        for at in range(0, 1200, 5)
    ]
    assert rules.find_grids(page_of(lines=[*lines, *across]), 10) == []
    assert len(rules.find_grids(page_of(lines=[*lines[:3], *across[:3]]), 10)) == 1


def test_a_grid_that_would_lose_words_is_ignored():
    items = [item(text, 20 + 100 * (at % 2), 20 + 20 * (at // 2)) for at, text in enumerate("abcd")]
    lines = [
        VectorLine(at, 10.0, at, 60.0, True, 1.0, "ff000000", False, None)
        for at in (10.0, 100.0, 200.0)
    ]
    lines += [
        VectorLine(10.0, at, 200.0, at, True, 1.0, "ff000000", False, None)
        for at in (10.0, 35.0, 60.0)
    ]
    block = LayoutBlock(kind="paragraph", text="a b c d", bbox=box(20, 20, 110, 35))
    page = page_of(*items, lines=lines)
    assert texts(grids.replace_tables(page, [block])[0]) == [["a", "b"], ["c", "d"]]
    beyond = LayoutBlock(kind="paragraph", text="a b c d more", bbox=box(20, 20, 110, 75))
    page.text_items.append(item("more", 20, 80))
    assert grids.replace_tables(page, [beyond]) == [beyond]


def test_the_text_behind_a_heading_is_a_paragraph():
    page = page_of(
        item("Prepare your content", 60, 100, BOLD),
        item("Collect the key points of the harbour.", 60, 114),
        *(
            item("An ordinary sentence of the body, in its style.", 60, 200 + 14 * n)
            for n in range(9)
        ),
    )
    block = LayoutBlock(
        kind="heading",
        level=2,
        text="Prepare your content Collect the key points of the harbour.",
        bbox=box(60, 100, 300, 26),
    )
    found = headings.refine(page, [block], styles.body_style([page]))
    assert [(one.kind, one.text) for one in found] == [
        ("heading", "Prepare your content"),
        ("paragraph", "Collect the key points of the harbour."),
    ]


@pytest.mark.parametrize(
    ("text", "below", "kind"),
    [
        ("Waste fees. At this level, only 5", "harbours collect a fee.", "paragraph"),
        ("Waste fees", "The harbours collect a fee.", "heading"),
        ("2. Waste fees", "they are collected.", "heading"),
        ("85 4 96.8 82", "The axis of a chart.", "paragraph"),
        ("Ada One, Bo Two, Cy Three, Di Four, Ed Five", "University", "paragraph"),
    ],
)
def test_headings_are_told_from_other_bold_lines(text, below, kind):
    page = page_of(item(text, 60, 100, BOLD, 12.0), *(item("body " * 9, 60, 300) for _ in range(5)))
    blocks = [
        LayoutBlock(kind="heading", level=1, text=text, bbox=box(60, 100, 5 * len(text), 12)),
        LayoutBlock(kind="paragraph", text=below, bbox=box(60, 114, 300, 10)),
    ]
    found = headings.refine(page, blocks, styles.body_style([page]))
    assert found[0].kind == kind
    assert " ".join(one.text for one in found) == f"{text} {below}"


def test_spaces_within_a_word_are_closed():
    text = "CALIFORNIA\r\n17.0% of 1216 yolk, a CHAPTER of the harbour"
    assert spaces.close("# CAL IFORN IA", text) == "# CALIFORNIA"
    assert spaces.close("| 17 .0% | x |", text) == "| 17.0% | x |"
    assert spaces.close("C HA PT E R of", text) == "CHAPTER of"


def test_words_of_the_text_are_not_joined():
    text = "the ofthe of harbour cafe"
    assert spaces.close("of the harbour", text) == "of the harbour"
    assert spaces.close("harb our", "harbour") == "harb our"


def test_a_page_whose_words_were_lost_is_its_plain_text():
    page = pdf.Page()
    page.text(60, 700, "The harbour", size=18, font=pdf.BOLD)
    for line in range(8):
        page.text(60, 650 - 14 * line, f"Line {line} of a paragraph that is as long as the others.")
    data = pdf.write([page])
    found = pdf_reader.read(data).pages[0]
    whole = "".join(
        f"Line {line} of a paragraph that is as long as the others. " for line in range(8)
    )
    restored = plain.restore("# The harbour\n\nLine of", f"The harbour {whole}", found, data)
    assert restored == f"# The harbour\n\n{whole.strip()}"
    assert plain.restore(whole, whole, found, data) == whole


def test_text_outside_of_the_page_is_not_restored():
    page = pdf.Page()
    page.text(60, 700, "The visible line of this page.")
    page.text(60, 2000, "A line above the page, which no reader sees, of many more words.")
    data = pdf.write([page])
    found = pdf_reader.read(data).pages[0]
    text = "The visible line of this page. A line above the page, which no reader sees."
    shown = "The visible line of this page."
    assert plain.restore(shown, text, found, data) == shown


def test_columns_of_sentences_are_no_table():
    table = table_of(
        ["Fast", "Simple"],
        ["Search returns all the texts", "By a single request to the"],
        ["that are like the question", "gateway the documents are"],
        ["of the buyer", "found"],
    )
    found = loose.mend(page_of(), [table])
    assert [one.kind for one in found] == ["heading", "heading"]
    assert found[0].text.endswith("all the texts that are like the question of the buyer")


def test_a_justified_paragraph_is_no_table():
    table = table_of(["kind of", "harbour", "than"], ["we do", "about", "coffee"])
    table.rows[1][1].bbox = box(165, 112, 80, 10)
    found = loose.mend(page_of(), [table])
    assert [(one.kind, one.text) for one in found] == [
        ("paragraph", "kind of harbour than we do about coffee")
    ]


@pytest.mark.parametrize(
    "rows",
    [
        (("apple", "manzana", "pomme"), ("house", "casa", "maison"), ("dog", "perro", "chien")),
        (("data export", "no", "yes"), ("phone support", "no", "yes"), ("users", "yes", "yes")),
    ],
)
def test_a_table_of_small_letters_in_aligned_columns_stays(rows):
    table = table_of(*rows)
    assert texts(loose.mend(page_of(), [table])[0]) == [list(row) for row in rows]


@pytest.mark.parametrize(
    "rows",
    [
        (
            ("annual maintenance of the heating", "120.00 EUR"),
            ("cleaning of all windows and doors", "80.00 EUR"),
            ("repair of broken roof tiles", "300.00 EUR"),
            ("garden work in spring and autumn", "95.00 EUR"),
        ),
        (
            ("API", "interface that programs use"),
            ("CSV", "text file of values with commas"),
            ("PDF", "file format of printed pages"),
        ),
    ],
)
def test_a_table_with_sentences_in_only_one_column_stays(rows):
    table = table_of(*rows)
    assert texts(loose.mend(page_of(), [table])[0]) == [list(row) for row in rows]


def test_rows_that_are_wider_apart_than_lines_are_no_columns_of_sentences():
    rows = [["cleaning of the large windows", "by two people in one afternoon"]] * 4
    assert texts(loose.mend(page_of(), [table_of(*rows, pitch=20.0)])[0]) == rows


def test_lines_of_one_cell_are_one_row():
    table = table_of(["Slope", "Length"], ["(%)", ""], 14, ["1 to 2", "400"], 14, ["3 to 5", "300"])
    found = loose.mend(page_of(), [table])[0]
    assert texts(found) == [["Slope (%)", "Length"], ["1 to 2", "400"], ["3 to 5", "300"]]


def test_rows_of_a_table_stay_rows():
    table = table_of(["Model", "Size"], 14, ["A", "52K"], ["B", "100K"], ["C", "3K"])
    assert texts(loose.mend(page_of(), [table])[0]) == texts(table)


def test_a_title_in_each_cell_of_the_head_is_parted():
    title = "Key functions by service"
    table = table_of([f"{title} Stage", f"{title} Name", "Benefit"], ["1", "Start", "2"])
    found = loose.mend(page_of(item(title, 60, 101)), [table])
    assert found[0].text == title
    assert texts(found[1]) == [["Stage", "Name", "Benefit"], ["1", "Start", "2"]]


def test_equal_words_in_a_head_stay():
    head = ["Number of the cups", "Number of the jars"]
    items = [item(text, 60 + 120 * at, 101) for at, text in enumerate(head)]
    table = table_of(head, ["1", "2"])
    assert texts(loose.mend(page_of(*items), [table])[0]) == [head, ["1", "2"]]


def test_a_line_above_the_columns_is_the_head():
    table = table_of(["OCR", "12", "3"], ["Search", "9", "1"])
    line = LayoutBlock(kind="paragraph", text="Name Cups Jars", bbox=box(60, 86, 400, 10))
    items = [item(text, 62 + 120 * at, 86) for at, text in enumerate(("Name", "Cups", "Jars"))]
    found = heads.attach(page_of(*items), [line, table])
    assert [texts(one) for one in found] == [
        [["Name", "Cups", "Jars"], ["OCR", "12", "3"], ["Search", "9", "1"]]
    ]


def test_a_sentence_above_a_table_is_no_head():
    table = table_of(["OCR", "12", "3"], ["Search", "9", "1"])
    line = LayoutBlock(kind="paragraph", text="The cups of a day.", bbox=box(60, 86, 400, 10))
    assert heads.attach(page_of(item("The cups of a day.", 62, 86)), [line, table]) == [line, table]
