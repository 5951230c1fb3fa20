"""Word files with faulty attributes, with this package's own marks, and with endless repetition.

The larger files are parsed within the limits before payment, which a quadratic parser exceeds.
"""

import asyncio

import pytest
from documents_files import request
from documents_word import paragraph, run, word

import gateway_documents
from gateway_documents.child import libraries, parsing
from gateway_documents.errors import Unreadable
from gateway_documents.provider import DocumentParser

KINDS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


@pytest.fixture(scope="module")
def parser():
    parser = DocumentParser(pictures=None)
    yield parser
    asyncio.run(parser.close())


@pytest.fixture(scope="module", autouse=True)
def loaded():
    libraries.load_lazy_parts()


def parsed(data):
    return "\n\n".join(parsing.parse("docx", data).pages)


async def sold(parser, data):
    """Return the Markdown of a file that is accepted before payment."""
    await parser.validate(request("a.docx", data), gateway_documents.ENDPOINT)
    return (await parser.submit(request("a.docx", data), None)).text


@pytest.mark.parametrize("code", ["zz", "", "-41", "0x41", "1_0", "٤١", "²", "9" * 5000])
def test_a_symbol_without_a_valid_code_costs_no_other_text(code):
    sign = f'<w:r><w:sym w:font="Arial" w:char="{code}"/></w:r>'
    assert parsed(word(paragraph(sign + run("Words")))) == "Words"


@pytest.mark.parametrize("result", ["²", "-1", "٤", "x", "2", "9" * 5000])
def test_a_list_whose_choice_does_not_exist_shows_none(result):
    choices = f'<w:ddList><w:result w:val="{result}"/><w:listEntry w:val="yes"/></w:ddList>'
    field = f"<w:r><w:fldChar><w:ffData>{choices}</w:ffData></w:fldChar></w:r>"
    assert parsed(word(paragraph(field + run("Words")))) == "Words"


def test_text_that_resembles_a_mark_is_no_place_for_a_file():
    def with_files(text):
        links = "".join(
            f'<Relationship Id="c{at}" Type="{KINDS}/aFChunk" Target="{at}.html"/>'
            for at in range(2)
        )
        body = paragraph(text) + '<w:altChunk r:id="c0"/><w:altChunk r:id="c1"/>'
        files = {"word/0.html": f"<p>One {text}</p>", "word/1.html": "<p>Two</p>"}
        return parsed(word(body, links=links, files=files))

    assert with_files("\ufdd20\ufdd3, \ufdd21\ufdd3") == "0, 1\n\nOne 0, 1\n\nTwo"
    assert with_files("\ufdd0slide\ufdd1") == "slide\n\nOne slide\n\nTwo"


async def test_many_deleted_paragraphs_are_removed(parser):
    gone = paragraph("", "<w:rPr><w:del/></w:rPr>")
    assert await sold(parser, word(paragraph("First.") + gone * 30_000 + paragraph("Last."))) == (
        "First.\n\nLast."
    )
    cell = f"<w:tbl><w:tr><w:tc>{gone * 2}</w:tc><w:tc>{paragraph('x')}</w:tc></w:tr></w:tbl>"
    assert "x" in await sold(parser, word(cell))


def style(name, based_on, properties=""):
    return (
        f'<w:style w:type="paragraph" w:styleId="{name}"><w:basedOn w:val="{based_on}"/>'
        f"<w:rPr>{properties}</w:rPr></w:style>"
    )


def styled(text, name):
    return paragraph(text, f'<w:pStyle w:val="{name}"/>')


async def test_a_style_hides_text_through_any_number_of_others(parser):
    count = 6_000
    chain = "".join(style(f"s{at}", f"s{at + 1}") for at in range(count))
    shown = style("shown", "s0", '<w:vanish w:val="0"/>')
    hiding = style(f"s{count}", "", "<w:vanish/>")
    body = styled("Secret", "s0") + styled("Seen", "shown") + styled("Secret", f"s{count // 2}")
    assert await sold(parser, word(body, styles=chain + shown + hiding)) == (
        "Seen\n\n*(Hidden text was left out.)*"
    )


def test_a_style_that_shows_text_ends_the_hiding_by_those_below():
    body = "".join(styled(f"By {name}.", name) for name in "abcd")
    styles = style("a", "b") + style("b", "c", '<w:vanish w:val="0"/>') + style("c", "d")
    assert parsed(word(body, styles=styles + style("d", "", "<w:vanish/>"))) == "By a.\n\nBy b."


def test_styles_based_on_each_other_are_refused():
    with pytest.raises(Unreadable, match="damaged"):
        parsed(word(styled("Words", "a"), styles=style("a", "b") + style("b", "a")))


async def test_a_header_of_many_sections_is_copied_once(parser):
    sections = 3_000
    section = '<w:sectPr><w:headerReference w:type="default" r:id="header1"/></w:sectPr>'
    header = "".join(paragraph(f"Head line {at}") for at in range(sections))
    text = await sold(parser, word(paragraph("x", section) * sections, header1=header))
    assert text.startswith("Head line 0\n\nHead line 1\n")
    assert text.count("Head line 7\n") == 1
    assert text.count("x") == sections
