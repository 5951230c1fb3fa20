"""Faults that real files showed: each file is read, or refused before payment for its reason."""

import asyncio
import io
import re
import zipfile

import documents_files as files
import documents_pdf as pdf
import documents_pictures as pictures
import pytest
from documents_files import request
from PIL import Image
from test_documents_ocr import needs_ocr

import gateway
import gateway_documents
from gateway_documents.child.parsed import Parsed
from gateway_documents.provider import DocumentParser

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.fixture(scope="module")
def parser():
    parser = DocumentParser(pictures=None)
    yield parser
    asyncio.run(parser.close())


async def text_of(parser, name, data):
    await parser.validate(request(name, data), gateway_documents.ENDPOINT)
    return (await parser.submit(request(name, data), None)).text


async def refusal(parser, name, data):
    """Return the message that refuses a file before payment."""
    with pytest.raises(gateway.InvalidInput) as refused:
        await parser.validate(request(name, data), gateway_documents.ENDPOINT)
    return str(refused.value)


def changed(data: bytes, **parts: str) -> bytes:
    """Return an archive with other contents of its members with these names, or more members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return files.archive(members | parts)


async def test_openoffice_names_a_document_type_that_declares_nothing(parser):
    manifest = '<!DOCTYPE m:manifest PUBLIC "-//OpenOffice.org//DTD Manifest 1.0//EN" "m.dtd">'
    manifest += '<m:manifest xmlns:m="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    data = changed(files.odt(), **{"META-INF/manifest.xml": manifest})
    assert "Online orders grew fastest." in await text_of(parser, "a.odt", data)


async def test_a_broken_part_beside_the_text_costs_nothing(parser):
    data = changed(files.docx("Words of the body."), **{"word/styles.xml": "no XML <at all"})
    assert "Words of the body." in await text_of(parser, "a.docx", data)


async def test_an_indented_spreadsheet_is_read(parser):
    with zipfile.ZipFile(io.BytesIO(files.ods())) as archive:
        content = archive.read("content.xml").decode()
    indented = changed(files.ods(), **{"content.xml": content.replace("><", ">\n  <")})
    assert await text_of(parser, "a.ods", indented) == await text_of(parser, "a.ods", files.ods())


async def test_a_locked_file_is_not_called_damaged(parser):
    name = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    manifest = f'<m:manifest xmlns:m="{name}"><m:file-entry m:full-path="content.xml">'
    manifest += '<m:encryption-data m:checksum="x"/></m:file-entry></m:manifest>'
    cipher = {"content.xml": "\x02cipher <!x", "META-INF/manifest.xml": manifest}
    beginning = b"\x09\x08\x10\0" + bytes(16)
    locked = OLE + beginning + b"\x2f\0\x06\0" + bytes(600)
    for_certificates = b"%PDF-1.7\n1 0 obj<</Filter/Adobe.PubSec/V 5>>endobj\n"
    for_certificates += b"2 0 obj<</Pages 3 0 R>>endobj trailer<</Encrypt 1 0 R/Root 2 0 R>>\n%%EOF"
    odt = changed(files.odt(), **cipher)
    for file, data in (("a.odt", odt), ("a.xls", locked), ("a.pdf", for_certificates)):
        assert "encrypted" in await refusal(parser, file, data), file
    open_but_broken = OLE + beginning + b"\x42\0\x02\0" + bytes(600)
    assert "damaged" in await refusal(parser, "a.xls", open_but_broken)


async def test_the_oldest_word_documents_are_named(parser):
    sentence = await refusal(parser, "a.doc", OLE + b"\xdc\xa5\x68\0" + bytes(600))
    assert "unknown" in sentence
    assert "Word 95" in sentence


async def test_a_presentation_without_slides_has_no_text(parser):
    with zipfile.ZipFile(io.BytesIO(files.pptx())) as archive:
        main = archive.read("ppt/presentation.xml").decode()
    empty = re.sub("<p:sldIdLst>.*</p:sldIdLst>", "", main)
    assert empty != main
    data = changed(files.pptx(), **{"ppt/presentation.xml": empty})
    assert "no text" in await refusal(parser, "a.pptx", data)


async def test_a_cell_may_name_an_empty_style(parser):
    with zipfile.ZipFile(io.BytesIO(files.xlsx())) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    styled = sheet.replace("<c r=", '<c s="" r=')
    assert styled != sheet
    data = changed(files.xlsx(), **{"xl/worksheets/sheet1.xml": styled})
    assert await text_of(parser, "a.xlsx", data) == await text_of(parser, "a.xlsx", files.xlsx())


async def test_a_page_of_only_a_running_line_keeps_it(parser):
    pages = []
    for number in range(5):
        pages.append(pdf.Page())
        pages[-1].text(80, 800, f"Label {number}")
    text = await text_of(parser, "a.pdf", pdf.write(pages))
    assert text.split("\n\n") == [f"Label {number}" for number in range(5)]


async def test_a_file_of_only_marks_has_no_text(parser):
    for name, data in (("a.html", b"<p>-----</p>"), ("a.csv", b";;\n;;"), ("a.md", b"---\n")):
        assert "no text" in await refusal(parser, name, data), name
    page = pdf.Page()
    page.text(80, 700, "--- !")
    assert "no text" in await refusal(parser, "a.pdf", pdf.write([page]))
    assert await text_of(parser, "a.txt", "\u2764".encode()) == "\u2764"


def test_characters_without_a_meaning_are_no_words():
    assert not Parsed(["\ufffd\ufffd \ue000", "| - |"]).has_text
    assert Parsed(["", "7"]).has_text


def test_characters_that_a_database_refuses_are_left_out():
    assert Parsed(["T\0i\0t\0l\0e\0\tand\nmore\ufffe"]).pages == ["Title\tand\nmore"]


@pytest.mark.full
@needs_ocr
def test_a_scan_without_words_on_any_page_is_refused_before_payment():
    empty, full = pictures.drawn(), pictures.drawn("Words at last.")

    photo = Image.radial_gradient("L").resize((1000, 300))

    async def check() -> None:
        reader = DocumentParser()
        marks = pictures.drawn("! - !")
        for pages in ([empty] * 6, [photo] * 4, [empty, photo, empty], [marks]):
            scanned = pictures.saved(*pages, kind="PDF")
            assert "no text" in await refusal(reader, "a.pdf", scanned)
        mostly_empty = pictures.saved(*[empty] * 6, full, kind="PDF")
        await reader.validate(request("a.pdf", mostly_empty), gateway_documents.READING_PICTURES)
        await reader.close()

    asyncio.run(check())
