"""Word files: fields, symbols, equations, list numbers, headings, headers and damaged parts."""

import zipfile
from io import BytesIO

import pytest
from documents_files import archive, request
from documents_word import equation, math, numbered, paragraph, run, table, word

import gateway_documents
from gateway_documents.child import libraries, parsing
from gateway_documents.errors import Unreadable
from gateway_documents.provider import DocumentParser

BOOK = '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>'
SPINE = (
    '<package><manifest><item id="one" href="one.xhtml"/></manifest><spine><itemref idref="one"/>'
    "</spine></package>"
)


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(data, kind="docx"):
    return "\n\n".join(parsing.parse(kind, data).pages)


def notes(data):
    return " ".join(parsing.parse("docx", data).notes)


def form(inside):
    return f'<w:r><w:fldChar w:fldCharType="begin"><w:ffData>{inside}</w:ffData></w:fldChar></w:r>'


END = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        ("<w:checkBox><w:default w:val='0'/><w:checked/></w:checkBox>", "☒ agreed"),
        ("<w:checkBox><w:default w:val='0'/></w:checkBox>", "☐ agreed"),
        (
            "<w:ddList><w:result w:val='1'/>" + "<w:listEntry w:val='is'/>" * 2 + "</w:ddList>",
            "is agreed",
        ),
    ],
)
def test_a_form_field_shows_its_state(inside, shown):
    body = paragraph(form(inside) + END + run(" agreed"))
    assert parsed(word(body)) == shown


@pytest.mark.parametrize(
    ("font", "code", "shown"),
    [
        ("Symbol", "F061", "\N{GREEK SMALL LETTER ALPHA}"),
        ("Symbol", "F0B3", "≥"),
        ("Wingdings", "F0FC", "✓"),
        ("Wingdings 2", "F052", "☑"),
        ("Arial", "20AC", "€"),
    ],
)
def test_a_symbol_becomes_its_character(font, code, shown):
    sign = f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'
    assert parsed(word(paragraph(run("x ") + sign))) == f"x {shown}"
    # As Word writes what a person types in the font.
    typed = run(chr(int(code, 16)), f'<w:rFonts w:ascii="{font}"/>')
    assert parsed(word(paragraph(run("x ") + typed))) == f"x {shown}"


def test_a_symbol_without_a_number_costs_no_words():
    signs = '<w:r><w:sym w:font="Symbol" w:char="ZZ"/><w:sym/></w:r>'
    assert parsed(word(paragraph(run("Words") + signs))) == "Words"


def test_word_art_and_an_embedded_object_show_no_more_than_their_words():
    art = '<w:r><w:pict><v:shape><v:textpath string="Sale today"/></v:shape></w:pict></w:r>'
    thing = '<w:r><w:object><o:OLEObject ProgID="Excel.Sheet.12"/></w:object></w:r>'
    assert parsed(word(paragraph(art + thing))) == "Sale today"


def test_an_equation_keeps_ordinary_runs_and_its_separators():
    def part(text):
        return f"<m:e>{math(text)}</m:e>"

    brackets = f'<m:d><m:dPr><m:sepChr m:val=";"/></m:dPr>{part("a")}{part("b")}{part("c")}</m:d>'
    assert parsed(word(paragraph(equation(brackets)))) == r"$\left(a;b;c\right)$"
    assert parsed(word(paragraph(equation(math("x=") + run("plain"))))) == "$x=plain$"


def test_a_hidden_equation_is_left_out():
    hidden = equation("<m:r><w:rPr><w:vanish/></w:rPr><m:t>secret</m:t></m:r>")
    data = word(paragraph(hidden + run("Seen")))
    assert parsed(data) == "Seen"
    assert "Hidden text" in notes(data)


def level(number, kind, text):
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def lists(*more):
    """Return two lists of one definition, and a third one that restarts it."""
    levels = level(0, "decimal", "%1.") + level(1, "decimal", "%1.%2")
    number = '<w:num w:numId="{}"><w:abstractNumId w:val="0"/>{}</w:num>'
    restart = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
    return (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        + number.format(1, "")
        + number.format(2, "")
        + number.format(3, restart)
    )


def test_a_list_continues_another_one_of_its_definition_until_it_restarts():
    body = "".join(
        numbered(text, number) + paragraph("Text.")
        for text, number in (("a", 1), ("b", 2), ("c", 3), ("d", 1))
    )
    found = [line for line in parsed(word(body, numbering=lists())).splitlines() if "." in line]
    assert [line for line in found if line != "Text."] == ["1. a", "2. b", "1. c", "2. d"]


def test_a_deleted_item_has_no_number():
    gone = "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
    place = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr><w:rPr><w:del/></w:rPr>'
    body = numbered("a", 1) + paragraph(gone, place) + numbered("b", 1)
    assert parsed(word(body, numbering=lists())) == "1. a\n2. b"


def test_a_deleted_row_is_left_out():
    rows = table(("a", "b"), ("gone", "gone"), ("c", "d")).split("<w:tr>")
    rows[2] = "<w:trPr><w:del/></w:trPr>" + rows[2]
    assert "gone" not in parsed(word("<w:tr>".join(rows)))


def style(name, properties="", id_="S"):
    return (
        f'<w:style w:type="paragraph" w:styleId="{id_}"><w:name w:val="{name}"/>'
        f"<w:pPr>{properties}</w:pPr></w:style>"
    )


def test_numbered_headings_have_the_level_of_their_style():
    def numbers(at):
        return f'<w:numPr><w:ilvl w:val="{at}"/><w:numId w:val="1"/></w:numPr>'

    styles = style("heading 1", numbers(0), "H1") + style("heading 2", numbers(1), "H2")
    body = "".join(
        paragraph(text, f'<w:pStyle w:val="{name}"/>')
        for text, name in (("One", "H1"), ("Sub", "H2"), ("Two", "H1"), ("Sub", "H2"))
    )
    assert parsed(word(body, numbering=lists(), styles=styles)).split("\n\n") == [
        "# 1. One",
        "## 1.1 Sub",
        "# 2. Two",
        "## 2.1 Sub",
    ]


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        *(("Title", "# "), ("Titel", "# "), ("Título", "# "), ("标题", "# ")),
        *(("Überschrift 2", "## "), ("Заголовок 3", "### "), ("見出し 1", "# ")),
        ("heading 4", "#### "),
        *(("Header", ""), ("Heading 1 Char", ""), ("Subtitle", ""), ("TOC Heading", "")),
    ],
)  # fmt: skip
def test_a_style_is_a_heading_by_its_name_in_any_language(name, mark):
    body = paragraph("Words", '<w:pStyle w:val="S"/>')
    assert parsed(word(body, styles=style(name))) == f"{mark}Words"


def test_a_heading_without_its_style_is_known_by_the_id():
    for name, mark in (("Heading2", "## "), ("berschrift1", "# "), ("Title", "# "), ("H", "")):
        body = paragraph("Words", f'<w:pStyle w:val="{name}"/>')
        assert parsed(word(body)) == f"{mark}Words"


def section(**parts):
    kinds = {name: name.rstrip("0123456789") for name in parts}
    return "<w:sectPr>" + "".join(
        f'<w:{kinds[name]}Reference w:type="default" r:id="{name}"/>' for name in parts
    ) + "</w:sectPr>"  # fmt: skip


def test_every_section_shows_its_headers_once():
    one = {"header1": "Part one", "footer1": "Copyright Quay"}
    two = {"header2": "Part two", "footer2": "Copyright Quay"}
    body = paragraph("First.") + paragraph("Last.", section(**one)) + paragraph("Second.")
    files = {name: paragraph(text) for name, text in (one | two).items()}
    assert parsed(word(body + section(**two), **files)).split("\n\n") == [
        *("Part one", "First.", "Last.", "Copyright Quay"),
        *("Part two", "Second."),
    ]


@pytest.mark.parametrize(
    ("text", "is_kept"), [("Page 1 of 9", False), ("Quay Ltd, page 1", True), ("17", False)]
)
def test_a_header_is_kept_unless_it_is_a_page_number(text, is_kept):
    code = "<w:r><w:instrText> PAGE </w:instrText></w:r>"
    found = parsed(
        word(paragraph("Body.") + section(header1=""), header1=paragraph(code + run(text)))
    )
    assert (text in found) == is_kept


@pytest.mark.parametrize("name", ["styles", "numbering", "footnotes", "comments", "header1"])
@pytest.mark.parametrize("broken", [b"", b"not XML", b"<w:styles"])
def test_a_broken_part_does_not_take_the_others_with_it(name, broken):
    data = word(paragraph("Words"), **{name: ""})
    with zipfile.ZipFile(BytesIO(data)) as whole:
        members = {member: whole.read(member) for member in whole.namelist()}
    broken_data = archive({**members, f"word/{name}.xml": broken})
    assert parsed(broken_data) == "Words"
    assert "damaged in places" in notes(broken_data)


def test_signs_that_xml_forbids_cost_no_words():
    assert parsed(word(paragraph("Fish & chips&#x1;, R&D"))) == "Fish & chips, R&D"


def test_parts_nested_deeply_are_refused():
    inside = paragraph("x")
    data = word("<w:sdt><w:sdtContent>" * 3000 + inside + "</w:sdtContent></w:sdt>" * 3000)
    with pytest.raises(Unreadable):
        parsing.parse("docx", data)


def test_items_stand_behind_the_text_of_their_parent():
    levels = level(0, "decimal", "Article %1") + level(1, "lowerLetter", "(%2)")
    lists = (
        f'<w:abstractNum w:abstractNumId="0">{levels}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    )
    body = numbered("One", 1) + numbered("a", 1, 1) + paragraph("Text.") + numbered("b", 1, 1)
    assert parsed(word(body, numbering=lists)).split("\n\n") == [
        *("- Article 1 One", "  - (a) a", "Text.", "- (b) b"),
    ]


def test_the_first_row_of_a_table_is_its_head():
    assert parsed(word(table(("long text here", "1"), ("x", "2")))) == (
        "| long text here | 1 |\n| --- | --- |\n| x | 2 |"
    )


def test_numbers_of_empty_items_are_no_words():
    with pytest.raises(Unreadable, match=r"^The file contains no text\.$"):
        parsing.parse("docx", word(numbered("", 1) + numbered("", 1), numbering=lists()))


def with_chunk(name, chunk):
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/aFChunk"
    link = f'<Relationship Id="c1" Type="{kind}" Target="{name}"/>'
    body = paragraph("Before.") + '<w:altChunk r:id="c1"/>' + paragraph("After.")
    return word(body, links=link, files={f"word/{name}": chunk})


@pytest.mark.parametrize(
    ("name", "chunk"),
    [
        ("a.html", b"<html><body><p>Words <b>inside</b></p></body></html>"),
        ("a.rtf", rb"{\rtf1 Words {\b inside}\par}"),
        ("a.docx", word(paragraph(run("Words ") + run("inside", "<w:b/>")))),
        (
            "a.mht",
            b"""Content-Type: multipart/related; boundary="x"\n\n--x\nContent-Type: text/html
Content-Transfer-Encoding: quoted-printable\n\n<p>Words <b>insid=65</b></p>\n--x--\n""",
        ),
    ],
)
def test_a_file_inside_of_a_document_is_read_in_its_place(name, chunk):
    assert parsed(with_chunk(name, chunk)) == "Before.\n\nWords **inside**\n\nAfter."


def test_a_broken_file_inside_of_a_document_costs_a_note():
    assert parsed(with_chunk("a.rtf", b"")) == "Before.\n\n\n\nAfter."
    assert "could not be read" in notes(with_chunk("a.docx", b"PK"))


async def test_the_child_reads_them_without_opening_a_file():
    mail = b"Content-Type: text/html\n\n<p>Words</p>"
    chapter = {"META-INF/container.xml": BOOK, "book.opf": SPINE, "one.xhtml": "<p>Words<br>here"}
    parser = DocumentParser(pictures=None)
    try:
        for name, data in {
            "a.docx": with_chunk("a.mht", mail),
            "a.epub": archive(chapter),
            "a.rtf": rb"{\rtf1 Words {\v hidden}\par}",
        }.items():
            await parser.validate(request(name, data), gateway_documents.ENDPOINT)
            assert "Words" in (await parser.submit(request(name, data), None)).text
    finally:
        await parser.close()


@pytest.mark.parametrize("name", ["word/document.xml", "word/_rels/document.xml.rels"])
def test_backslashes_in_the_names_of_parts_are_slashes(name):
    with zipfile.ZipFile(BytesIO(word(paragraph("Words")))) as whole:
        members = {part: whole.read(part) for part in whole.namelist()}
    members[name.replace("/", "\\")] = members.pop(name)
    assert parsed(archive(members)) == "Words"
