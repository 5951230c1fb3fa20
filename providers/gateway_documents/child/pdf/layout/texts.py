"""The text of a block, cut where its lines end."""

import re
from collections.abc import Iterable

from gateway_documents.child.pdf.layout.styles import TextLine

_LINK = re.compile(r"\]\([^()\s]*\)")


def count(text: str) -> int:
    """Return the number of letters and digits; targets of links are left out."""
    return sum(map(str.isalnum, _LINK.sub("", text)))


def cut(text: str, lines: Iterable[TextLine], *, is_last: bool) -> tuple[str, str]:
    """Return the begin of a text, which are these lines, and the rest."""
    at = len(text) if is_last else _position(text, sum(line.letters for line in lines))
    return text[:at].strip(), text[at:]


def _position(text: str, letters: int) -> int:
    """Return the position behind a number of letters and digits, and behind their marks."""
    links = {at for found in _LINK.finditer(text) for at in range(*found.span())}
    for at, char in enumerate(text):
        if at in links:
            continue
        if letters == 0 and char.isspace():
            return at
        letters -= char.isalnum()
    return len(text)
