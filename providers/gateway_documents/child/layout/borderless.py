"""Puts tables without drawn cells in the place of the blocks that have their words."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import liteparse
from liteparse import AnnotationRect, LayoutBlock, LayoutCell

from gateway_documents.child.layout import aligned, head_lines
from gateway_documents.child.layout.aligned import Group, Line
from gateway_documents.child.layout.blocks import RULED, box_of, cells
from gateway_documents.child.layout.grids import letters_of, text_of, words_of
from gateway_documents.child.layout.rules import Rule, rules_across
from gateway_documents.child.lines import Box

_MAX_WORDS = 5_000
# The fewest rows, and the side of the page: all of it, left or right.
_PASSES = ((aligned.MIN_ROWS, 0), (aligned.MIN_ROWS, -1), (aligned.MIN_ROWS, 1), (1, 0))
# The share of letters that may be missing or repeated.
_MAX_LOST = 0.02
# Words that may be missing: those that are written in other parts.
_MAX_MISSING = 2
_TOKEN = re.compile(r"\w+")
# In heights of a line: rows that are further apart have one line.
_APART = 0.7


def replace_blocks(page: liteparse.ParsedPage, blocks: list[LayoutBlock]) -> list[LayoutBlock]:
    """Return the blocks with those of aligned values replaced by tables.

    A table that would lose or repeat words is ignored.
    """
    words = [*words_of(page)]
    drawn = [box_of(block) for block in blocks if block.id == RULED]
    words = [word for word in words if not any(map(word.is_within, drawn))]
    if not 0 < len(words) <= _MAX_WORDS:
        return blocks
    rules = rules_across(page)
    middle = aligned.Span.of(words).middle
    for least, side in _PASSES:
        area = aligned.side_of(words, middle, side)
        for group, above in aligned.find_groups(area, least):
            table, inside = _table(group, above, rules)
            used = set(inside)
            if used.issubset(words) and (not group.is_small or _is_full(table)):
                needs_table = aligned.may_be_contents(group)
                replaced = _replaced(blocks, table, inside, words, needs_table=needs_table)
                blocks = replaced or blocks
                words = [word for word in words if word not in used]
    return blocks


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
        bbox=_around(words),
        rows=[[LayoutCell(text) for text in row] for row in rows],
    ), words


def _is_full(table: LayoutBlock) -> bool:
    """Whether a head and all rows have texts in all columns."""
    return len(table.rows or ()) > 1 and all(cell.text for row in cells(table) for cell in row)


def _around(words: Sequence[Box]) -> AnnotationRect:
    left, top = min(word.left for word in words), min(word.top for word in words)
    right, bottom = max(word.right for word in words), max(word.bottom for word in words)
    return AnnotationRect(left, top, right - left, bottom - top)


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


def _replaced(
    blocks: Sequence[LayoutBlock],
    table: LayoutBlock,
    inside: Sequence[Box],
    words: Sequence[Box],
    *,
    needs_table: bool,
) -> list[LayoutBlock]:
    """Return the blocks with a table in the place of its words; none if words would be lost."""
    above: list[LayoutBlock] = []
    below: list[LayoutBlock] = []
    taken: list[LayoutBlock] = []
    rest: list[LayoutBlock] = []
    used, own = set(inside), _words_by_block(blocks, words)
    for number, block in enumerate(blocks):
        if used.isdisjoint(own[number]):
            (below if taken else above).append(block)
            continue
        taken.append(block)
        others = [word for word in own[number] if word not in used]
        before = [word for word in others if word.top < inside[0].top]
        after = [word for word in others if word.top >= inside[0].top]
        for part, place in ((before, above), (after, below)):
            if part:
                rest.append(_paragraph(block, part))
                place.append(rest[-1])
    is_table = any(block.kind == "table" for block in taken)
    placed = {word for some in own for word in some}
    homeless = [word.text for word in words if word not in placed]
    if not taken or (needs_table and not is_table) or _loses(taken, [*rest, table], homeless):
        return []
    return [*above, table, *below]


def _words_by_block(blocks: Sequence[LayoutBlock], words: Sequence[Box]) -> list[list[Box]]:
    """Return the words of each block; of several blocks, the smallest has them."""
    boxes = [(at, box_of(block)) for at, block in enumerate(blocks) if _has_text(block)]
    boxes.sort(key=lambda pair: (pair[1].right - pair[1].left) * pair[1].height)
    own: list[list[Box]] = [[] for _ in blocks]
    for word in words:
        at = next((at for at, box in boxes if word.is_within(box)), None)
        if at is not None:
            own[at].append(word)
    return own


def _paragraph(block: LayoutBlock, words: Sequence[Box]) -> LayoutBlock:
    return replace(
        block,
        kind="paragraph",
        rows=None,
        header=None,
        level=None,
        text=text_of(words),
        bbox=_around(words),
    )


def _loses(
    blocks: Sequence[LayoutBlock], new: Sequence[LayoutBlock], homeless: Sequence[str]
) -> bool:
    """Whether new blocks lack words of the old ones, or repeat them.

    The old ones may repeat words; `homeless` are those on the page that are in no block's place.
    """
    before, after = letters_of(blocks), letters_of(new)
    most = _MAX_LOST * after.total()
    if (after - before).total() > most:
        return True
    lost = _tokens(blocks) - _tokens(new)
    missing = lost & Counter(token for text in homeless for token in _TOKEN.findall(text))
    is_new = not lost.keys() <= _tokens(new).keys()
    return missing.total() > _MAX_MISSING or ((before - after).total() > most and is_new)


def _tokens(blocks: Sequence[LayoutBlock]) -> Counter[str]:
    texts = [block.text or "" for block in blocks]
    texts += [cell.text for block in blocks for row in cells(block) for cell in row]
    return Counter(token for text in texts for token in _TOKEN.findall(text))


def _has_text(block: LayoutBlock) -> bool:
    return bool(block.text or cells(block) or block.lines)
