"""No number, sign or word is lost or changed, and headings, items and rows end as sentences."""

import pytest

from gateway_speech.child import reading


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("It was −5 °C, then –6 °C", "It was minus 5 °C, then minus 6 °C"),
        ("7 − 3", "7 minus 3"),
        ("10⁶ and 2⁸", "10 to the power of 6 and 2 to the power of 8"),
        ("10⁻³ and (x)²", "10 to the power of -3 and (x) squared"),
        ("E = mc² and 5 km³", "E = mc squared and 5 km cubed"),
        ("a footnote¹ here", "a footnote here"),
        ("2½ cups, 1 ¾ or ⅓", "2 and 1/2 cups, 1 and 3/4 or 1/3"),
        ("⅝-inch and 1⁄3", "5/8-inch and 1/3"),
        ("10\u202f000 or 1\u00a0234\u00a0567", "10,000 or 1,234,567"),
        ("₹ 500, 500 € and ¢", "₹ 500, €500 and ¢"),
        ("5 million € now", "5 million euros now"),
        ("in\u00adfor\u00adma\u00adtion hel\u200blo wor\u2060ld", "information hello world"),
        ("~5 km", "about 5 km"),
        ("https://example.com/café/menu?x=1", "example dot com slash café slash menu"),
        ("5 < 6 > 3", "5 < 6 > 3"),
    ],
)
def test_a_symbol_keeps_its_meaning(text, spoken):
    assert reading.spoken(text) == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("# Title\nText", "Title. Text"),
        ("Title\n=====\nText", "Title.\n\nText"),
        (
            "To buy:\n- eggs\n- milk and\n  bread\n- tea!\n\nNow",
            "To buy: eggs. milk and bread. tea!\n\nNow",
        ),
        ("Steps\n1. first\n2) second", "Steps. 1. first. 2) second"),
        ("| a | b |\n|---|---|\n| 1 | 2. |", "a, b.\n\n1, 2."),
        ("<h1>Title</h1><p>A <b>bold</b> one<br/>", "Title\n\nA bold one"),
        ("<speak>Hello <break time='3s'/> world</speak>", "Hello\n\nworld"),
        ("if a <b and c> d, AT&amp;T", "if a <b and c> d, AT&T"),
    ],
)
def test_a_block_ends_as_a_sentence_and_tags_are_not_read(text, spoken):
    assert reading.spoken(text) == spoken
