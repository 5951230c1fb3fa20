"""Files inside of Word files (`altChunk`): in tables, of other kinds, broken, and repeated."""

import pytest
from documents_files import request
from documents_word import paragraph, table, word

import gateway_documents
from gateway_documents.child import libraries, parsing
from gateway_documents.errors import Unreadable
from gateway_documents.provider import DocumentParser

KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/aFChunk"
PLACE = '<w:altChunk r:id="c1"/>'
BROKEN_NOTE = "A file inside of the document could not be read."
ODD_MAIL = (
    b'Content-Type: multipart/related; boundary="x"\n\n--x\n'
    b"Content-Type: text/html; charset=nonsense-9\nContent-Transfer-Encoding: 8bit\n\n"
    b"<p>Caf\xc3\xa9</p>\n--x--\n"
)


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def with_file(name, data, body=PLACE):
    link = f'<Relationship Id="c1" Type="{KIND}" Target="{name}"/>'
    return word(paragraph("Before.") + body, links=link, files={f"word/{name}": data})


def parsed(data):
    return "\n\n".join(parsing.parse("docx", data).pages)


def notes(data):
    return list(parsing.parse("docx", data).notes)


def in_table(*places):
    """Return a table whose last cell contains the file once for each place."""
    inside = "".join(places)
    return table(("Item", "Terms"), ("Pump", "-")).replace(paragraph("-"), f"{inside}<w:p/>")


@pytest.mark.parametrize(
    ("name", "data", "shown"),
    [
        ("a.html", b"<h2>Terms</h2><p>By <b>ship</b></p>", "## Terms<br>By **ship**"),
        ("a.html", b"<ul><li>one<li>two | three</ul>", "- one<br>- two \\| three"),
        (
            "a.html",
            b"<table><tr><th>Day<th>a|b</tr><tr><td>1<td>2</tr></table>",
            "Day / a\\|b<br>1 / 2",
        ),
        ("a.txt", b"One\n\nTwo *x* *y*", "One<br>Two \\*x\\* \\*y\\*"),
        ("a.docx", word(table(("Day", "Bags"), ("1", "2"))), "Day / Bags<br>1 / 2"),
        ("a.docx", b"PK", ""),
    ],
)
def test_a_file_in_a_cell_stays_in_its_row(name, data, shown):
    lines = parsed(with_file(name, data, in_table(PLACE))).splitlines()
    assert lines[2:] == ["| Item | Terms |", "| --- | --- |", f"| Pump | {shown} |"]


def test_plain_text_is_no_markdown_and_each_line_a_paragraph():
    data = with_file("a.txt", b"# 1\r\n    *a* | *b*\r\n\r\n- | -\r\n| - |")
    assert parsed(data).split("\n\n") == [
        *("Before.", "\\# 1", "\\*a\\* | \\*b\\*", "\\- | -", "\\| - |"),
    ]


def test_a_document_in_one_xml_file_costs_a_note():
    package = b'<?xml version="1.0"?><x:package xmlns:x="y"><x:t>Words</x:t></x:package>'
    assert parsed(with_file("a.xml", package)) == "Before."
    assert notes(with_file("a.xml", package)) == [BROKEN_NOTE]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (
            "a.docx",
            word(paragraph("x"), files={"word/media/a.xml": b'<!DOCTYPE x [<!ENTITY a "b">]><x/>'}),
        ),
        ("a.docx", word(paragraph("x"))[:-30]),
        ("a.html", b"<p>"),
        ("a.rtf", b"no rich text"),
        ("a.mht", b""),
        ("a.txt", bytes(range(32)) * 9),
    ],
)
def test_no_fault_in_a_file_inside_costs_the_document(name, data):
    assert parsed(with_file(name, data)) == "Before."
    assert notes(with_file(name, data)) == [BROKEN_NOTE]


def test_any_error_of_a_parser_is_a_note(monkeypatch):
    def fail(*_):
        raise LookupError("unknown encoding: nonsense-9")

    monkeypatch.setattr("gateway_documents.child.html.page.parse", fail)
    assert notes(with_file("a.html", b"<p>Words</p>")) == [BROKEN_NOTE]


async def test_a_web_archive_of_an_unknown_charset_is_read_by_the_child():
    parser = DocumentParser(pictures=None)
    data = with_file("a.mht", ODD_MAIL)
    try:
        await parser.validate(request("a.docx", data), gateway_documents.ENDPOINT)
        assert "Café" in (await parser.submit(request("a.docx", data), None)).text
    finally:
        await parser.close()


def test_a_file_is_parsed_once_whatever_the_number_of_its_places(monkeypatch):
    calls = []

    def parse(data):
        calls.append(data)
        return original(data)

    original = parsing.page.parse
    monkeypatch.setattr("gateway_documents.child.html.page.parse", parse)
    data = with_file("a.html", b"<p>Words</p>", PLACE * 1_000)
    assert parsed(data).count("Words") == 1_000
    assert len(calls) == 1


def test_too_many_files_are_refused():
    with pytest.raises(Unreadable, match=r"^The file is too large: it contains 1,001 files\.$"):
        parsing.parse("docx", with_file("a.html", b"<p>Words</p>", PLACE * 1_001))


def test_a_file_that_contains_marks_is_inserted_as_it_is():
    data = with_file("a.html", "<p>Words \ufdd20\ufdd3</p>".encode())
    assert parsed(data).count("Words") == 1
