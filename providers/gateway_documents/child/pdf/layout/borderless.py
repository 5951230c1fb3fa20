"""Puts tables without drawn cells in the place of the blocks that have their words."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import attrs
import liteparse
from liteparse import LayoutBlock, LayoutCell

from gateway_documents.child.lines import Box, to_lines
from gateway_documents.child.pdf.layout import aligned, head_lines
from gateway_documents.child.pdf.layout.aligned import Group, Line
from gateway_documents.child.pdf.layout.blocks import RULED, box_of, cells, rectangle
from gateway_documents.child.pdf.layout.grids import letters_of, text_of, words_of
from gateway_documents.child.pdf.layout.rules import Rule, rules_across

_MAX_WORDS = 5_000
# The fewest rows, and the side of the page: all of it, left or right.
_PASSES = ((aligned.MIN_ROWS, 0), (aligned.MIN_ROWS, -1), (aligned.MIN_ROWS, 1), (1, 0))
# The share of letters that may be missing or repeated.
_MAX_LOST = 0.02
# Words that may be missing: those that are written in other parts.
_MAX_MISSING = 2
_TOKEN = re.compile(r"\w+")


def replace_blocks(page: liteparse.ParsedPage, blocks: list[LayoutBlock]) -> list[LayoutBlock]:
    """Return the blocks with those of aligned values replaced by tables.

    A table that would lose or repeat words is ignored.
    """
    if not _has_gap(page):
        return blocks
    words = [*words_of(page)]
    drawn = [box_of(block) for block in blocks if block.id == RULED]
    words = [word for word in words if not any(map(word.is_within, drawn))]
    if not 0 < len(words) <= _MAX_WORDS or not aligned.has_value(words):
        return blocks
    rules = rules_across(page)
    middle = aligned.Span.of(words).middle
    found = _Page.of(blocks, words)
    for least, side in _PASSES:
        area = _side_of([*filter(found.has, words)], middle, side)
        for group, above in aligned.find_groups(area, least):
            table, inside = _table(group, above, rules)
            if all(map(found.has, inside)) and (not group.is_small or _is_full(table)):
                found.put(table, inside, needs_table=_may_be_contents(group))
    return [place.block for place in found.places]


def _may_be_contents(group: Group) -> bool:
    """Whether labels and numbers may be a table of contents."""
    if len(group.columns) > aligned.PAIR:
        return False
    numbers = [row[1] for _, cells in group.rows if (row := aligned.texts(group, cells))[1]]
    return all(text.isdigit() for text in numbers) and all(
        int(above) <= int(below) for above, below in pairwise(numbers)
    )


def _side_of(words: Sequence[Box], middle: float, side: int) -> Sequence[Box]:
    """Return the words on the left (-1) or the right (1) of a page's middle, or all (0)."""
    if not side:
        return words
    return [word for word in words if (word.middle[0] < middle) == (side < 0)]


def _has_gap(page: liteparse.ParsedPage) -> bool:
    """Whether texts are beside one another, or words of a text apart. Most pages have neither."""
    items = [Box(i.x, i.x + i.width, i.y, i.y + i.height, "") for i in page.text_items]
    return any(len(line) > 1 for line in to_lines(items)) or any(
        word.x - before.x - before.width > aligned.LEAST_GAP * word.height
        for item in page.text_items
        for before, word in pairwise(item.words or ())
    )


def _table(
    group: Group, above: Sequence[Line], rules: Sequence[Rule]
) -> tuple[LayoutBlock, list[Box]]:
    head = head_lines.find(group, above, rules)
    rows = [*head_lines.rows(group, head, rules), *_rows(group)]
    lines = [*head, *(line for line, _ in group.rows)]
    words = [word for line in lines for word in line.words]
    return LayoutBlock(
        kind="table",
        id=RULED,
        bbox=rectangle(words),
        rows=[[LayoutCell(text) for text in row] for row in rows],
    ), words


def _is_full(table: LayoutBlock) -> bool:
    """Whether a head and all rows have texts in all columns."""
    return len(table.rows or ()) > 1 and all(cell.text for row in cells(table) for cell in row)


def _rows(group: Group) -> Iterator[list[str]]:
    """Yield the texts of rows; a label that goes on in the next line is one text."""
    open_label = ""
    for at, (_, line_cells) in enumerate(group.rows):
        row = [""] * len(group.columns)
        for cell in line_cells:
            column = group.column_of(cell)
            row[column] = f"{row[column]} {text_of(cell)}".strip()
        if open_label:
            row[0] = f"{open_label} {row[0]}".strip()
        open_label = row[0] if not any(row[1:]) and _goes_on(group, at) else ""
        if not open_label:
            yield row


def _goes_on(group: Group, at: int) -> bool:
    return at + 1 < len(group.rows) and aligned.goes_on(text_of(group.rows[at + 1][1][0]))


@attrs.define(eq=False)
class _Place:
    """A block, and its words that are in no table."""

    block: LayoutBlock
    words: list[Box] = attrs.field(factory=list)

    def parts(self, top: float) -> Iterator[list["_Place"]]:
        """Yield the places of the words above a table, then of those beside and below it."""
        above = [word for word in self.words if word.top < top]
        below = [word for word in self.words if word.top >= top]
        for words in (above, below):
            yield [_Place(_paragraph(self.block, words), words)] if words else []


@attrs.define
class _Page:
    """The blocks of a page, and the block of each word that is in no table."""

    places: list[_Place]
    owners: dict[Box, _Place | None]
    """None for a word that is in no block."""
    homeless: Counter[str]
    """What words that are in no block consist of."""

    @classmethod
    def of(cls, blocks: Sequence[LayoutBlock], words: Sequence[Box]) -> "_Page":
        """Return a page; of several blocks around a word, the smallest has it."""
        places = [_Place(block) for block in blocks]
        boxes = [(place, box_of(place.block)) for place in places if _has_text(place.block)]
        boxes.sort(key=lambda pair: (pair[1].right - pair[1].left) * pair[1].height)
        owners: dict[Box, _Place | None] = {}
        for word in words:
            owners[word] = next((place for place, box in boxes if word.is_within(box)), None)
            if place := owners[word]:
                place.words.append(word)
        return cls(places, owners, _tokens_of(word.text for word in words if not owners[word]))

    def has(self, word: Box) -> bool:
        """Whether a word is in no table."""
        return word in self.owners

    def put(self, table: LayoutBlock, inside: Sequence[Box], *, needs_table: bool) -> None:
        """Put a table in the place of its words, unless words would be lost."""
        used = {word: self.owners.pop(word) for word in set(inside)}
        taken = {place for place in used.values() if place}
        for place in taken:
            place.words = [word for word in place.words if word not in used]
        above, below = self._around(taken, inside[0].top)
        old = [place.block for place in self.places if place in taken]
        kept = set(self.places)
        parts = [place for place in above + below if place not in kept]
        new = [*(place.block for place in parts), table]
        is_table = any(block.kind == "table" for block in old)
        if old and (is_table or not needs_table) and not _loses(old, new, self.homeless):
            self.places = [*above, _Place(table), *below]
            self.owners |= {word: place for place in parts for word in place.words}
        self.homeless -= _tokens_of(word.text for word, place in used.items() if not place)

    def _around(self, taken: Collection[_Place], top: float) -> tuple[list[_Place], list[_Place]]:
        """Return the places above a table, and those below it, without what it takes."""
        above: list[_Place] = []
        below: list[_Place] = []
        is_below = False
        for place in self.places:
            if place in taken:
                before, after = place.parts(top)
                above += before
                below += after
                is_below = True
            else:
                (below if is_below else above).append(place)
        return above, below


def _paragraph(block: LayoutBlock, words: Sequence[Box]) -> LayoutBlock:
    return replace(
        block,
        kind="paragraph",
        rows=None,
        header=None,
        level=None,
        text=text_of(words),
        bbox=rectangle(words),
    )


def _loses(
    blocks: Sequence[LayoutBlock], new: Sequence[LayoutBlock], homeless: Counter[str]
) -> bool:
    """Whether new blocks lack words of the old ones, or repeat them.

    The old ones may repeat words; `homeless` are those on the page that are in no block.
    """
    before, after = letters_of(blocks), letters_of(new)
    most = _MAX_LOST * after.total()
    if (after - before).total() > most:
        return True
    lost = _tokens(blocks) - _tokens(new)
    missing = lost & homeless
    is_new = not lost.keys() <= _tokens(new).keys()
    return missing.total() > _MAX_MISSING or ((before - after).total() > most and is_new)


def _tokens(blocks: Sequence[LayoutBlock]) -> Counter[str]:
    texts = [block.text or "" for block in blocks]
    texts += [cell.text for block in blocks for row in cells(block) for cell in row]
    return _tokens_of(texts)


def _tokens_of(texts: Iterable[str]) -> Counter[str]:
    return Counter(token for text in texts for token in _TOKEN.findall(text))


def _has_text(block: LayoutBlock) -> bool:
    return bool(block.text or cells(block) or block.lines)
