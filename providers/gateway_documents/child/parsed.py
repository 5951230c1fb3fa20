"""A parsed document, which every format's parser returns."""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from gateway.domain.words import has_words
from gateway_documents.child.text import controls

# More pages would make a sentence too long.
_MAX_NAMED = 20


def _without_controls(pages: Sequence[str]) -> Sequence[str]:
    return [controls.removed(page) for page in pages]


def on_pages(sentence: str, pages: Iterable[int]) -> Sequence[str]:
    """Return a sentence about pages, which count from 0: `{}` becomes "Pages 2, 5 and 6"."""
    numbers = [f"{page + 1:,}" for page in sorted(pages)]
    if not numbers:
        return ()
    if len(numbers) == 1:
        return (sentence.format(f"Page {numbers[0]}"),)
    shown, left = numbers[:_MAX_NAMED], len(numbers) - _MAX_NAMED
    last = f"{left:,} more" if left > 0 else shown.pop()
    return (sentence.format(f"Pages {', '.join(shown)} and {last}"),)


@attrs.frozen
class Parsed:
    """The Markdown of a document by page, in one piece if the format has no pages."""

    pages: Sequence[str] = attrs.field(converter=_without_controls)
    notes: Sequence[str] = ()
    """Sentences about parts that were left out, or read by a guess."""
    textless: Mapping[int, bool] = attrs.field(factory=dict)
    """Pages to be read as pictures by number, from 0; True: surely no empty page.

    They may have a little text of their own, such as a stamp.
    """

    @property
    def has_text(self) -> bool:
        """Whether a page has words that are its text, as the acceptance of results requires."""
        pages = enumerate(self.pages)
        return any(has_words(page) for number, page in pages if number not in self.textless)
