"""Scans with a text layer: OCR replaces a stamp or an advertisement, and a good layer is kept."""

import asyncio
import json

import documents_pictures as pictures
import pytest
from documents_files import Job, request
from documents_raw_pdf import raw_pdf, stream, text
from PIL import Image
from test_documents_ocr import needs_ocr

import gateway
import gateway_documents
from gateway.sandbox import Sandbox
from gateway_documents.child import libraries, parsing
from gateway_documents.provider import DocumentParser

LINES = [f"Line {at} of a letter about the rent of a flat in Vienna" for at in range(12)]
INVISIBLE = "BT 3 Tr ET"
UNREAD = "Page 1 is a picture, which was not read."


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


@pytest.fixture
def with_reader():
    made = []

    def make(name):
        sandbox = name and Sandbox(function=f"documents_pictures:{name}")
        made.append(DocumentParser(pictures=sandbox))
        return made[-1]

    yield make
    for parser in made:
        asyncio.run(parser.close())


def letter(*lines, paper="white", noise=0):
    """Return a picture of a letter of a page's shape."""
    image = pictures.drawn(*lines, size=(1275, 1650))
    if noise:
        image = Image.blend(image, Image.effect_noise(image.size, noise).convert("RGB"), 0.2)
    if paper != "white":
        image = Image.composite(Image.new("RGB", image.size, paper), image, image.convert("L"))
    return image


def scan(image, *layers, place="612 0 0 792 0 0", **options):
    """Return a PDF of pages with this picture, each with a text layer."""
    entries = f"/Type/XObject/Subtype/Image/Width {image.width}/Height {image.height}"
    entries += "/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode"
    contents = [f"q {place} cm /I1 Do Q {layer}" for layer in layers]
    more = {50: stream(pictures.saved(image, kind="JPEG"), entries)}
    return raw_pdf(contents, resources="/XObject<</I1 50 0 R>>", more=more, **options)


def layer(lines, operators=INVISIBLE):
    """Return the lines over those of `letter`."""
    shown = [text(14, 770 - 28.8 * at, line, size=18) for at, line in enumerate(lines)]
    return " ".join((operators, *shown))


LAYERS = {
    "advertisement": text(230, 20, "Scanned with CamScanner"),
    "header": text(72, 775, "Case 1:20-cv-01234 Document 17 Filed 03/04/21 Page 1 of 1", size=9),
    "stamp": text(250, 400, "RECEIVED 12 MAR 2024", size=24),
    "number": text(500, 20, "ACME-0001234"),
    "source": text(40, 12, "Downloaded from https://example.com by a guest on 1 May 2024", size=8),
    "first line": layer(LINES[:1]),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_that_is_not_the_text_does_not_count(kind):
    found = parsing.parse("pdf", scan(letter(*LINES), LAYERS[kind]))
    assert found.textless == {0: True}
    assert not found.has_text


@pytest.mark.parametrize(
    "image",
    [letter(*LINES, paper=(235, 225, 200)), letter(*LINES, noise=60)],
    ids=["yellow paper", "noise"],
)
def test_a_scan_is_found_on_paper_that_is_not_white(image):
    assert parsing.parse("pdf", scan(image, LAYERS["advertisement"])).textless == {0: True}


@pytest.mark.parametrize("operators", [INVISIBLE, ""])
@pytest.mark.parametrize("count", [12, 8, 2])
def test_a_good_layer_is_kept(operators, count):
    lines = LINES[:count]
    found = parsing.parse("pdf", scan(letter(*lines), layer(lines, operators)))
    assert found.textless == {}
    assert LINES[count - 1] in found.pages[0]


def test_layers_of_ocr_that_lack_most_letters_do_not_count():
    digits, fuller = layer(["20 12 4"]), layer(LINES[:3])
    bad = parsing.parse("pdf", scan(letter(*LINES), digits, digits, fuller))
    assert bad.textless == {0: True, 1: True, 2: True}
    good = parsing.parse("pdf", scan(letter(*LINES), layer(LINES), layer(LINES), fuller))
    assert good.textless == {}


def test_a_picture_without_text_below_words_is_no_scan():
    sky = Image.linear_gradient("L").resize((1275, 1650)).convert("RGB")
    for image in (sky, Image.new("RGB", (1275, 1650), "navy"), letter()):
        found = parsing.parse("pdf", scan(image, text(200, 400, "Thank you", size=40)))
        assert (found.textless, found.has_text) == ({}, True)


def test_a_small_picture_is_no_scan():
    data = scan(letter(*LINES), LAYERS["stamp"], place="300 0 0 390 100 100")
    assert parsing.parse("pdf", data).textless == {}


@pytest.mark.full
def test_a_long_scan_is_judged_by_its_first_pages():
    pages = [LAYERS["number"]] * 45
    assert len(parsing.parse("pdf", scan(letter(*LINES), *pages)).textless) == 45


async def test_without_the_extra_it_is_refused_before_payment(with_reader):
    order = request("a.pdf", scan(letter(*LINES), LAYERS["advertisement"]))
    parser = with_reader(None)
    for check in (
        parser.validate(order, gateway_documents.ENDPOINT),
        parser.submit(order, Job()),
    ):
        with pytest.raises(gateway.InvalidInput, match="only a picture of it"):
            await check


async def test_without_the_extra_the_page_of_a_longer_file_is_named(with_reader):
    data = scan(letter(*LINES), LAYERS["advertisement"], layer(LINES))
    order = request("a.pdf", data)
    order = gateway.GenerationRequest(attachment=order.attachment, output_format="json")
    parser = with_reader(None)
    await parser.validate(order, gateway_documents.ENDPOINT)
    result = await parser.submit(order, Job())
    assert result.text.startswith(f"Scanned with CamScanner\n\n*({UNREAD})*\n\nLine 0")
    assert json.loads(result.outputs[0].data)["notes"] == [UNREAD]


async def test_what_is_read_takes_the_place_of_the_layer(with_reader):
    order = request("a.pdf", scan(letter(*LINES), text(230, 20, "Ad")))
    parser = with_reader("read_even_pages")
    await parser.validate(order, gateway_documents.ENDPOINT)
    assert (await parser.submit(order, Job())).text == "page 0"


async def test_a_layer_with_more_letters_than_is_read_stays(with_reader):
    order = request("a.pdf", scan(letter(*LINES), LAYERS["header"]))
    result = await with_reader("read_even_pages").submit(order, Job())
    assert "Filed 03/04/21" in result.text


@pytest.mark.full
@needs_ocr
async def test_the_whole_page_is_read():
    parser = DocumentParser()
    order = request("a.pdf", scan(letter(*LINES), LAYERS["advertisement"]))
    try:
        await parser.validate(order, gateway_documents.ENDPOINT)
        read = (await parser.submit(order, Job())).text
    finally:
        await parser.close()
    assert "about the rent of a flat in Vienna" in read
    assert "CamScanner" in read
