"""Tracked changes and wrappers of Word files: the result is the text that Word shows."""

import pytest
from documents_files import WORD, office
from documents_word import numbered, paragraph, run, table, word

from gateway_documents.child import libraries, parsing

MARKUP = "http://schemas.openxmlformats.org/markup-compatibility/2006"
SHAPES = "http://schemas.microsoft.com/office/word/2010/wordprocessingShape"
SPACES = f'xmlns:w="{WORD}" xmlns:mc="{MARKUP}" xmlns:wps="{SHAPES}" xmlns:odd="urn:odd"'
WRAPPERS = {
    "content control": '<w:sdt><w:sdtPr><w:tag w:val="a"/></w:sdtPr><w:sdtContent>{}'
    "</w:sdtContent></w:sdt>",
    "custom xml": '<w:customXml w:element="e"><w:customXmlPr/>{}</w:customXml>',
    "smart tag": '<w:smartTag w:element="e"><w:smartTagPr/>{}</w:smartTag>',
    "insertion": '<w:ins w:id="1" w:author="a">{}</w:ins>',
    "new place": '<w:moveTo w:id="1" w:author="a">{}</w:moveTo>',
    "direction": '<w:dir w:val="rtl">{}</w:dir>',
    "override": '<w:bdo w:val="rtl">{}</w:bdo>',
    "choice": '<mc:AlternateContent><mc:Choice Requires="wps">{}</mc:Choice><mc:Fallback/>'
    "</mc:AlternateContent>",
    "fallback": '<mc:AlternateContent><mc:Choice Requires="odd"><w:r><w:t>newer</w:t></w:r>'
    "</mc:Choice><mc:Fallback>{}</mc:Fallback></mc:AlternateContent>",
}
HIT = paragraph("Hit.")
DELETED_MARK = "<w:rPr><w:del/></w:rPr>"
GONE = "<w:del><w:r><w:delText>Gone.</w:delText></w:r></w:del>"


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def cell(content):
    return f"<w:tc>{content}</w:tc>"


def row(*cells):
    return f"<w:tr>{''.join(map(cell, cells))}</w:tr>"


def parsed(body):
    document = f"<w:document {SPACES}><w:body>{body}</w:body></w:document>"
    return parsing.parse("docx", office("word/document.xml", document)).pages[0]


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("name", WRAPPERS)
@pytest.mark.parametrize(
    ("place", "plain"),
    {
        "a run": (paragraph("One. ") + "<w:p>{}</w:p>", run("Hit.")),
        "a paragraph": (paragraph("One.") + "{}" + paragraph("Two."), HIT),
        "a paragraph of a cell": (f"<w:tbl>{row(paragraph('One.') + '{}')}</w:tbl>", HIT),
        "a cell": (f"<w:tbl><w:tr>{cell(paragraph('One.'))}{{}}</w:tr></w:tbl>", cell(HIT)),
        "a row": (f"<w:tbl>{row(paragraph('One.'))}{{}}{row(HIT)}</w:tbl>", row(HIT)),
        "a table": ("{}" + paragraph("Two."), f"<w:tbl>{row(HIT)}</w:tbl>"),
    }.values(),
)
def test_a_wrapper_changes_nothing(name, depth, place, plain):
    wrapped = plain
    for _ in range(depth):
        wrapped = WRAPPERS[name].replace("{}", wrapped)
    text = parsed(place.replace("{}", wrapped))
    assert text == parsed(place.replace("{}", plain))
    assert "Hit." in text


def test_rows_in_a_content_control_within_another():
    control = WRAPPERS["content control"]
    texts = ("Item", "Price"), ("Server", "400"), ("Disk", "90"), ("Total", "490")
    rows = [row(*map(paragraph, pair)) for pair in texts]
    goods = "".join(control.replace("{}", inner) for inner in rows[1:3])
    text = parsed(f"<w:tbl>{rows[0]}{control.replace('{}', goods)}{rows[3]}</w:tbl>")
    assert text.splitlines() == [
        *("| Item | Price |", "| --- | --- |"),
        *("| Server | 400 |", "| Disk | 90 |", "| Total | 490 |"),
    ]


@pytest.mark.parametrize("name", ["del", "moveFrom"])
def test_a_deleted_mark_joins_paragraphs(name):
    mark = f"<w:rPr><w:{name}/></w:rPr>"
    body = paragraph("One, ", mark) + paragraph("two, ", mark) + "<w:bookmarkStart/>"
    assert parsed(body + paragraph("three.") + paragraph("Next.")) == "One, two, three.\n\nNext."


def test_joined_paragraphs_have_the_properties_of_the_last():
    body = paragraph("One, ", DELETED_MARK) + numbered("two.", 1) + numbered("Next.", 1)
    level = '<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/></w:lvl>'
    numbering = f'<w:abstractNum w:abstractNumId="0">{level}</w:abstractNum>'
    numbering += '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    data = word(body, numbering=numbering)
    assert parsing.parse("docx", data).pages[0] == "1. One, two.\n2. Next."


def test_a_deleted_mark_before_a_table_joins_nothing():
    body = paragraph("One.", DELETED_MARK) + table(("a", "b"), ("c", "d"))
    assert parsed(body) == "One.\n\n| a | b |\n| --- | --- |\n| c | d |"


def test_a_deleted_mark_at_the_end_of_a_cell_keeps_its_text():
    body = f"<w:tbl>{row(paragraph('One.', DELETED_MARK), paragraph('Two.'))}</w:tbl>"
    assert "One." in parsed(body)


def test_deleted_paragraphs_leave_no_item_and_no_text():
    body = paragraph("One.") + paragraph(GONE, DELETED_MARK) * 3 + paragraph("Two.")
    assert parsed(body) == "One.\n\nTwo."


def test_deleted_rows_cells_and_tables_are_left_out():
    gone_row = row(paragraph("Gone.")).replace("<w:tr>", "<w:tr><w:trPr><w:del/></w:trPr>")
    gone_cell = f"<w:tc><w:tcPr><w:cellDel/></w:tcPr>{paragraph('Gone.')}</w:tc>"
    new_cell = f"<w:tc><w:tcPr><w:cellIns/></w:tcPr>{paragraph('New.')}</w:tc>"
    kept = f"<w:tr>{cell(paragraph('Kept.'))}{gone_cell}{new_cell}</w:tr>"
    only_gone = f"<w:tbl><w:tr>{gone_cell}</w:tr>{gone_row}</w:tbl>"
    text = parsed(f"<w:tbl>{kept}{gone_row}</w:tbl>{only_gone}{paragraph('After.')}")
    assert text == "| Kept. | New. |\n| --- | --- |\n\nAfter."


def test_an_inserted_text_that_was_deleted_again_is_left_out():
    body = f"<w:p>{run('Keep')}<w:ins>{GONE}{run(' this')}</w:ins>{run('.')}</w:p>"
    assert parsed(body) == "Keep this."


def test_formats_before_a_change_do_not_count():
    before = '<w:pPrChange><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:pPrChange>'
    hidden = "<w:rPrChange><w:rPr><w:vanish/></w:rPr></w:rPrChange>"
    body = paragraph(run("Words", hidden), before)
    assert parsed(body) == "Words"


def test_marks_of_changes_without_a_paragraph_cost_no_text():
    odd = "<w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:rPr><w:del/></w:rPr>"
    assert parsed(odd + paragraph(run("Words", "<w:del/>"))) == "Words"


def test_changes_in_headers_and_notes_are_accepted():
    header = paragraph("<w:ins>" + run("New header") + "</w:ins>" + GONE)
    link = '<w:headerReference w:type="default" r:id="header1"/>'
    body = f"{paragraph('Words')}<w:sectPr>{link}</w:sectPr>"
    assert parsing.parse("docx", word(body, header1=header)).pages[0] == "New header\n\nWords"
