"""Pictures of text: read with the extra, refused before payment without it."""
# ruff: noqa: RUF001 - other alphabets

import importlib.util
import subprocess
import sys
from pathlib import Path

import documents_pdf as pdf
import documents_pictures as pictures
import numpy as np
import pytest
import pytest_asyncio
from documents_files import Job, request, text_page
from PIL import ImageOps

import gateway
import gateway_documents
from gateway.sandbox import Sandbox
from gateway_documents.child.lines import Box, to_text
from gateway_documents.child.pdf import pdf_document as documents_of_pdf
from gateway_documents.child.scans import reading
from gateway_documents.child.scans.lines import Line, Turn, by_direction
from gateway_documents.child.scans.page import Page
from gateway_documents.provider import DocumentParser

EXTRA = ("rapidocr", "onnxruntime", "pypdfium2")
MISSING = [name for name in EXTRA if importlib.util.find_spec(name) is None]
needs_ocr = pytest.mark.skipif(bool(MISSING), reason=f"the extra `ocr` lacks {MISSING}")
in_one_loop = pytest.mark.asyncio(loop_scope="module")
needs_pdfium = pytest.mark.skipif("pypdfium2" in MISSING, reason="pypdfium2 joins the PDFs")


async def parsed(parser, name, data):
    order = request(name, data)
    await parser.validate(order, gateway_documents.ENDPOINT)
    return (await parser.submit(order, Job())).text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def reader():
    """Return a parser with the extra; its process loads the models."""
    parser = DocumentParser()
    yield parser
    await parser.close()


@pytest.fixture
async def with_reader():
    """Makes parsers whose pictures are read by a function of `documents_pictures`."""
    made = []

    def make(name):
        made.append(DocumentParser(pictures=Sandbox(function=f"documents_pictures:{name}")))
        return made[-1]

    yield make
    for parser in made:
        await parser.close()


# -- with the extra


@needs_ocr
@pytest.mark.parametrize(
    "kind",
    [
        "png",
        *(
            pytest.param(kind, marks=pytest.mark.full)
            for kind in ["jpg", "jpeg", "webp", "tif", "tiff", "bmp"]
        ),
    ],
)
@in_one_loop
async def test_a_sentence_in_a_picture_comes_out_as_text(reader, kind):
    image = pictures.drawn("The harbour opens at nine.", "Coffee costs 3,960 dollars.")
    name = {"jpg": "JPEG", "jpeg": "JPEG", "tif": "TIFF"}.get(kind, kind)
    text = await parsed(reader, f"a.{kind}", pictures.saved(image, kind=name))
    assert text == "The harbour opens at nine.\nCoffee costs 3,960 dollars."


@needs_ocr
@in_one_loop
async def test_scanned_pages_of_a_mixed_pdf_are_read_and_put_in_their_places(reader):
    data = pictures.joined(
        text_page("First comes text."),
        pictures.scan("Then comes a picture."),
        pdf.write([pdf.Page()]),
        text_page("Text comes last."),
    )
    text = await parsed(reader, "a.pdf", data)
    places = [text.index(s) for s in ("First comes text", "Then comes a", "Text comes last")]
    assert places == sorted(places)
    assert "not read" not in text


@needs_ocr
@in_one_loop
async def test_a_scanned_pdf_is_read_page_by_page_and_progress_is_told(reader):
    order = request("a.pdf", pictures.scan("The first page.", "The second page."))
    await reader.validate(order, gateway_documents.ENDPOINT)
    job = Job()
    assert (await reader.submit(order, job)).text == "The first page.\n\nThe second page."
    assert job.shown == [0.5, 1.0]


@needs_ocr
@in_one_loop
async def test_every_frame_of_a_tiff_is_read(reader):
    frames = [pictures.drawn(f"This is frame {at}.") for at in ("one", "two")]
    text = await parsed(reader, "a.tif", pictures.saved(*frames, kind="TIFF"))
    assert text == "This is frame one.\n\nThis is frame two."


@needs_ocr
@in_one_loop
async def test_a_picture_that_lies_on_its_side_or_is_transparent_is_read(reader):
    image = pictures.drawn("Up is up.", size=(500, 200))
    exif = image.getexif()
    exif[0x0112] = 6
    lying = pictures.saved(image.rotate(90, expand=True), kind="JPEG", exif=exif)
    assert await parsed(reader, "a.jpg", lying) == "Up is up."
    clear = image.convert("RGBA")
    clear.putalpha(image.convert("L").point(lambda light: 255 - light))
    assert await parsed(reader, "a.png", pictures.saved(clear)) == "Up is up."


SENTENCES = (
    "The harbour opens at nine.",
    "Coffee costs 3,960 dollars.",
    "Every second customer came back within six weeks of the first order.",
)


@needs_ocr
@pytest.mark.parametrize(
    "angle", [90, *(pytest.param(at, marks=pytest.mark.full) for at in (0, 180, -2, 270, 1.5, 181))]
)
@in_one_loop
async def test_a_page_in_any_rotation_is_read_in_order(reader, angle):
    upright = pictures.drawn(*SENTENCES, size=(1500, 300))
    page = upright.rotate(angle, expand=True, fillcolor="white")
    assert await parsed(reader, "a.png", pictures.saved(page)) == " ".join(SENTENCES)


TABLE = """\
| Region | Orders | Bags sold |
| --- | --- | --- |
| North Sea coast | 1,204 | 9,870 |
| Rhine valley | 986 |  |
| Alps | 512 | 3,960 |"""


@pytest.mark.full
@needs_ocr
@in_one_loop
async def test_a_scan_keeps_its_headings_and_tables(reader):
    rows = [
        ("Region", "Orders", "Bags sold"),
        ("North Sea coast", "1,204", "9,870"),
        ("Rhine valley", "986", ""),
        ("Alps", "512", "3,960"),
    ]
    text = await parsed(reader, "a.png", pictures.saved(pictures.report(rows).rotate(1)))
    assert text.split("\n\n") == [
        "# Quarterly report",
        "Online orders grew fastest in the third quarter.",
        TABLE,
        "All figures are preliminary.",
    ]


@needs_ocr
@pytest.mark.parametrize(
    "angle", [0, *(pytest.param(at, marks=pytest.mark.full) for at in (1.5, 180))]
)
@in_one_loop
async def test_a_ruled_table_in_a_picture_keeps_its_cells(reader, angle):
    rows = [("Item", "Price"), ("Green coffee", "3,960"), ("Tea", ""), ("Cocoa", "1,250")]
    page = pictures.ruled(rows).rotate(angle, fillcolor="white")
    assert await parsed(reader, "a.png", pictures.saved(page)) == (
        "| Item | Price |\n| --- | --- |\n| Green coffee | 3,960 |\n| Tea |  |\n| Cocoa | 1,250 |"
    )


@needs_ocr
@in_one_loop
async def test_lines_of_a_receipt_stay_lines(reader):
    shop = ["The Corner Shop", "14 Harbour Street", "Please come again"]
    rows = [[shop[0]], [shop[1]], ["Green coffee", "3.50"], ["Total:", "3.50"], [shop[2]]]
    text = await parsed(reader, "a.png", pictures.saved(pictures.ruled(rows, width=0)))
    assert text.split("\n") == [" ".join(row) for row in rows]


@needs_ocr
def test_a_scanned_page_keeps_the_characters_of_all_scripts():
    sentence = "Příliš žluťoučký kůň úpěl ďábelské ódy, as the 𠮷 said."
    texts = (sentence, "人人生而自由，在尊严和权利上一律平等。港口上午九点开放。", "出", "A")
    documents_of_pdf.warm_up()
    page = Page.of(np.full((900, 900), 255, np.uint8), read(*texts))
    found = documents_of_pdf.parse(page.to_pdf()).pages[0].translate(page.rare)
    assert found.split() == " ".join(texts).split()


async def refusal(parser, name, data):
    """Return the message that refuses a file before payment."""
    with pytest.raises(gateway.InvalidInput) as refused:
        await parser.validate(request(name, data), gateway_documents.ENDPOINT)
    return str(refused.value)


@needs_ocr
@in_one_loop
async def test_a_picture_of_which_nothing_can_be_read_is_refused_before_payment(reader):
    for image in (pictures.drawn(), pictures.drawn().convert("L")):
        assert "contains no text" in await refusal(reader, "a.png", pictures.saved(image))
    whole = pictures.saved(pictures.drawn("Half of me is missing."))
    assert "damaged" in await refusal(reader, "a.png", whole[: len(whole) // 2])
    # Mirrored letters are those of an unknown script.
    mirrored = ImageOps.mirror(pictures.drawn(*SENTENCES, size=(1500, 300)))
    assert "another script" in await refusal(reader, "a.png", pictures.saved(mirrored))
    for pages in ([pictures.drawn(), mirrored], [mirrored, mirrored, mirrored]):
        scanned = pictures.saved(*pages, kind="PDF")
        assert "another script" in await refusal(reader, "a.pdf", scanned)


@pytest.mark.full
@needs_ocr
@in_one_loop
async def test_a_scan_may_begin_with_pages_without_text(reader):
    empty, full = pictures.drawn(), pictures.drawn("Words at last.")
    for pages in ([empty, full], [empty, empty, full]):
        data = pictures.saved(*pages, kind="PDF")
        assert "Words at last." in await parsed(reader, "a.pdf", data)


def read(*texts, certainty=1.0, size=(600.0, 20.0)):
    """Return lines as the reader returns them."""
    return [line(text, 10, 30 * at, *size, certainty) for at, text in enumerate(texts)]


def line(text, left, top, width, height, certainty=1.0):
    right, bottom = left + width, top + height
    corners = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], float)
    return Line(corners, text, certainty)


# As the reader returned them for pages in these scripts.
FOREIGN = {
    "Russian": (["  ,        ", "     k  "], 0.88),
    "Greek": (["εα  αιρ εναι αλ αι παε λτα στ π πλα"], 0.89),
    "Hebrew": ([' 7 79 7"07 7 a10  a D1n T7 79l 7'], 0.61),
    "Greek capitals": (["OΛOI OI ANOPΩNIOI FENNIOYNTAI", "EΛEYOEPOI KAI IΣOI"], 0.94),
    "Armenian": (["ınmbm  ıu hum ulu", "unmb  ıu hum ulu"], 0.83),
    "Thai": (["5ιιāun", "ιāun"], 0.6),
}


@pytest.mark.parametrize(("texts", "certainty"), FOREIGN.values(), ids=FOREIGN)
def test_scripts_that_the_reader_does_not_know_are_illegible(texts, certainty):
    assert not reading.is_legible(read(*texts, certainty=certainty))


def test_known_scripts_are_legible():
    for text in (
        "The quick brown fox jumps over the lazy dog.",
        "R is 4.7 kΩ and Δt is 3 μs",
        "今日は天気が良いので、川のそばの公園",
    ):
        assert reading.is_legible(read(text, certainty=0.9, size=(360.0, 20.0)))
        assert not reading.is_doubtful(read(text, certainty=0.98, size=(360.0, 20.0)))


def test_signs_in_a_picture_do_not_become_markdown():
    lines = ["# 12 main street", "- item one", "<b>bold</b>", "---"]
    boxes = [Box(10, 610, 30 * at, 30 * at + 20, text) for at, text in enumerate(lines)]
    assert to_text(boxes) == "\\# 12 main street\n\\- item one\n\\<b>bold\\</b>\n\\---"


def test_columns_of_vertical_writing_are_read_from_right_to_left():
    columns = [line(text, 300 - 60 * at, 10, 30, 390) for at, text in enumerate("一二三")]
    turn = Turn.of(columns[0].direction, 400, 500)
    boxes = [turn.box(column.corners, column.text) for column in columns]
    assert [box.text for box in sorted(boxes, key=lambda box: box.top)] == ["一", "二", "三"]


def test_lines_are_grouped_by_their_direction():
    columns = [line(text, 300 - 60 * at, 10, 30, 390) for at, text in enumerate("一二三")]
    title = line("title", 10, 10, 200, 20)
    assert by_direction([title, *columns]) == [[title], columns]


@pytest.mark.full
@needs_ocr
def test_the_models_come_with_the_library_and_nothing_is_fetched():
    root = Path(__file__).parents[3]
    script = (
        "import socket, sys; sys.path[:0] = sys.argv[1:]\n"
        "from gateway_documents.child.scans import recognition\n"
        "socket.socket.connect = socket.getaddrinfo = None\n"
        "recognition.load_models()"
    )
    command = [sys.executable, "-c", script, str(root), str(root / "providers")]
    subprocess.run(command, check=True, timeout=120)


def test_with_the_extra_the_endpoint_says_so(monkeypatch):
    for found in (importlib.util.find_spec("attrs"), None):
        sold = []
        with monkeypatch.context() as patched:
            patched.setattr(importlib.util, "find_spec", lambda name, found=found: found)
            gateway_documents.register_endpoints(
                lambda *pair, sold=sold: sold.extend(pair), gateway.Settings()
            )
        assert ("scanned pages" in sold[0].description) is (found is not None)


# -- limits


async def test_more_pictures_than_are_read_are_refused_before_payment(with_reader):
    parser = with_reader("read_even_pages")
    tiny = pictures.saved(*[pictures.drawn(size=(20, 20))] * 51, kind="PDF")
    with pytest.raises(gateway.InvalidInput, match="51 pages of the file are pictures"):
        await parser.validate(request("a.pdf", tiny), gateway_documents.ENDPOINT)
    frames = request("a.tif", pictures.saved(*[pictures.drawn(size=(20, 20))] * 51, kind="TIFF"))
    with pytest.raises(gateway.InvalidInput, match="reads up to 50 of them"):
        await parser.validate(frames, gateway_documents.ENDPOINT)


async def test_a_page_that_cannot_be_read_is_named_and_the_others_are_kept(with_reader):
    parser = with_reader("read_even_pages")
    text = await parsed(parser, "a.pdf", pictures.scan("one", "two", "three"))
    assert text == "page 0\n\n*(Page 2 is a picture, which was not read.)*\n\npage 2"


async def test_pictures_found_only_after_payment_are_read_up_to_the_limit(with_reader, monkeypatch):
    monkeypatch.setattr("gateway_documents.page_reader.MAX_PAGES", 1)
    text = await parsed(with_reader("read_even_pages"), "a.pdf", pictures.scan("1", "2", "3"))
    assert text.split("\n\n") == [
        "page 0",
        "*(Page 2 is a picture, which was not read.)*",
        "*(Page 3 is a picture, which was not read.)*",
    ]


async def test_a_file_of_which_nothing_can_be_read_fails(with_reader):
    with pytest.raises(gateway.InvalidInput, match=r"It is damaged\."):
        await parsed(with_reader("read_nothing"), "a.pdf", pictures.scan("one", "two"))


@pytest.mark.full
async def test_a_reader_that_is_killed_on_one_page_is_worth_another_try(with_reader):
    with pytest.raises(gateway.Transient, match="killed from outside"):
        await parsed(with_reader("vanish_on_odd_pages"), "a.pdf", pictures.scan("one", "two"))


# -- from boxes to lines


@pytest.mark.full
def test_boxes_become_lines_and_paragraphs():
    boxes = [
        Box(300, 340, 12, 31, "right."),
        Box(10, 90, 10, 30, "Left and"),
        Box(10, 90, 40, 60, "Next line."),
        Box(10, 150, 100, 120, "New paragraph."),
    ]
    assert to_text(boxes) == "Left and right.\nNext line.\n\nNew paragraph."
    assert to_text([]) == ""
    assert Box.around([[5, 1], [9, 2], [9, 8], [4, 7]], " x ") == Box(4, 9, 1, 8, "x")
