"""Headings: parted from the text behind them, and those that are no headings made paragraphs."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import attrs
import liteparse
from liteparse import LayoutBlock, TextItem

from gateway_documents.child.layout.blocks import box_of
from gateway_documents.child.lines import Box, to_lines

_BOLD = re.compile(r"bold|black|heavy|demi|medi(?!um)|cmbx", re.IGNORECASE)
_SUBSET = re.compile(r"^[A-Z]{6}\+")
# The first sentence of a paragraph set in bold, and the begin of the next.
_RUN_IN = re.compile(r"(?:\w{1,3}[.)] )?[^.]*\w{2,} [^.]*\w{2,}\. +[A-Z]")
_MAX_LEVEL = 6
# The least share of letters among letters and digits.
_MIN_LETTERS = 0.5
# A longer heading in the body's style, and one with so many commas, is a paragraph.
_MAX_WORDS, _MAX_COMMAS = 12, 4


def is_bold(font: str) -> bool:
    """Whether the name of a font says that it is bold."""
    return bool(_BOLD.search(font))


@attrs.frozen
class Style:
    """How a line is set."""

    font: str
    size: int

    @classmethod
    def of(cls, item: TextItem) -> "Style":
        """Return the style of a piece of text; a scaled font has the size 1."""
        size = item.font_size or 0
        return cls(_SUBSET.sub("", item.font_name or ""), round(size if size > 1 else item.height))

    @property
    def is_bold(self) -> bool:
        """Whether the name of the font says so."""
        return is_bold(self.font)

    def is_like(self, other: "Style") -> bool:
        """Whether a reader could not tell the styles apart."""
        return self.is_bold == other.is_bold and abs(self.size - other.size) <= 0


@attrs.frozen
class _Line:
    style: Style
    letters: int


def body_style(pages: Iterable[liteparse.ParsedPage]) -> Style:
    """Return the style that most letters of a document have."""
    count: Counter[Style] = Counter()
    for page in pages:
        for item in page.text_items:
            count[Style.of(item)] += len(item.text)
    return max(count, key=count.__getitem__, default=Style("", 0))


def refine(
    page: liteparse.ParsedPage, blocks: Sequence[LayoutBlock], body: Style
) -> list[LayoutBlock]:
    """Return the blocks of a page with headings that are one line or several of one style."""
    parted = [part for block in blocks for part in _parts(page, block, body)]
    refined: list[LayoutBlock] = []
    is_open = False
    for index, block in enumerate(parted):
        below = parted[index + 1] if index + 1 < len(parted) else None
        if is_open and block.kind == "paragraph" and (block.text or "")[:1].islower():
            refined[-1].text = f"{refined[-1].text} {block.text}"
            continue
        is_open = block.kind == "heading" and _is_run_in(block, below)
        refined.append(_paragraph(block, block.text or "") if is_open else block)
    return refined


def _parts(page: liteparse.ParsedPage, block: LayoutBlock, body: Style) -> Iterator[LayoutBlock]:
    if block.kind != "heading" or not block.text:
        yield block
        return
    lines = _lines(page, block)
    rest = block.text
    styles = [[*group] for _, group in groupby(lines, key=lambda line: line.style)]
    for number, group in enumerate(styles, 1):
        letters = sum(line.letters for line in group)
        at = len(rest) if number == len(styles) else _position(rest, letters)
        text, rest = rest[:at].strip(), rest[at:]
        if text:
            is_heading = _is_heading(text, group[0].style, body, is_first=number == 1)
            yield replace(block, text=text) if is_heading else _paragraph(block, text)
    if not styles:
        yield block


def _paragraph(block: LayoutBlock, text: str) -> LayoutBlock:
    return replace(block, kind="paragraph", level=None, text=text)


def _is_heading(text: str, style: Style, body: Style, *, is_first: bool) -> bool:
    signs = [char for char in text if char.isalnum()]
    is_body = style.size <= body.size and style.is_bold <= body.is_bold
    return (
        len(signs) > 1
        and sum(map(str.isalpha, signs)) >= _MIN_LETTERS * len(signs)
        and text.count(",") < _MAX_COMMAS
        and not (is_body and (not is_first or len(text.split()) > _MAX_WORDS))
    )


def _lines(page: liteparse.ParsedPage, block: LayoutBlock) -> list[_Line]:
    around = box_of(block)
    inside = {}
    for item in page.text_items:
        box = Box(item.x, item.x + item.width, item.y, item.y + item.height, item.text)
        if box.is_within(around):
            inside[box] = item
    lines = []
    for line in to_lines(inside):
        letters = [sum(map(str.isalnum, box.text)) for box in line]
        longest = max(zip(letters, line, strict=True), key=lambda one: one[0])[1]
        lines.append(_Line(Style.of(inside[longest]), sum(letters)))
    return lines


def _position(text: str, letters: int) -> int:
    """Return the position behind a number of letters and digits, and behind their marks."""
    for at, char in enumerate(text):
        if letters == 0 and char.isspace():
            return at
        letters -= char.isalnum()
    return len(text)


def _is_run_in(block: LayoutBlock, below: LayoutBlock | None) -> bool:
    """Whether a line is the begin of a paragraph whose first words are bold."""
    if below is None or below.kind != "paragraph" or not below.text:
        return False
    return below.text[:1].islower() and bool(_RUN_IN.match(block.text or ""))
