"""Documents: pages a CPU second and memory by format, and a long PDF in the sandbox."""

import asyncio
import io
import os
import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvloop
from document_engines import ENGINES, measured
from PIL import Image, ImageDraw
from place import IS_SMOKE, sized
from rich.table import Table

import gateway

_PAGES, _LINES = sized(100, 2), 40
_LONG_PAGES = sized(1000, 2)
_SALES = sized(20, 1)
_SENTENCE = "Line {line} of page {page}: the harbour café sold {line} cups of coffee."
_SCHEMAS = "http://schemas.openxmlformats.org"
_PACKAGE, _LINKS = f"{_SCHEMAS}/package/2006", f"{_SCHEMAS}/officeDocument/2006/relationships"


def _lines(pages: int) -> list[list[str]]:
    return [
        [_SENTENCE.format(line=line, page=page) for line in range(_LINES)] for page in range(pages)
    ]


def _pdf(pages: int) -> bytes:
    from gateway_demo.pdf import Page, write

    made = []
    for lines in _lines(pages):
        page = Page()
        for at, line in enumerate(lines):
            page.text(80, 760 - 15 * at, line)
        made.append(page)
    return write(made)


def _office(parts: Mapping[str, str], main: str, kind: str) -> bytes:
    """Return an Office file; `parts` has its XML files by name, `kind` is the main one's type."""
    types = f"application/vnd.openxmlformats-officedocument.{kind}.main+xml"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            '<Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/{main}" ContentType="{types}"/></Types>',
        )
        target.writestr("_rels/.rels", _links({"rId1": ("officeDocument", main)}))
        for name, text in parts.items():
            target.writestr(name, text)
    return buffer.getvalue()


def _links(targets: Mapping[str, tuple[str, str]]) -> str:
    links = "".join(
        f'<Relationship Id="{name}" Type="{_LINKS}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'


def _docx(pages: int) -> bytes:
    paragraphs = "".join(
        f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for lines in _lines(pages) for line in lines
    )
    name = f"{_SCHEMAS}/wordprocessingml/2006/main"
    body = f'<w:document xmlns:w="{name}"><w:body>{paragraphs}</w:body></w:document>'
    main = "word/document.xml"
    return _office({main: body}, main, "wordprocessingml.document")


def _pptx(pages: int) -> bytes:
    names = f'xmlns:p="{_SCHEMAS}/presentationml/2006/main" xmlns:r="{_LINKS}" '
    names += f'xmlns:a="{_SCHEMAS}/drawingml/2006/main"'
    parts, slides = {}, {}
    for number, lines in enumerate(_lines(pages)):
        text = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
        parts[f"ppt/slides/slide{number}.xml"] = (
            f"<p:sld {names}><p:cSld><p:spTree><p:sp><p:nvSpPr><p:cNvPr id='1' name='1'/>"
            "<p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/>"
            f"{text}</p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
        )
        slides[f"rId{number + 1}"] = ("slide", f"slides/slide{number}.xml")
    listed = "".join(f'<p:sldId id="{256 + at}" r:id="{name}"/>' for at, name in enumerate(slides))
    main = "ppt/presentation.xml"
    parts[main] = f"<p:presentation {names}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    parts["ppt/_rels/presentation.xml.rels"] = _links(slides)
    return _office(parts, main, "presentationml.presentation")


def _xlsx(pages: int) -> bytes:
    rows = "".join(
        f'<row><c t="inlineStr"><is><t>{line}</t></is></c><c><v>{at * 1.5}</v></c></row>'
        for lines in _lines(pages)
        for at, line in enumerate(lines)
    )
    name = f'xmlns="{_SCHEMAS}/spreadsheetml/2006/main"'
    main = "xl/workbook.xml"
    parts = {
        main: f'<workbook {name} xmlns:r="{_LINKS}"><sheets>'
        '<sheet name="Sales" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _links({"rId1": ("worksheet", "worksheets/sheet1.xml")}),
        "xl/worksheets/sheet1.xml": f"<worksheet {name}><sheetData>{rows}</sheetData></worksheet>",
    }
    return _office(parts, main, "spreadsheetml.sheet")


def _text(pages: int) -> bytes:
    return "\n".join(line for lines in _lines(pages) for line in lines).encode()


def _csv(pages: int) -> bytes:
    rows = (f'"{line}",{at * 1.5}' for lines in _lines(pages) for at, line in enumerate(lines))
    return "\n".join(("text,amount", *rows)).encode()


def _html(pages: int) -> bytes:
    body = "".join(f"<p>{line}</p>" for lines in _lines(pages) for line in lines)
    return f"<!doctype html><title>Sales</title><h1>Sales</h1>{body}".encode()


_FORMATS = {
    "pdf": _pdf,
    "docx": _docx,
    "pptx": _pptx,
    "xlsx": _xlsx,
    "csv": _csv,
    "html": _html,
    "txt": _text,
}


def _formats_table() -> Table:
    table = Table("format", "engine", "pages a CPU s", "peak MB", "idle MB", "failed")
    table.title = f"{_PAGES} pages of {_LINES} lines, CPU of the conversion alone"
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in _FORMATS.items():
            file = Path(folder) / f"pages.{kind}"
            file.write_bytes(make(_PAGES))
            for name, engine in ENGINES.items():
                if kind not in engine.kinds or not engine.is_installed:
                    continue
                facts = measured(name, Path(folder), [file])
                speed = f"{_PAGES / max(facts['cpu_s'], 0.001):,.0f}"
                memory = (f"{facts[key]:.0f}" for key in ("peak_mb", "idle_mb"))
                table.add_row(kind, name, speed, *memory, "; ".join(facts["failed"]))
                if IS_SMOKE:
                    break
    return table


class _Job:
    """Takes the reports of progress."""

    async def progress(self, fraction: float, note: str = "") -> None:
        """Ignore it."""


async def _sell(parser: Any, name: str, data: bytes) -> str:
    """Check and parse a document, as a sale does; return the sentence of a refusal."""
    request = gateway.GenerationRequest(attachment=gateway.Attachment(name=name, data=data))
    try:
        await parser.validate(request, None)
        await parser.submit(request, _Job())
    except gateway.InvalidInput as error:
        return str(error)
    return ""


async def _sales(name: str, data: bytes, count: int) -> tuple[float, float, str]:
    """Return the CPU and wall seconds of sales in one sandbox, with its start, and a refusal."""
    from gateway_documents.provider import DocumentParser

    parser = DocumentParser()
    before, began = sum(os.times()[:4]), time.monotonic()
    refusals = [await _sell(parser, name, data) for _ in range(count)]
    wall_s = time.monotonic() - began
    await parser.close()
    await asyncio.sleep(0.5)  # until the processes are waited for
    return sum(os.times()[:4]) - before, wall_s, "; ".join(filter(None, refusals[:1]))


def _scan() -> bytes:
    page = Image.new("RGB", (1240, 1754), "white")
    draw = ImageDraw.Draw(page)
    for at, line in enumerate(_lines(1)[0]):
        draw.text((100, 100 + 38 * at), line, fill="black", font_size=26)
    file = io.BytesIO()
    page.save(file, "PNG")
    return file.getvalue()


async def _sales_table() -> Table:
    from gateway_documents.provider import DocumentParser

    title = "A sale in the sandbox: checked before payment, and parsed after it"
    table = Table("document", "CPU s", "wall s", "refused", title=title)
    started_s, _, _ = await _sales("a.pdf", _pdf(1), 1)
    cpu_s, wall_s, refusal = await _sales("a.pdf", _pdf(1), 1 + _SALES)
    each = ((cpu_s - started_s) / _SALES, wall_s / (1 + _SALES))
    table.add_row("a PDF of one page", *(f"{value:.3f}" for value in each), refusal)
    cpu_s, wall_s, refusal = await _sales("a.pdf", _pdf(_LONG_PAGES), 1)
    row = (f"{cpu_s - started_s:.1f}", f"{wall_s:.1f}", refusal)
    table.add_row(f"a PDF of {_LONG_PAGES:,} pages", *row)
    if DocumentParser().reads_pictures:
        cpu_s, wall_s, refusal = await _sales("a.png", _scan(), 1)
        table.add_row(
            "a scanned page, with the models' start", f"{cpu_s:.1f}", f"{wall_s:.1f}", refusal
        )
    return table


def run() -> list[Table]:
    """Measure, and return the tables."""
    return [_formats_table(), uvloop.run(_sales_table())]
