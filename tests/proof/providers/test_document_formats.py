"""Formats by their features: shapes of tables, hidden parts, numbers, raised digits."""

import io

import documents_files as files
import documents_pdf as pdf
import pytest
from documents_files import WORD, docx, notes, office, parsed, refusal

import gateway_documents
from gateway_documents.child import libraries, raised_digits
from gateway_documents.child.sheets.number_formats import formatter
from gateway_documents.errors import Unreadable
from gateway_documents.provider import DocumentParser


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def word(body):
    """Return a Word file with this XML in its body."""
    return office(
        "word/document.xml", f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    )


WIDE = '<w:gridSpan w:val="2"/>'


def run(text, properties=""):
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def cell(text, properties="", inner=""):
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}<w:p>{run(text)}</w:p></w:tc>"


# Words in the charset of their country. Too short for statistics, so the letters decide.
def test_a_table_of_a_page_keeps_the_columns_of_spans():
    page = (
        "<table><tr><th rowspan=2>Region</th><th colspan=2>Sales</th></tr>"
        "<tr><th>2024</th><th>2025</th></tr><tr><td>a|b</td><td>1</td><td>2</td></tr></table>"
    )
    assert parsed("html", page.encode()) == (
        "| Region | Sales |  |\n| --- | --- | --- |\n|  | 2024 | 2025 |\n| a\\|b | 1 | 2 |"
    )


def test_a_table_in_a_cell_stays_in_the_cell():
    inner = "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></table>"
    page = f"<table><tr><td>A</td><td>B</td></tr><tr><td>x</td><td>{inner}</td></tr></table>"
    assert parsed("html", page.encode()).splitlines()[2] == "| x | 1 / 2<br>3 / 4 |"


def test_a_span_of_a_million_costs_nothing():
    page = "<table><tr><td rowspan=1000000 colspan=1000000>x</td></tr></table>" * 20
    assert parsed("html", page.encode()).count("x") == 20


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>secret</p>",
        "<p style='display:none'>secret</p>",
        "<p style='color:red; visibility: hidden'>secret</p>",
        "<template><p>secret</p></template>",
        "<noscript>secret</noscript>",
        "<script>var secret</script>",
        "<style>.secret{}</style>",
        "<!-- secret -->",
        "<input type=hidden value=secret>",
        "<input type=password value=secret>",
        "<img alt=secret src='data:image/png;base64,AAAA'>",
    ],
)
def test_what_a_browser_hides_is_left_out(hidden):
    assert parsed("html", f"<p>Seen</p>{hidden}".encode()) == "Seen"


def test_fields_of_a_form_stand_apart():
    page = (
        "<form><label>Name <input value=Anna></label><select><option>red</option>"
        "<option>blue</option></select><input type=checkbox checked> agreed</form>"
    )
    assert parsed("html", page.encode()).split() == ["Name", "Anna", "red", "blue", "[x]", "agreed"]


def test_a_page_without_words_is_refused():
    assert refusal("html", b"<html><body><img src=a.png></body></html>") != ""
    assert refusal("html", b"<html><body><p> </p></body></html>") == "The file contains no text."


def test_a_word_table_keeps_the_columns_of_spans_and_escapes_pipes():
    body = (
        f"<w:tbl><w:tr>{cell('A')}{cell('a|b')}</w:tr>"
        f"<w:tr>{cell('', WIDE)}</w:tr><w:tr>{cell('1')}{cell('2')}</w:tr></w:tbl>"
    )
    lines = parsed("docx", word(body)).splitlines()
    assert lines[0] == "| A | a\\|b |"
    assert lines[-1] == "| 1 | 2 |"


def test_hidden_words_of_a_word_file_are_left_out():
    body = f"<w:p>{run('Seen ')}{run('secret', '<w:vanish/>')}</w:p>"
    assert parsed("docx", word(body)) == "Seen"
    shown = "<w:p>" + run("Seen") + run(" too", '<w:vanish w:val="0"/>') + "</w:p>"
    assert parsed("docx", word(shown)) == "Seen too"


def test_raised_and_lowered_digits_of_a_word_file_are_kept():
    def shifted(text, place):
        return run(text, f'<w:vertAlign w:val="{place}"/>')

    body = f"<w:p>{run('H')}{shifted('2', 'subscript')}{run('O, 10')}{shifted('-6', 'superscript')}"
    assert parsed("docx", word(f"{body}{run(' and 1')}{shifted('st', 'superscript')}</w:p>")) == (
        "H₂O, 10⁻⁶ and 1st"
    )


def test_ruby_is_written_out():
    ruby = "<w:ruby><w:rt><w:r><w:t>かんじ</w:t></w:r></w:rt><w:rubyBase>{}</w:rubyBase></w:ruby>"
    body = f"<w:p><w:r>{ruby.format('<w:r><w:t>漢字</w:t></w:r>')}</w:r></w:p>"
    assert parsed("docx", word(body)) == "漢字 (かんじ)"


def test_an_equation_that_cannot_be_read_takes_no_other_with_it():
    names = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    square = (
        "<m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    )
    integral = "<m:nary><m:sub/><m:sup/><m:e><m:r><m:t>x</m:t></m:r></m:e></m:nary>"
    body = "".join(
        f"<w:p><m:oMath {names}>{equation}</m:oMath></w:p>" for equation in (square, integral)
    )
    text = parsed("docx", word(body))
    assert "c^{2}" in text
    assert "int" in text


def test_a_word_file_without_words_is_refused():
    assert refusal("docx", word("<w:p/>")) == "The file contains no text."


def test_slides_without_words_are_refused():
    import pptx as library

    presentation = library.Presentation()
    presentation.slides.add_slide(presentation.slide_layouts[6])
    file = io.BytesIO()
    presentation.save(file)
    assert refusal("pptx", file.getvalue()) == "The file contains no text."


def workbook(fill):
    import openpyxl

    book = openpyxl.Workbook()
    fill(book)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def test_a_workbook_without_cells_is_refused():
    assert refusal("xlsx", workbook(lambda book: None)) == "The file contains no text."


def test_hidden_parts_of_a_workbook_are_left_out_and_said_so():
    def fill(book):
        sheet = book.active
        sheet.append(["shown", 1, "hidden column"])
        sheet.append(["hidden row", 2, ""])
        sheet.column_dimensions["C"].hidden = True
        sheet.row_dimensions[2].hidden = True
        other = book.create_sheet("Secret")
        other.append(["hidden sheet"])
        other.sheet_state = "veryHidden"

    data = workbook(fill)
    assert parsed("xlsx", data) == "## Sheet\n\n| shown | 1 |\n| --- | --- |"
    assert "left out: 1" in notes("xlsx", data)
    assert "Hidden rows and columns" in notes("xlsx", data)


def test_a_formula_without_a_saved_value_is_printed():
    def fill(book):
        book.active.append(["n", "double"])
        book.active.append([21, "=A2*2"])

    data = workbook(fill)
    assert "| 21 | =A2*2 |" in parsed("xlsx", data)
    assert "printed as formulas: 1" in notes("xlsx", data)


def test_numbers_of_a_workbook_look_as_in_excel():
    def fill(book):
        for row, (value, code) in enumerate(((0.256, "0.0%"), (1234, "00000"), (1e6, "#,##0.00"))):
            found = book.active.cell(row + 1, 1, value)
            found.number_format = code

    assert parsed("xlsx", workbook(fill)) == (
        "## Sheet\n\n| 25.6% |\n| --- |\n| 01234 |\n| 1,000,000.00 |"
    )


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("General", 3.0, "3"),
        ("0", 2.5, "3"),
        ("0%", 0.256, "26%"),
        ("#,##0", -1234567, "-1,234,567"),
        ('"$"#,##0.00', -12.5, "-$12.50"),
        ("#,##0.00\\ [$€-407]", 12.5, "12.50 €"),
        ("0.00;(0.00)", -3, "(3.00)"),
        ('0;-0;"none"', 0, "none"),
        ("#.##", 0.5, ".5"),
        ("0.0##", 1.25, "1.25"),
        ("#,##0,", 1234567, "1,235"),
        ('0.0,,"M"', 1500000, "1.5M"),
        ("_-* #,##0.00\\ _€_-", 5, "5.00"),
        ('#,##0 "bags; large"', 3960, "3,960 bags; large"),
        ("[Red]0", -4, "-4"),
        ("[<100]0;0.0", 5, "5"),
        ("# ?/?", 0.5, "1/2"),
        ("0.00E+00", 12345, "1.23E+04"),
        ("@", 5, "5"),
        ("0", 1e300, "1e+300"),
    ],
)
def test_a_number_format_is_applied_or_the_number_is_exact(code, value, shown):
    assert formatter(code)(value) == shown


def page_of(*lines):
    return pdf.write_contents([_deflated("\n".join(lines))])


def _deflated(content):
    import zlib

    return zlib.compress(content.encode("cp1252"))


def test_raised_and_lowered_digits_of_a_pdf_are_kept():
    data = page_of(
        "BT /F1 11 Tf 72 700 Td (The lake holds 4 x 10) Tj /F1 7 Tf 4 Ts (6) Tj",
        "/F1 11 Tf 0 Ts ( litres of H) Tj /F1 7 Tf -3 Ts (2) Tj /F1 11 Tf 0 Ts",
        "(O, 106 of them.) Tj ET",
    )
    assert parsed("pdf", data) == "The lake holds 4 x 10⁶ litres of H₂O, 106 of them."


def test_a_pdf_that_only_one_library_reads_is_read(monkeypatch):
    def fail(_):
        raise raised_digits.pypdfium2.PdfiumError("cannot be opened")

    monkeypatch.setattr(raised_digits.pypdfium2, "PdfDocument", fail)
    assert parsed("pdf", page_of("BT /F1 11 Tf 72 700 Td (Words) Tj ET")) == "Words"


def test_lines_of_the_body_stay_on_every_page_and_running_lines_on_the_first():
    def one(number):
        return _deflated(
            f"BT /F1 9 Tf 72 810 Td (Harbour Coffee, page {number}) Tj ET "
            f"BT /F1 11 Tf 72 600 Td (Invoice number 2026-00{number} for coffee.) Tj ET "
            "BT /F1 11 Tf 72 500 Td (Please pay the amount by bank transfer.) Tj ET"
        )

    text = parsed("pdf", pdf.write_contents([one(number) for number in range(1, 6)]))
    assert text.count("Please pay") == 5
    assert text.count("Harbour Coffee, page") == 1


def test_a_word_broken_at_the_end_of_a_line_is_joined():
    data = page_of(
        "BT /F1 11 Tf 72 700 Td (The water-) Tj 0 -13 Td (wheel is older than the docu-) Tj",
        "0 -13 Td (ments in the archive.) Tj ET",
    )
    assert parsed("pdf", data) == "The waterwheel is older than the documents in the archive."


def test_a_document_of_2000_rows_keeps_them_all():
    rows = "".join(f"<w:tr>{cell(f'r{at}')}{cell('x')}</w:tr>" for at in range(2000))
    assert parsed("docx", word(f"<w:tbl>{rows}</w:tbl>")).count("| x |") == 2000


def test_an_empty_file_of_any_kind_is_called_empty():
    from gateway_documents.kinds import KINDS, recognise

    for extension in KINDS:
        with pytest.raises(Unreadable, match=r"^The file is empty\.$"):
            recognise(extension, b"\r\n")


def test_a_heading_keeps_its_level():
    assert parsed("docx", docx("Text.")).startswith("# Quarterly Report")
    assert parsed("odt", files.odt()).startswith("# Quarterly Report")


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "| a | b |\n| --- | --- |\n| c | d |"),
        ("<html><head><title>T</title><body><p>Text</p>", "Text"),
        ("<?xml version='1.0'?><html><body><p>Text</p></body></html>", "Text"),
        ("<![if !IE]><p>Text</p><![endif]>", "Text"),
        ("<p>10<sup>6</sup> H<sub>2</sub>O 1<sup>st</sup></p>", "10⁶ H₂O 1st"),
        ("<a href=' java\nscript:alert(1)'>x</a>", "x"),
        ("<a href='http://a.example/)[b](c d'>x</a>", "[x](http://a.example/%29[b]%28c%20d)"),
    ],
)
def test_a_page_is_read_as_browsers_read_it(page, text):
    assert parsed("html", page.encode()) == text


@pytest.mark.parametrize("namespace", [WORD, "http://purl.oclc.org/ooxml/wordprocessingml/main"])
@pytest.mark.parametrize("charset", ["utf-8", "utf-16"])
def test_hidden_words_are_left_out_of_any_word_part(namespace, charset):
    body = f"<w:p>{run('Seen')}{run('secret', '<w:vanish/>')}</w:p>"
    part = (
        f'<?xml version="1.0" encoding="{charset}"?>'
        f'<w:document xmlns:w="{namespace}"><w:body>{body}</w:body></w:document>'
    )
    assert parsed("docx", office("word/document.xml", part.encode(charset))) == "Seen"


def test_a_hyphen_that_does_not_break_is_kept():
    body = "<w:p><w:r><w:t>555</w:t><w:noBreakHyphen/><w:t>1234</w:t></w:r></w:p>"
    assert parsed("docx", word(body)) == "555-1234"


def test_errors_and_formulas_outside_the_values_of_a_workbook_are_shown():
    def fill(book):
        sheet = book.active
        sheet["A1"], sheet["A2"], sheet["B1"] = 10, "=A1*2", "#N/A"
        sheet["B1"].data_type = "e"

    assert parsed("xlsx", workbook(fill)) == (
        "## Sheet\n\n| 10 | #N/A |\n| --- | --- |\n| =A1*2 |  |"
    )


@pytest.mark.full
async def test_an_ordinary_large_file_passes_the_check_and_the_parser():
    parser = DocumentParser(pictures=None)
    lines = "".join(
        f"BT /F1 11 Tf 72 {780 - 18 * at} Td (Line {at} of text) Tj ET\n" for at in range(40)
    )
    large = {
        "a.html": b"<p>word word word</p>" * 20_000,
        "a.docx": word(f"<w:p>{run('Lorem ipsum dolor sit amet ' * 10)}</w:p>" * 10_000),
        "a.pdf": pdf.write_contents([_deflated(lines)] * 300),
    }
    for name, data in large.items():
        await parser.validate(files.request(name, data), gateway_documents.ENDPOINT)
        assert len((await parser.submit(files.request(name, data), None)).text) > 100_000
    await parser.close()


@pytest.mark.parametrize("repeated", [b"<c ", b"<c r='A1'>", b"<row ", b"<f ", b"<cellXfs "])
def test_tags_that_never_end_take_linear_time(repeated):
    from gateway_documents.child.sheets import workbook_xml

    # Quadratic time would be minutes.
    tags = repeated * 100_000
    assert workbook_xml._facts(tags, []).formulas == {}
    assert workbook_xml._REFERENCE.findall(tags) == []
    assert workbook_xml._style_formats(tags) == []


def test_a_line_in_the_margin_that_differs_in_more_than_the_page_number_stays():
    def one(number):
        return _deflated(
            f"BT /F1 11 Tf 72 810 Td (Total {number}00 EUR) Tj 0 -200 Td (Words.) Tj "
            f"0 -580 Td (Page {number} of 4, 2026) Tj ET"
        )

    text = parsed("pdf", pdf.write_contents([one(number) for number in range(1, 5)]))
    assert all(f"Total {number}00 EUR" in text for number in range(1, 5))
    assert text.count("of 4, 2026") == 1
