"""Running headers of a PDF stay once; titles of the same words stay where they are."""

import documents_pdf as pdf
import pytest

from gateway_documents.child import libraries, parsing

NAME = "Annual Report"


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(*pages):
    return parsing.parse("pdf", pdf.write(pages)).pages


def body(page, number):
    for line in range(6):
        words = f"Line {line} of the harbour, page {number}, is as long as every other line."
        page.text(72, 350 - 14 * line, words)
    return page


@pytest.mark.parametrize("header", [1, 2])
def test_titles_that_equal_the_running_header_stay(header):
    """The cover has the title in its middle, and the fourth page a chapter of this name."""

    def one(number):
        page = pdf.Page()
        if number >= header:
            page.text(72, 810, NAME, size=9)
        if number in {1, 4}:
            page.text(72, 450, NAME, size=24, font=pdf.BOLD)
        return body(page, number)

    pages = parsed(*map(one, range(1, 7)))
    assert [page.count(f"# {NAME}") for page in pages] == [1, 0, 0, 1, 0, 0]
    others = [page.count(NAME) for page in pages]
    assert others == ([2, 0, 0, 1, 0, 0] if header == 1 else [1, 1, 0, 1, 0, 0])


def test_a_chapter_that_begins_in_the_margin_stays():
    def one(number):
        page = pdf.Page()
        if number == 4:
            page.text(72, 780, NAME, size=24, font=pdf.BOLD)
        else:
            page.text(72, 810, NAME, size=9)
        return body(page, number)

    assert [NAME in page for page in parsed(*map(one, range(1, 7)))] == [
        *(True, False, False),
        *(True, False, False),
    ]


def test_a_running_header_that_is_a_heading_on_every_page_stays_once():
    def one(number):
        page = pdf.Page()
        page.text(72, 790, NAME, size=18, font=pdf.BOLD)
        return body(page, number)

    pages = parsed(*map(one, range(1, 7)))
    assert [page.count(NAME) for page in pages] == [1, 0, 0, 0, 0, 0]
