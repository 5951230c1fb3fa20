"""A file that passes the check before payment is accepted after it: one rule finds words."""

import asyncio
import subprocess
import sys
from pathlib import Path

import documents_files as files
import pytest
from documents_files import request
from test_documents_real_files import refusal

import gateway_documents
from gateway.domain.acceptance import accept
from gateway.sandbox.child import boot
from gateway_documents.child.parsed import Parsed
from gateway_documents.provider import DocumentParser

SHORT = [
    "★★★★☆ ✓",
    "Picture 12",
    "Figure 3",
    "img_001.png",
    "Page",
    "Seite 3 von 7",
    "<config a='b' c='hello world'/>",
    "&#1055;&#1088;",
    "![a](b.png) 7",
]
BLANK = ["![a](b(c).png)", "<!-- page --> -- {1}-----", "# Page 1 of 2", "<br>", "&nbsp;"]


@pytest.fixture(scope="module")
def parser():
    parser = DocumentParser(pictures=None)
    yield parser
    asyncio.run(parser.close())


async def sold(parser, name, data):
    """Return the accepted text of a file that passed the check before payment."""
    sent = request(name, data)
    await parser.validate(sent, gateway_documents.ENDPOINT)
    result = await parser.submit(sent, None)
    return accept(gateway_documents.ENDPOINT, sent, result).text


@pytest.mark.parametrize("text", SHORT)
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
async def test_a_short_text_is_sold(parser, name, text):
    assert await sold(parser, name, text.encode())


@pytest.mark.parametrize("text", SHORT[:6])
async def test_so_is_one_of_word_and_html(parser, text):
    assert await sold(parser, "a.docx", files.docx(text))
    assert await sold(parser, "a.html", f"<p>{text}</p>".encode())


@pytest.mark.parametrize("text", BLANK)
async def test_marks_alone_are_refused_before_payment(parser, text):
    assert not Parsed([text]).has_text
    assert "no text" in await refusal(parser, "a.md", text.encode())


def test_the_child_loads_the_rule_without_the_domain():
    lines = (
        "import boot, sys",
        "boot.announce_around('gateway.domain.words')",
        "boot.announce_around('gateway_documents.child.work')",
        "import gateway_documents.child.work",
        "assert 'gateway.domain.words' in sys.modules",
        "assert 'gateway.domain.offers' not in sys.modules",
    )
    folder = Path(boot.__file__).parent
    path = [str(folder), *sys.path]
    code = f"import sys; sys.path[:] = {path!r}\n" + "\n".join(lines)
    subprocess.run([sys.executable, "-c", code], check=True)
