"""Rows of a table's head that liteparse leaves outside of the table."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import attrs
import liteparse
from liteparse import LayoutBlock, LayoutCell

from gateway_documents.child import tables
from gateway_documents.child.lines import Box
from gateway_documents.child.pdf.layout.blocks import box_of, cells

# How far above a table its head may be, of the height of a line.
_NEAR = 1.5
_ONE_LINE = 2
_MAX_LETTERS = 60


@attrs.frozen(eq=False)
class _Line:
    """A block of text outside of tables that may be a head."""

    block: LayoutBlock
    box: Box
    items: Sequence[Box]
    height: float


def attach(page: liteparse.ParsedPage, blocks: Sequence[LayoutBlock]) -> list[LayoutBlock]:
    """Return the blocks with a line of texts above the columns of a table as its first row."""
    kept = list(blocks)
    found = [block for block in blocks if block.kind == "table"]
    lines = [*_lines(page, blocks)] if found else []
    for table in found:
        columns = _columns(table)
        around = box_of(table)
        for line in lines:
            row = _row(line, around, columns)
            if row:
                kept.remove(line.block)
                lines.remove(line)
                kept[kept.index(table)] = replace(table, header=None, rows=[row, *cells(table)])
                break
    return kept


def _lines(page: liteparse.ParsedPage, blocks: Iterable[LayoutBlock]) -> Iterator[_Line]:
    items = [
        Box(item.x, item.x + item.width, item.y, item.y + item.height, item.text)
        for item in page.text_items
    ]
    items.sort(key=lambda item: item.middle[1])
    middles = [item.middle[1] for item in items]
    for block in blocks:
        if block.kind in ("paragraph", "heading"):
            box = box_of(block)
            near = items[bisect_left(middles, box.top) : bisect_right(middles, box.bottom)]
            inside = [item for item in near if item.is_within(box)]
            yield _Line(block, box, inside, max((item.height for item in inside), default=0))


def _row(line: _Line, around: Box, columns: Sequence[tuple[float, float]]) -> list[LayoutCell]:
    """Return the texts of a line by column; none if it is no head of the table around."""
    items, height = line.items, line.height
    is_above = -height / 2 <= around.top - line.box.bottom <= _NEAR * height
    if (
        not is_above
        or not all(around.left <= item.left and item.right <= around.right for item in items)
        or len(items) < max(2, len(columns) // 2)
        or line.box.height > _ONE_LINE * height
    ):
        return []
    row = [""] * len(columns)
    for item in items:
        middle, _ = item.middle
        at = next((at for at, (left, right) in enumerate(columns) if left <= middle <= right), None)
        if at is None or row[at] or len(item.text) > _MAX_LETTERS:
            return []
        row[at] = tables.cell_text(item.text)
    return [LayoutCell(text) for text in row]


def _columns(table: LayoutBlock) -> list[tuple[float, float]]:
    """Return where each column begins and ends: half-way to the next one."""
    found: list[tuple[float, float]] = []
    for column in zip(*cells(table), strict=False):
        boxes = [cell.bbox for cell in column if cell.bbox and cell.text]
        if not boxes:
            return []
        box = min(boxes, key=lambda box: box.width)
        found.append((min(box.x for box in boxes), box.x + box.width))
    gaps = [(right, left) for (_, right), (left, _) in pairwise(found)]
    edges = [-inf, *((right + left) / 2 for right, left in gaps), inf]
    return [*pairwise(edges)] if all(right <= left + 1 for right, left in gaps) else []
