"""Pictures of text without the extra `ocr`: refused before payment, or named in the text."""

import asyncio
import importlib.util

import documents_files as files
import documents_pdf as pdf
import documents_pictures as pictures
import pytest
import structlog
from documents_files import Job, request, text_page

import gateway
import gateway_documents
from gateway_documents.provider import DocumentParser

needs_pdfium = pytest.mark.skipif(
    importlib.util.find_spec("pypdfium2") is None, reason="pypdfium2 joins the PDFs"
)


@pytest.fixture(scope="module")
def blind():
    """Return a parser without it."""
    parser = DocumentParser(pictures=None)
    yield parser
    asyncio.run(parser.close())


async def parsed(parser, name, data):
    order = request(name, data)
    await parser.validate(order, gateway_documents.ENDPOINT)
    return (await parser.submit(order, Job())).text


async def test_without_the_extra_pictures_are_refused_before_payment(blind):
    for name, data in {
        "a.png": pictures.saved(pictures.drawn("Hello")),
        "a.jpeg": pictures.saved(pictures.drawn("Hello"), kind="JPEG"),
        "a.pdf": pictures.scan("Hello"),
        "b.pdf": files.scanned_pdf(),
    }.items():
        with pytest.raises(gateway.InvalidInput, match="only a picture of it"):
            await blind.validate(request(name, data), gateway_documents.ENDPOINT)
        with pytest.raises(gateway.InvalidInput, match="only a picture of it"):
            await blind.submit(request(name, data), Job())


async def test_the_operator_is_told_the_way_out_once():
    parser = DocumentParser(pictures=None)
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            with pytest.raises(gateway.InvalidInput):
                await parser.validate(
                    request("a.png", pictures.saved(pictures.drawn())), gateway_documents.ENDPOINT
                )
    assert [log["remedy"] for log in logs] == ["pip install 'generation-gateway[ocr]'"]


@needs_pdfium
async def test_without_the_extra_a_mixed_pdf_says_which_page_is_missing(blind):
    data = pictures.joined(
        text_page("Text here."), pictures.scan("Hello"), pdf.write([pdf.Page()]), text_page("More.")
    )
    text = await parsed(blind, "a.pdf", data)
    assert text.count("not read") == 1
    assert "*(Page 2 is a picture, which was not read.)*" in text
    assert "Text here" in text.partition("*(")[0]
    assert "More" in text.partition(")*")[2]


async def test_what_is_no_picture_is_not_taken_for_one(blind):
    for name, data in {"a.png": b"text", "a.jpg": files.sample_pdf(), "a.bmp": b"BMW,Audi"}.items():
        with pytest.raises(gateway.InvalidInput, match="but the file is"):
            await blind.validate(request(name, data), gateway_documents.ENDPOINT)
    picture = pictures.saved(pictures.drawn())
    for name in ("a.pdf", "a.docx", "a.txt"):
        with pytest.raises(gateway.InvalidInput, match="but the file is a picture"):
            await blind.validate(request(name, picture), gateway_documents.ENDPOINT)
