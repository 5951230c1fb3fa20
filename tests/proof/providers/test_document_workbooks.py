"""Workbooks: number formats, formulas, cells without places, text boxes and damaged parts."""

import io
import zipfile

import pytest
import xlsxwriter
from documents_files import archive, office

from gateway_documents.child import libraries, parsing
from gateway_documents.child.sheets.number_formats import elapsed, formatter, text_formatter
from gateway_documents.errors import Unreadable

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(data):
    return "\n\n".join(parsing.parse("xlsx", data).pages)


def rows(data):
    """Return the cells of the first sheet by row."""
    lines = [line for line in parsed(data).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "---" not in line]


def notes(data):
    return " ".join(parsing.parse("xlsx", data).notes)


def sheet(cells, *formats):
    """Return a workbook of one sheet; the style 1 has the first format, and so on."""
    styles = "".join(
        f'<numFmt numFmtId="{200 + at}" formatCode="{code}"/>' for at, code in enumerate(formats)
    )
    used = "".join(f'<xf numFmtId="{200 + at}"/>' for at in range(len(formats)))
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    return office(
        "xl/workbook.xml",
        f'<workbook xmlns="{MAIN}" xmlns:r="{LINKS}"><sheets><sheet name="One" sheetId="1" '
        'r:id="rId1"/></sheets></workbook>',
        **{
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}"><Relationship '
            f'Id="rId1" Type="{LINKS}/worksheet" Target="worksheets/sheet1.xml"/><Relationship '
            f'Id="rId2" Type="{LINKS}/styles" Target="styles.xml"/></Relationships>',
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{cells}'
            "</sheetData></worksheet>",
            "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><numFmts>{styles}</numFmts><cellXfs>'
            f'<xf numFmtId="0"/>{used}</cellXfs></styleSheet>',
        },
    )


def written(fill):
    file = io.BytesIO()
    book = xlsxwriter.Workbook(file, {"in_memory": True})
    fill(book)
    book.close()
    return file.getvalue()


def with_part(data, name, part):
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        members = {member: whole.read(member) for member in whole.namelist()}
    return archive({**members, name: part})


@pytest.mark.parametrize(
    ("code", "value", "shown"),
    [
        ("# ?/?", 2.75, "2 3/4"),
        ("# ?/?", -1.25, "-1 1/4"),
        ("# ?/?", 0.999, "1"),
        ("# ?/8", 0.125, "1/8"),
        ("?/?", 1.5, "3/2"),
        ('# ??/?? "in"', 2.5, "2 1/2 in"),
        ("0.00E+00", 0.00012, "1.20E-04"),
        ("0.0E+0", 9.99, "1.0E+1"),
        ("##0.0E+0", 123456, "123.5E+3"),
        ("0E-0", 1200, "1E3"),
        ("[<100]0;0.0", 500, "500.0"),
        ('[=1]"one";[=2]"two";"many"', 2, "two"),
        ('[=1]"one";[=2]"two";"many"', 9, "many"),
        ("[<0]0.0;0", -4, "4.0"),
        ("[<=9999999]###-####;(###) ###-####", 8005551234, "(800) 555-1234"),
        ("[<=9999999]###-####;(###) ###-####", 5551234, "555-1234"),
        ("000-00-0000", 123456789, "123-45-6789"),
        ("00\\.00", 1234, "12.34"),
        ("# ##0.00", 1234567.5, "1234 567.50"),
        ("0,000", 5, "0,005"),
        ('General" units"', 12, "12 units"),
        ('General;"neg "General', -3, "neg 3"),
        ("+0.0%;-0.0%", -0.05, "-5.0%"),
        ("0.0?", 15.5, "15.5"),
        ("0.00", -0.001, "0.00"),
        ('"$"#,##0.00_);\\("$"#,##0.00\\)', -1234.5, "($1,234.50)"),
        (";;;", 5, ""),
    ],
)
def test_every_kind_of_number_format_is_applied(code, value, shown):
    assert formatter(code)(value) == shown


@pytest.mark.parametrize(
    ("code", "seconds", "shown"),
    [
        ("[h]:mm", 99_000, "27:30"),
        ("[h]:mm:ss", 99_000, "27:30:00"),
        ("[mm]:ss", 129_600, "2160:00"),
        ("[h]:mm:ss.00", 3661.257, "1:01:01.26"),
        ("[h]:mm", -5400, "-1:30"),
        ("0.0", 5, None),
    ],
)
def test_a_duration_is_shown_in_its_format(code, seconds, shown):
    assert elapsed(code, seconds) == shown


def test_texts_have_formats_too():
    assert text_formatter('"ID-"@')("7") == "ID-7"
    assert text_formatter('0;-0;0;"text "@')("x") == "text x"
    assert text_formatter("0.00") is None
    cell = '<c r="A1" s="1" t="inlineStr"><is><t>7</t></is></c>'
    assert rows(sheet(f"<row r='1'>{cell}</row>", "&quot;ID-&quot;@")) == [["ID-7"]]


def test_times_have_no_fractions_of_seconds():
    cells = (
        '<row r="1"><c r="A1" s="1"><v>0.60417</v></c><c r="B1" s="2"><v>46023.604166</v></c></row>'
    )
    data = sheet(cells, "hh:mm", "yyyy-mm-dd hh:mm")
    assert rows(data) == [["14:30:00", "2026-01-01 14:30:00"]]


def test_cells_without_a_place_have_their_formats_and_formulas():
    data = sheet('<row><c s="1"><v>0.25</v></c><c><f>1+1</f></c></row>', "0%")
    assert rows(data) == [["25%", "=1+1"]]


def test_a_shared_formula_is_moved_to_each_cell():
    body = "".join(
        f'<row r="{at}"><c r="A{at}"><v>{at}</v></c><c r="B{at}"><f t="shared" si="0"{more}</c>'
        "</row>"
        for at, more in ((1, ' ref="B1:B2">A1*$A$1&amp;"A1"</f>'), (2, "/>"))
    )
    assert rows(sheet(body)) == [["1", '=A1*$A$1&"A1"'], ["2", '=A2*$A$1&"A1"']]


def test_a_formula_whose_value_is_the_empty_text_is_not_printed():
    cells = '<row r="1"><c r="A1" t="str"><f>IF(B1,"",1)</f><v></v></c><c r="B1"><v>1</v></c></row>'
    assert "IF" not in parsed(sheet(cells))


def test_text_boxes_and_titles_of_charts_are_read():
    def fill(book):
        data = book.add_worksheet("Data")
        data.write_column(0, 0, [1, 2])
        data.insert_textbox(1, 1, "Words of a box")
        chart = book.add_chart({"type": "line"})
        chart.add_series({"values": "=Data!$A$1:$A$2"})
        chart.set_title({"name": "Words of a chart"})
        book.add_chartsheet("Picture").set_chart(chart)

    text = parsed(written(fill))
    assert text.startswith("## Data\n\n| 1 |\n| --- |\n| 2 |\n\nWords of a box")
    assert text.endswith("## Picture\n\nWords of a chart")


def test_comments_of_a_workbook_are_mentioned():
    def fill(book):
        cells = book.add_worksheet("One")
        cells.write(0, 0, "Words")
        cells.write_comment(0, 0, "Remark")

    assert "Remark" not in parsed(written(fill))
    assert "Comments were left out." in notes(written(fill))


def test_parts_in_utf_16_are_read():
    data = sheet("<row r='1'><c r='A1'><v>7</v></c></row>")
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        part = whole.read("xl/worksheets/sheet1.xml").decode().encode("utf-16")
    assert rows(with_part(data, "xl/worksheets/sheet1.xml", part)) == [["7"]]


@pytest.mark.parametrize("broken", [b"not XML", b"", b"<a"])
def test_broken_styles_cost_the_formats_only(broken):
    data = written(lambda book: book.add_worksheet("One").write_row(0, 0, ["Words", 1.5]))
    assert rows(with_part(data, "xl/styles.xml", broken)) == [["Words", "1.5"]]
    with pytest.raises(Unreadable, match="damaged"):
        parsing.parse("xlsx", with_part(data, "xl/worksheets/sheet1.xml", broken))
