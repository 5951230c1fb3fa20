"""How the lines of a page are set: their fonts, sizes and places."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Self

import attrs
import liteparse
from liteparse import TextItem

from gateway_documents.child.lines import Box, to_lines

_BOLD = re.compile(r"bold|black|heavy|demi|medi(?!um)|(?:cm|ec|sf|tl)\w*bx\d", re.IGNORECASE)
_ITALIC = re.compile(r"ital|obliq|(?:cm|ec|sf)\w*ti\d", re.IGNORECASE)
_MONO = re.compile(
    r"mono(?!type)|courier|consol|typewriter|cmtt|sftt|codepro|firacode", re.IGNORECASE
)
_SUBSET = re.compile(r"^[A-Z]{6}\+")


def is_bold(font: str) -> bool:
    """Whether the name of a font says that it is bold."""
    return bool(_BOLD.search(font))


@attrs.frozen
class Style:
    """How a line is set."""

    font: str
    size: int

    @classmethod
    def of(cls, item: TextItem) -> Self:
        """Return the style of a piece of text; a scaled font has the size 1."""
        size = item.font_size or 0
        return cls(_SUBSET.sub("", item.font_name or ""), round(size if size > 1 else item.height))

    @property
    def is_bold(self) -> bool:
        """Whether the font is so by its name."""
        return is_bold(self.font)

    @property
    def is_italic(self) -> bool:
        """Whether the font is so by its name."""
        return bool(_ITALIC.search(self.font))

    @property
    def is_mono(self) -> bool:
        """Whether the font is one for code."""
        return bool(_MONO.search(self.font))


def body_style(pages: Iterable[liteparse.ParsedPage]) -> Style:
    """Return the style that most letters of a document have, except those of code."""
    count: Counter[Style] = Counter()
    for page in pages:
        for item in page.text_items:
            count[Style.of(item)] += len(item.text)
    texts = [style for style in count if not style.is_mono] or count
    return max(texts, key=count.__getitem__, default=Style("", 0))


@attrs.frozen
class TextLine:
    """A line of a block."""

    box: Box
    style: Style
    """Of its longest piece."""
    styles: frozenset[Style]
    """Of all pieces that have letters."""
    letters: int
    """Letters and digits."""

    @property
    def letter_width(self) -> float:
        """The average width of a character."""
        return (self.box.right - self.box.left) / max(len(self.box.text), 1)

    @property
    def is_bold(self) -> bool:
        """Whether all of the line is bold."""
        return self.style.is_bold and all(style.is_bold for style in self.styles)

    @property
    def is_italic(self) -> bool:
        """Whether all of the line is italic."""
        return self.style.is_italic and all(style.is_italic for style in self.styles)


class PageLines:
    """The lines of a page, found by place."""

    def __init__(self, page: liteparse.ParsedPage) -> None:
        self.height = page.height
        fonts = {item.font_name for item in page.text_items}
        sizes = {item.font_size for item in page.text_items}
        self.has_one_style = len(fonts) == len(sizes) == 1
        self.has_mono = any(_MONO.search(font or "") for font in fonts)
        boxes = (
            (Box(one.x, one.x + one.width, one.y, one.y + one.height, one.text), one)
            for one in page.text_items
        )
        self._pieces = sorted(boxes, key=lambda piece: piece[0].top + piece[0].bottom)
        self._middles = [box.middle[1] for box, _ in self._pieces]

    def within(self, around: Box) -> list[TextLine]:
        """Return the lines in a rectangle from top to bottom."""
        first = bisect_left(self._middles, around.top)
        inside = {}
        for box, item in self._pieces[first:]:
            if box.top + box.bottom > 2 * around.bottom:
                break
            if box.is_within(around):
                inside[box] = item
        return [_line(line, [inside[box] for box in line]) for line in to_lines(inside)]


def _line(boxes: Sequence[Box], items: Sequence[TextItem]) -> TextLine:
    letters = [sum(map(str.isalnum, box.text)) for box in boxes]
    longest = max(zip(letters, items, strict=True), key=lambda one: one[0])[1]
    styles = [Style.of(item) for item, count in zip(items, letters, strict=True) if count]
    around = Box(
        boxes[0].left,
        max(box.right for box in boxes),
        min(box.top for box in boxes),
        max(box.bottom for box in boxes),
        " ".join(box.text for box in boxes),
    )
    return TextLine(around, Style.of(longest), frozenset(styles), sum(letters))
