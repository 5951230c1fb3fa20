"""List items whose bullets are drawn, as in PDFs that a browser printed."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import liteparse
from liteparse import LayoutBlock

from gateway_documents.child.lines import Box
from gateway_documents.child.pdf.layout import texts
from gateway_documents.child.pdf.layout.blocks import box_of, rectangle
from gateway_documents.child.pdf.layout.styles import PageLines, TextLine

# The least and the most points of a bullet, and by which its sides differ.
_MIN_SIDE, _MAX_SIDE, _UNEVEN = 1.5, 8.0, 0.5
# How far a bullet is from its text at most, of the height of the line.
_NEAR = 1.5
# A bullet is smaller than this part of a line's height.
_MAX_PART = 0.6
# Points that a deeper list is indented by at least.
_INDENT = 6.0
_MAX_SHAPES = 2_000


def mark(
    page: liteparse.ParsedPage, lines: PageLines, blocks: Sequence[LayoutBlock]
) -> list[LayoutBlock]:
    """Return the blocks with lines behind a drawn bullet as list items."""
    drawn = [*_bullets(page)]
    if not drawn:
        return [*blocks]
    lefts = sorted({round(bullet.left) for bullet in drawn})
    return [part for block in blocks for part in _parts(lines, block, drawn, lefts)]


def _bullets(page: liteparse.ParsedPage) -> Iterator[Box]:
    shapes = page.vector_graphics.shapes if page.vector_graphics else []
    for shape in shapes if len(shapes) <= _MAX_SHAPES else ():
        left, top, width, height = shape.bbox
        if _MIN_SIDE <= width <= _MAX_SIDE and abs(width - height) <= _UNEVEN:
            yield Box(left, left + width, top, top + height, "")


def _parts(
    page: PageLines, block: LayoutBlock, drawn: Sequence[Box], lefts: Sequence[int]
) -> Iterator[LayoutBlock]:
    lines = page.within(box_of(block)) if block.kind in ("paragraph", "heading") else []
    found = [next((one for one in drawn if _is_bullet(one, line)), None) for line in lines]
    rest = block.text or ""
    if not any(found) or texts.count(rest) != sum(line.letters for line in lines):
        yield block
        return
    starts = [
        at for at, bullet in enumerate(found) if at == 0 or bullet or _is_out(lines, found, at)
    ]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        text, rest = texts.cut(rest, lines[start:end], is_last=end == len(lines))
        bullet = found[start]
        part = replace(block, text=text, bbox=rectangle([line.box for line in lines[start:end]]))
        if bullet:
            level = _level(bullet, lefts)
            part = replace(part, kind="list_item", ordered=False, marker=None, level=level)
        if text:
            yield part


def _is_bullet(bullet: Box, line: TextLine) -> bool:
    middle = (bullet.top + bullet.bottom) / 2
    return (
        line.box.top < middle < line.box.bottom
        and 0 < line.box.left - bullet.right <= _NEAR * line.box.height
        and bullet.height <= _MAX_PART * line.box.height
    )


def _is_out(lines: Sequence[TextLine], found: Sequence[Box | None], at: int) -> bool:
    """Whether a line begins left of the item before it: it is the first one of another text."""
    above = next((up for up in range(at - 1, -1, -1) if found[up]), None)
    if above is None:
        return False
    least = lines[above].box.left - _INDENT
    return lines[at].box.left < least <= lines[at - 1].box.left


def _level(bullet: Box, lefts: Sequence[int]) -> int:
    level, last = 0, lefts[0]
    for left in lefts:
        if left - last >= _INDENT and left <= round(bullet.left):
            level, last = level + 1, left
    return level
