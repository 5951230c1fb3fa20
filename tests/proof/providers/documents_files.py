"""Ordinary documents of every kind, built in code."""

import csv
import datetime as dt
import io
import zipfile
from collections.abc import Mapping
from typing import Any

import documents_pdf as pdf
import pytest

import gateway
from gateway_demo.sample import PALE, TABLE, sample_pdf
from gateway_documents.child import parsing
from gateway_documents.errors import Unreadable


def request(name: str, data: bytes) -> gateway.GenerationRequest:
    """Return the request for one file."""
    return gateway.GenerationRequest(attachment=gateway.Attachment(name=name, data=data))


def scanned_pdf() -> bytes:
    """Return a PDF with a drawing and no text."""
    page = pdf.Page()
    page.box(100, 100, 300, 500, PALE)
    return pdf.write([page])


def archive(members: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return buffer.getvalue()


def office(main: str, body: str | bytes, **more: str | bytes) -> bytes:
    """Return an Office file of one part, with the wrapper that Word writes."""
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    links = "http://schemas.openxmlformats.org/package/2006/relationships"
    document = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    flavour = {"word": "wordprocessingml.document", "xl": "spreadsheetml.sheet"}[
        main.partition("/")[0]
    ]
    media_type = f"application/vnd.openxmlformats-officedocument.{flavour}.main+xml"
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{types}"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/{main}" ContentType="{media_type}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{links}"><Relationship Id="rId1" '
            f'Type="{document}" Target="{main}"/></Relationships>',
            main: body,
            **more,
        }
    )


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def docx(*paragraphs: str) -> bytes:
    """Return a Word file with a heading, paragraphs and a table."""
    text = "".join(f"<w:p><w:r><w:t>{paragraph}</w:t></w:r></w:p>" for paragraph in paragraphs)
    rows = "".join(
        "<w:tr>" + "".join(f"<w:tc><w:p><w:r><w:t>{cell}</w:t></w:r></w:p></w:tc>" for cell in row)
        + "</w:tr>"
        for row in TABLE
    )  # fmt: skip
    heading = (
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
        "<w:r><w:t>Quarterly Report</w:t></w:r></w:p>"
    )
    return office(
        "word/document.xml",
        f'<w:document xmlns:w="{WORD}"><w:body>{heading}{text}<w:tbl>{rows}</w:tbl></w:body>'
        "</w:document>",
        **{
            "word/styles.xml": f'<w:styles xmlns:w="{WORD}"><w:style w:type="paragraph" '
            'w:styleId="Heading1"><w:name w:val="heading 1"/></w:style></w:styles>',
            "word/_rels/document.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats'
            '.org/package/2006/relationships"><Relationship Id="rId1" Target="styles.xml" Type="'
            'http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles"/>'
            "</Relationships>",
        },
    )


def pptx() -> bytes:
    """Return a presentation of one slide with a title, a bullet and a table."""
    import pptx as library
    from pptx.util import Inches

    presentation = library.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = "Quarterly Report"
    slide.placeholders[1].text = "Online orders grew fastest"
    shape = slide.shapes.add_table(len(TABLE), 4, Inches(1), Inches(4), Inches(8), Inches(2))
    for row, cells in enumerate(TABLE):
        for column, cell in enumerate(cells):
            shape.table.cell(row, column).text = cell
    return _saved(presentation)


def rich_pptx() -> bytes:
    """Return a slide with a picture and a chart, for which python-pptx loads more modules."""
    import pptx as library
    from PIL import Image
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE

    presentation = library.Presentation()
    shapes = presentation.slides.add_slide(presentation.slide_layouts[6]).shapes
    for kind in ("png", "jpeg", "gif", "bmp", "tiff"):
        picture = io.BytesIO()
        Image.new("RGB", (8, 8)).save(picture, kind)
        shapes.add_picture(picture, 0, 0)
    data = CategoryChartData()
    data.categories = ["July", "August"]
    data.add_series("Revenue", (151, 169))
    shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, 0, 0, 500, 500, data)
    return _saved(presentation)


def rich_docx() -> bytes:
    """Return a Word file with a formula, a link, and characters of many kinds."""
    math = (
        '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:f><m:fPr/>'
        "<m:num><m:r><m:t>1</m:t></m:r></m:num><m:den><m:r><m:t>2</m:t></m:r></m:den></m:f>"
        "</m:oMath>"
    )
    return docx(
        f"Half is </w:t></w:r>{math}<w:r><w:t> of it", "\u6e2f\u306e\u30b3\u30fc\u30d2\u30fc"
    )


def _open_document(kind: str, body: str) -> bytes:
    names = "urn:oasis:names:tc:opendocument:xmlns:"
    spaces = " ".join(
        f'xmlns:{short}="{names}{name}:1.0"'
        for short, name in (
            *(("office", "office"), ("text", "text"), ("table", "table")),
            *(("draw", "drawing"), ("presentation", "presentation"), ("svg", "svg-compatible")),
        )
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        target.writestr("mimetype", f"application/vnd.oasis.opendocument.{kind}")
        target.writestr(
            "META-INF/manifest.xml",
            f'<manifest:manifest xmlns:manifest="{names}manifest:1.0"/>',
        )
        target.writestr(
            "content.xml",
            f"<office:document-content {spaces}><office:body><office:{kind}>{body}"
            f"</office:{kind}></office:body></office:document-content>",
        )
    return buffer.getvalue()


def _open_table() -> str:
    rows = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p>'
            "</table:table-cell>"
            for cell in row
        )
        + "</table:table-row>"
        for row in TABLE
    )
    return f'<table:table table:name="Sales">{rows}</table:table>'


_OPEN_TEXT = (
    '<text:h text:outline-level="1">Quarterly Report</text:h>'
    "<text:p>Online orders grew fastest.</text:p>"
)


def odt() -> bytes:
    """Return an OpenDocument text with a heading, a paragraph and a table."""
    return _open_document("text", _OPEN_TEXT + _open_table())


def odp() -> bytes:
    """Return an OpenDocument presentation of one slide."""
    return _open_document(
        "presentation",
        '<draw:page draw:name="one"><draw:frame presentation:class="title"><draw:text-box>'
        "<text:p>Quarterly Report</text:p></draw:text-box></draw:frame><draw:frame>"
        "<draw:text-box><text:p>Online orders grew fastest.</text:p></draw:text-box></draw:frame>"
        f"<draw:frame>{_open_table()}</draw:frame></draw:page>",
    )


def ods() -> bytes:
    """Return an OpenDocument spreadsheet."""
    return _open_document("spreadsheet", _open_table())


def rtf() -> bytes:
    """Return rich text with a heading, a paragraph and a table."""
    rows = "".join(
        r"\trowd" + "".join(rf"\cellx{1000 * (at + 1)}" for at in range(len(row)))
        + "".join(rf"\intbl {cell}\cell " for cell in row) + r"\row "
        for row in TABLE
    )  # fmt: skip
    styles = r"{\stylesheet{\s1\outlinelevel0 heading 1;}}"
    return (
        rf"{{\rtf1\ansi{styles}\pard\s1\outlinelevel0 Quarterly Report\par\pard "
        rf"Online orders grew fastest.\par {rows}\pard }}"
    ).encode("ascii")


def xlsx() -> bytes:
    """Return a workbook of two sheets with numbers, dates, gaps and a far-away cell."""
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Sales"
    for row in TABLE:
        sheet.append(row)
    sheet["F9"] = "far | away"
    other = book.create_sheet("Facts")
    other.append(["Day", "Bags", "Share", "Open"])
    other.append([dt.datetime.fromisoformat("2026-09-30"), 12.0, 0.25, True])
    other.append([dt.datetime.fromisoformat("2026-10-01T08:30"), None, 0.5, False])
    return _saved(book)


def _saved(document: Any) -> bytes:
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def epub(doctype: str = "") -> bytes:
    """Return a book of one chapter."""
    author = "&j;" if doctype else "Ada Quay"
    return archive(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": "<container><rootfiles>"
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
            "OEBPS/book.opf": f'{doctype}<package xmlns:dc="http://purl.org/dc/elements/1.1/">'
            "<metadata><dc:title>Harbour Tales</dc:title>"
            f"<dc:creator>{author}</dc:creator></metadata>"
            '<manifest><item id="one" href="one.xhtml"/></manifest>'
            '<spine><itemref idref="one"/></spine></package>',
            "OEBPS/one.xhtml": f"<!DOCTYPE html><html><body>{HTML_BODY}</body></html>",
        }
    )


HTML_BODY = (
    "<h1>Quarterly Report</h1><p>Online orders <b>grew</b> fastest.</p><ul><li>Blend</li></ul>"
    "<table><tr><th>Region</th><th>Bags sold</th></tr><tr><td>Alps</td><td>3,960</td></tr></table>"
    "<script>alert(1)</script>"
)


def html() -> bytes:
    """Return a page with a heading, bold text, a list, a table and a script."""
    head = "<!DOCTYPE html><html><head><title>x</title></head>"
    return f"{head}<body>{HTML_BODY}</body></html>".encode()


def csv_file() -> bytes:
    """Return the table as Excel writes it in Europe: semicolons and a byte order mark."""
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=";").writerows(TABLE)
    return buffer.getvalue().encode("utf-8-sig")


def ordinary_files() -> dict[str, bytes]:
    """Return one good file of every kind, by name."""
    text = "# Quarterly Report\n\nOnline orders grew fastest in the Caf\u00e9.  \nAlps: 3,960\n"
    return {
        "report.pdf": sample_pdf(),
        "report.docx": docx("Online orders grew fastest."),
        "report.pptx": pptx(),
        "report.xlsx": xlsx(),
        "report.odt": odt(),
        "report.odp": odp(),
        "report.ods": ods(),
        "report.rtf": rtf(),
        "report.epub": epub(),
        "report.html": html(),
        "report.HTM": html(),
        "report.csv": csv_file(),
        "report.txt": text.encode("cp1252"),
        "report.md": text.encode("utf-16"),
    }


class Job:
    """The part of a provider's job that is used."""

    def __init__(self):
        self.shown = []

    async def progress(self, fraction, note=""):
        self.shown.append(fraction)


def text_page(sentence: str) -> bytes:
    page = pdf.Page()
    for line in range(8):
        page.text(80, 700 - 20 * line, f"{sentence} This is line {line} of an ordinary page.")
    return pdf.write([page])


def parsed(kind: str, data: bytes) -> str:
    """Return the Markdown that the parser of a kind makes."""
    return "\n\n".join(parsing.parse(kind, data).pages)


def notes(kind: str, data: bytes) -> str:
    """Return the sentences about omissions and guesses."""
    return " ".join(parsing.parse(kind, data).notes)


def refusal(kind: str, data: bytes) -> str:
    """Return the sentence that refuses a file."""
    with pytest.raises(Unreadable) as refused:
        parsing.parse(kind, data)
    return str(refused.value)
