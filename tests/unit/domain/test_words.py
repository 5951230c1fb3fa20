"""What is a word in Markdown, and what only stands for a picture or a page break."""

import pytest

from gateway.domain.words import has_words

WORDS = [
    "★★★★☆ ✓",
    "❤",
    "Picture 12",
    "Figure 3",
    "img_001.png",
    "Page",
    "Page 7",
    "**Page 7**",
    "Seite 3 von 7",
    "<config a='b' c='hello world'/>",
    "<?xml version='1.0'?><entry id='7'/>",
    "&#1055;&#1088;",
    "&#9733;",
    "&hearts;",
    "&eacute;",
    "\\<img src='a.png'>",
    "\\![a](b.png)",
    "![a](b.png) Total",
    "![a](b(c.png) Total",
    "![a [b](c.png) Total",
    "![a](" + "(" * 5_000 + "\n\nTotal",
    "[![a](b.png)](c) Total",
    "{1}----- Total",
    "[image] of a boat",
    "--- page break --- Total",
    "# Page 7 of history",
    "<p>7</p>",
    "①",
]
NONE = [
    "![a](b(c).png)",
    "![a](b(c(d)e)f.png)",
    "![a](<b(c>.png)",
    "![a](b(c).png 'a title (x)')",
    "![a [b] c](d.png)",
    "![a][b [c] d]",
    "[![a](b(c).png)](d(e).html)",
    "[![a](b.png)][c]",
    "![a](b.png)" * 30,
    "<!-- page --> -- {1}-----",
    "{1}----- {2}-----",
    "<!-- a --> [image] <!-- b -->",
    "<br> --- page break ---<br>",
    "* NO_CONTENT_HERE *",
    "## Page 1 of 2",
    "--- Seite 3 ---",
    "<Page number='3'/>",
    "<img src='a.png'/><BR>",
    "&nbsp;&#160;&amp;&#8203;",
    "\ufffd\ufffd \ue000",
    "| - | — | • |",
    "«»…",
    " " * 40_000 + "{7}" + "-" * 60,
]


@pytest.mark.parametrize("text", WORDS)
def test_a_word_or_a_symbol_is_one(text):
    assert has_words(text)
    assert has_words(f"<!-- image -->\n\n![a](b.png)\n{text}")
    assert has_words(" " * 29_990 + text)


@pytest.mark.parametrize("text", NONE)
def test_what_stands_for_something_else_is_none(text):
    assert not has_words(text)
    assert not has_words(f"<!-- image --> {text}\n\n![a](b.png)\n{text}")
    assert has_words(f"{text}\n\nTotal")


@pytest.mark.full
@pytest.mark.parametrize(
    "part",
    ["![", "![a](", "![a]((", "![a](b)", "[![", "<p ", "<!--", "—", "&amp;", "{1}---", "\\!"],
)
def test_the_time_grows_with_the_length_alone(part):
    """A square of the length would take hours."""
    has_words(part * (500_000 // len(part)))
    has_words(part * (500_000 // len(part)) + ")")
