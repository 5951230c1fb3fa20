"""Tables that liteparse finds by the gaps between words, where no lines are drawn."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

import liteparse
from liteparse import AnnotationRect, LayoutBlock, LayoutCell

from gateway_documents.child.lines import Box
from gateway_documents.child.pdf.layout.blocks import RULED, box_of, cells

Row = list[LayoutCell]
# Of pairs of cells, one below the other: the share of sentences that go on in the next cell.
_FLOWING = 0.4
# The least such share in each column, and the share of its rows that a column has text in.
_FLOWING_EACH, _FILLED = 0.25, 0.5
# Rows are no lines of the body if the gap between them is this part of a line's height.
_APART = 0.7
# Points by which the edges of aligned cells differ.
_ALIGNED = 2.0
_MIN_ROWS, _LONG_CELL = 3, 20
# The share of cells of a justified paragraph that begin with a small letter.
_LOWER = 0.6
_MIN_TITLE_WORDS = 3
# A gap between rows is wide if it is so many times the gap between the lines of a cell.
_WIDE, _SAME = 1.6, 1.15


def mend(page: liteparse.ParsedPage, blocks: Sequence[LayoutBlock]) -> list[LayoutBlock]:
    """Return the blocks with columns and paragraphs of text instead of false tables.

    Of the other tables, lines of one cell become one row, and a title above the head is parted.
    """
    mended: list[LayoutBlock] = []
    for block in blocks:
        rows = cells(block)
        if block.kind != "table" or block.id == RULED:
            mended.append(block)
        elif _are_columns(rows):
            mended += [_text_block(column) for column in zip(*rows, strict=False)]
        elif len(rows) == 1 or _is_prose(rows):
            text = " ".join(cell.text for row in rows for cell in row if cell.text)
            mended.append(LayoutBlock(kind="paragraph", text=text, bbox=block.bbox))
        else:
            mended += _with_title(page, replace(block, header=None, rows=_joined(rows)))
    return mended


def _text_block(column: Sequence[LayoutCell]) -> LayoutBlock:
    """Return a column as a heading, of which the lines in the body's style are parted later."""
    text = " ".join(cell.text for cell in column if cell.text)
    return LayoutBlock(kind="heading", level=1, text=text, bbox=_around(column))


def _around(some: Sequence[LayoutCell]) -> AnnotationRect | None:
    boxes = [cell.bbox for cell in some if cell.bbox]
    if not boxes:
        return None
    left, top = min(box.x for box in boxes), min(box.y for box in boxes)
    right, bottom = (
        max(box.x + box.width for box in boxes),
        max(box.y + box.height for box in boxes),
    )
    return AnnotationRect(left, top, right - left, bottom - top)


def _are_columns(rows: Sequence[Row]) -> bool:
    """Whether sentences go on from row to row in every column, as in text in columns."""
    columns = [list(column) for column in zip(*rows, strict=False)]
    filled = [column for column in columns if _filled(column) >= _FILLED * len(rows)]
    return (
        len(rows) >= _MIN_ROWS
        and not _are_apart(rows)
        and _flow(columns) >= _FLOWING
        and all(_flow([column]) >= _FLOWING_EACH for column in filled)
    )


def _filled(column: Sequence[LayoutCell]) -> int:
    return sum(bool(cell.text) for cell in column)


def _flow(columns: Sequence[Sequence[LayoutCell]]) -> float:
    """Return the share of cells, one below the other, whose sentence goes on."""
    pairs = [
        (above.text, below.text)
        for column in columns
        for above, below in pairwise(column)
        if above.text and below.text
    ]
    flowing = sum(
        len(above) >= _LONG_CELL and above[-1] not in ".!?:" and below[0].islower()
        for above, below in pairs
    )
    return float(flowing / max(len(pairs), 1))


def _are_apart(rows: Sequence[Row]) -> bool:
    """Whether the gaps between most rows are wider than those between lines."""
    boxes = [box for box in map(_around, rows) if box]
    if len(boxes) < _MIN_ROWS:
        return False
    gap = statistics.median(below.y - above.y - above.height for above, below in pairwise(boxes))
    return bool(gap > _APART * min(box.height for box in boxes))


def _is_prose(rows: Sequence[Row]) -> bool:
    """Whether rows are the lines of a paragraph with wide spaces."""
    texts = [cell.text for row in rows for cell in row if cell.text]
    lower = sum(text[0].islower() for text in texts)
    return (
        lower >= _LOWER * len(texts)
        and not any(char.isdigit() for text in texts for char in text)
        and not _are_aligned(rows)
    )


def _are_aligned(rows: Sequence[Row]) -> bool:
    """Whether the cells of each column begin, end or have their middle at one place."""
    columns = [
        [cell.bbox for cell in column if cell.text and cell.bbox]
        for column in zip(*rows, strict=False)
    ]
    return len(rows) > 1 and all(
        any(
            max(places) - min(places) <= _ALIGNED
            for part in (0, 0.5, 1)
            if (places := [box.x + part * box.width for box in boxes])
        )
        for boxes in columns
        if boxes
    )


def _joined(rows: Sequence[Row]) -> list[Row]:
    """Return rows with those joined whose gap is that between the lines of a cell."""
    extents = [_around(row) for row in rows]
    if None in extents or len(rows) < _MIN_ROWS:
        return [*rows]
    gaps = [below.y - above.y - above.height for above, below in pairwise(filter(None, extents))]
    heights = statistics.median(box.height for box in extents if box)
    pitches = [gap + heights for gap in gaps]
    tight = min(pitches)
    is_tight = [pitch <= _SAME * tight for pitch in pitches]
    wide = [pitch for pitch, narrow in zip(pitches, is_tight, strict=True) if not narrow]
    is_full = any(
        narrow and all(cell.text for cell in row)
        for row, narrow in zip(rows[1:], is_tight, strict=True)
    )
    if tight <= 0 or is_full or min(wide, default=0) < _WIDE * tight:
        return [*rows]
    joined = [rows[0]]
    for row, narrow in zip(rows[1:], is_tight, strict=True):
        if narrow:
            joined[-1] = [_both(*pair) for pair in zip(joined[-1], row, strict=False)]
        else:
            joined.append(row)
    return joined


def _both(above: LayoutCell, below: LayoutCell) -> LayoutCell:
    text = " ".join(filter(None, (above.text, below.text)))
    return LayoutCell(text, _around([above, below]))


def _with_title(page: liteparse.ParsedPage, table: LayoutBlock) -> Iterator[LayoutBlock]:
    """Yield a title that liteparse repeats in each cell of the head, and the table."""
    rows = table.rows or []
    heads = [cell.text.split() for cell in rows[0] if cell.text] if rows else []
    title = max((_shared(*pair) for pair in pairwise(heads)), key=len, default=[])
    repeating = [head for head in heads if head[: len(title)] == title]
    box = _title_box(page, table, title) if len(title) >= _MIN_TITLE_WORDS else None
    if box is None or 2 * len(repeating) < len(heads):
        yield table
        return
    yield LayoutBlock(kind="heading", level=1, text=" ".join(title), bbox=box)
    head = [LayoutCell(_without(cell.text, title), cell.bbox) for cell in rows[0]]
    yield replace(table, rows=[head, *rows[1:]])


def _shared(one: Sequence[str], other: Sequence[str]) -> list[str]:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return [word for word, _ in pairs]


def _without(text: str, title: Sequence[str]) -> str:
    words = text.split()
    return " ".join(words[len(title) :] if words[: len(title)] == title else words)


def _title_box(
    page: liteparse.ParsedPage, table: LayoutBlock, title: Sequence[str]
) -> AnnotationRect | None:
    """Return where the words of a title are, if the page has each only once."""
    around = box_of(table)
    inside, words = [], []
    for item in page.text_items:
        box = Box(item.x, item.x + item.width, item.y, item.y + item.height, item.text)
        if box.is_within(around) and all(word in title for word in item.text.split()):
            inside.append(LayoutCell("", AnnotationRect(item.x, item.y, item.width, item.height)))
            words += item.text.split()
    return _around(inside) if sorted(words) == sorted(title) else None
