"""PDFs with pages that cannot be read: the result names them, and keeps the numbers of the file."""

import asyncio
import json

import pytest
from documents_files import Job, request
from documents_raw_pdf import raw_pdf, text

import gateway
import gateway_documents
from gateway_documents.child import libraries, parsing
from gateway_documents.child.parsed import on_pages
from gateway_documents.provider import DocumentParser

NOTE = "Page 2 could not be read: the file is damaged there."


@pytest.fixture(scope="module")
def parser():
    parser = DocumentParser(pictures=None)
    yield parser
    asyncio.run(parser.close())


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def shows(words, operators=""):
    return f"{operators} {text(72, 700, words)}"


def pages_of(data):
    found = parsing.parse("pdf", data)
    return found.pages, found.notes


def test_a_lost_page_is_named_and_leaves_its_place():
    data = raw_pdf([shows("Page one."), None, shows("Page three.")])
    assert pages_of(data) == (["Page one.", "", "Page three."], (NOTE,))


@pytest.mark.parametrize("lost", [{0}, {3}, {0, 1}, {0, 3}, {1, 2, 3}])
def test_pages_lost_anywhere_leave_their_places(lost):
    contents = [None if at in lost else shows(f"Page number {at}.") for at in range(4)]
    pages, notes = pages_of(raw_pdf(contents))
    assert pages == ["" if at in lost else f"Page number {at}." for at in range(4)]
    assert notes == on_pages("{} could not be read: the file is damaged there.", lost)


def test_a_file_of_lost_pages_only_is_damaged():
    with pytest.raises(Exception, match="damaged"):
        parsing.parse("pdf", raw_pdf([None, None]))


@pytest.mark.parametrize(
    "operators",
    [
        "BT 3 Tr /F1 12 Tf 72 600 Td (Invisible.) Tj ET 0 Tr",
        # Turned by a quarter.
        "0 1 -1 0 800 0 cm",
    ],
)
def test_numbers_stay_in_files_that_are_written_again(operators):
    data = raw_pdf([shows("Page one."), None, shows("Page three.", operators)])
    pages, notes = pages_of(data)
    assert (pages, notes[0]) == (["Page one.", "", "Page three."], NOTE)


async def test_the_text_and_the_json_say_so(parser):
    order = request("a.pdf", raw_pdf([shows("Page one."), None, shows("Page three.")]))
    order = gateway.GenerationRequest(attachment=order.attachment, output_format="json")
    await parser.validate(order, gateway_documents.ENDPOINT)
    result = await parser.submit(order, Job())
    assert result.text == f"Page one.\n\nPage three.\n\n*({NOTE})*"
    described = json.loads(result.outputs[0].data)
    assert [page["number"] for page in described["pages"]] == [1, 2, 3]
    assert described["pages"][2]["markdown"] == "Page three."
    assert described["notes"] == [NOTE]


@pytest.mark.parametrize(
    ("pages", "sentence"),
    [
        ([], ()),
        ([1], ("Page 2.",)),
        ([5, 1], ("Pages 2 and 6.",)),
        ([1, 2, 1500], ("Pages 2, 3 and 1,501.",)),
    ],
)
def test_a_sentence_names_pages(pages, sentence):
    assert on_pages("{}.", pages) == sentence


def test_a_sentence_about_many_pages_names_the_first():
    (sentence,) = on_pages("{}.", range(100))
    assert sentence.startswith("Pages 1, 2, 3, ")
    assert sentence.endswith("20 and 80 more.")
