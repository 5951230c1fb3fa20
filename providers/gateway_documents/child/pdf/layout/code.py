"""Code: lines in a font of one width, with their indentation."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

from liteparse import LayoutBlock

from gateway_documents.child.pdf.layout.blocks import RULED, box_of, cells, rectangle
from gateway_documents.child.pdf.layout.styles import PageLines, Style, TextLine

# Lines of one listing are not further apart, of the height of a line.
_MAX_PITCH = 3.5
_KINDS = ("code", "table", "paragraph", "heading")


def restore(page: PageLines, blocks: Sequence[LayoutBlock], body: Style) -> list[LayoutBlock]:
    """Return the blocks with neighbours that are lines of one listing as one block of code."""
    if not page.has_mono:
        return [*blocks]
    restored: list[LayoutBlock] = []
    above: list[TextLine] = []
    for block in blocks:
        lines = _listing(page, block, body)
        if lines and above and _is_near(above, lines):
            above = [*above, *lines]
            restored[-1] = _block(restored[-1], above)
        elif lines:
            above = lines
            restored.append(_block(block, lines))
        else:
            above = []
            restored.append(block)
    return restored


def _listing(page: PageLines, block: LayoutBlock, body: Style) -> list[TextLine]:
    """Return the lines of a block that is code; none if it is anything else."""
    may_be_code = block.kind in _KINDS and block.id != RULED
    lines = page.within(box_of(block)) if may_be_code else []
    is_mono = bool(lines) and all(
        style.is_mono for line in lines for style in (line.style, *line.styles)
    )
    is_code = is_mono and (block.kind == "code" or not body.is_mono)
    has_all = _letters("".join(_texts(block))) == _letters("".join(line.box.text for line in lines))
    return lines if is_code and has_all else []


def _texts(block: LayoutBlock) -> Iterator[str]:
    yield block.text or ""
    yield from block.lines or ()
    yield from (cell.text for row in cells(block) for cell in row)


def _letters(text: str) -> list[str]:
    return sorted(filter(str.isalnum, text))


def _is_near(above: Sequence[TextLine], below: Sequence[TextLine]) -> bool:
    pitch = below[0].box.top - above[-1].box.top
    return 0 < pitch <= _MAX_PITCH * below[0].box.height


def _block(block: LayoutBlock, lines: Sequence[TextLine]) -> LayoutBlock:
    """Return a block of code; a line's indentation is its distance from the leftmost one."""
    letter = statistics.median(line.letter_width for line in lines)
    left = min(line.box.left for line in lines)
    texts = [
        " " * round((line.box.left - left) / letter if letter else 0) + line.box.text
        for line in lines
    ]
    return replace(
        block,
        kind="code",
        text=None,
        header=None,
        rows=None,
        lines=texts,
        bbox=rectangle([line.box for line in lines]),
    )
