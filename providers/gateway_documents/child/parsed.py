"""A parsed document, which every format's parser returns."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import chain

import attrs

# Some files have them between letters. Databases refuse NUL.
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffe\uffff]")


def _without_controls(pages: Sequence[str]) -> Sequence[str]:
    return [_CONTROLS.sub("", page) for page in pages]


def _is_text(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char) == "So"


@attrs.frozen
class Parsed:
    """The Markdown of a document by page, in one piece if the format has no pages."""

    pages: Sequence[str] = attrs.field(converter=_without_controls)
    notes: Sequence[str] = ()
    """Sentences about parts that were left out, or read by a guess."""
    textless: Mapping[int, bool] = attrs.field(factory=dict)
    """Pages without text by number, from 0; True: surely a picture and not an empty page."""

    @property
    def has_text(self) -> bool:
        """Whether a page has a letter, digit or picture character, and not only marks."""
        return any(map(_is_text, chain.from_iterable(self.pages)))
