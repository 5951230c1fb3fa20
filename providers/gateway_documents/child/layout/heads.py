"""Rows of a table's head that liteparse leaves outside of the table."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import liteparse
from liteparse import LayoutBlock, LayoutCell

from gateway_documents.child import tables
from gateway_documents.child.layout.blocks import box_of, cells
from gateway_documents.child.lines import Box

# How far above a table its head may be, of the height of a line.
_NEAR = 1.5
_ONE_LINE = 2
_MAX_LETTERS = 60


def attach(page: liteparse.ParsedPage, blocks: Sequence[LayoutBlock]) -> list[LayoutBlock]:
    """Return the blocks with a line of texts above the columns of a table as its first row."""
    kept = list(blocks)
    for table in [block for block in blocks if block.kind == "table"]:
        columns = _columns(table)
        for block in [block for block in kept if block.kind in ("paragraph", "heading")]:
            row = _row(page, block, table, columns)
            if row:
                kept.remove(block)
                at = kept.index(table)
                table = replace(table, header=None, rows=[row, *cells(table)])  # noqa: PLW2901
                kept[at] = table
                break
    return kept


def _row(
    page: liteparse.ParsedPage,
    block: LayoutBlock,
    table: LayoutBlock,
    columns: Sequence[tuple[float, float]],
) -> list[LayoutCell]:
    """Return the texts of a line by column; none if it is no head of the table."""
    items = [*_items(page, box_of(block))]
    around, line = box_of(table), box_of(block)
    height = max((item.height for item in items), default=0)
    is_above = -height / 2 <= around.top - line.bottom <= _NEAR * height
    is_within = all(around.left <= item.left and item.right <= around.right for item in items)
    if (
        not is_above
        or not is_within
        or len(items) < max(2, len(columns) // 2)
        or line.height > 2 * height
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


def _items(page: liteparse.ParsedPage, around: Box) -> Iterator[Box]:
    for item in page.text_items:
        box = Box(item.x, item.x + item.width, item.y, item.y + item.height, item.text)
        if box.is_within(around):
            yield box
