"""Writes a text as people read it aloud, where the voice's own rules fall short.

The voice itself reads plain numbers, dates, times, money, units and titles. These rules come first:
symbols, headings and lists, addresses, short forms, phone numbers and other numbers.
"""

import re

from gateway_speech.child import addresses, blocks, numerals, symbols

_SHORT = {
    "e.g.": "for example",
    "i.e.": "that is",
    "a.k.a.": "also known as",
    "cf.": "compare",
    "24/7": "twenty-four seven",
}
_SHORT_FORM = re.compile(
    r"(?<![\w/.])("
    + "|".join(re.escape(one) for one in sorted(_SHORT, key=len, reverse=True))
    + r")(?![\w/])",
    re.IGNORECASE,
)
_REPEATED = re.compile(r"([^\w\s.])\1{2,}")
_DASHES = re.compile(r"(?<=\s)(?<!\d )-{1,3}(?=\s)|(?<=\s)-{1,3}(?=\s\D)|(?<=\w)--(?=\w)")
_PARAGRAPHS = re.compile(r"\n\s*\n")


def spoken(text: str) -> str:
    """Return the text for the voice; empty lines stay between paragraphs."""
    text = blocks.spoken(symbols.spoken(blocks.without_tags(text)))
    text = addresses.spoken(text)
    text = _SHORT_FORM.sub(lambda found: _SHORT[found[0].lower()], text)
    text = numerals.spoken(text)
    text = _REPEATED.sub(" ", text)
    text = _DASHES.sub(" — ", text)
    lines = (" ".join(one.split()) for one in _PARAGRAPHS.sub("\0", text).split("\0"))
    return "\n\n".join(one for one in lines if any(map(str.isalnum, one)))
