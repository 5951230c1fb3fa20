"""Tables whose cells are drawn: the words between the lines of a grid."""

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import attrs
import liteparse
from liteparse import AnnotationRect, LayoutBlock, LayoutCell

from gateway_documents.child import tables
from gateway_documents.child.lines import Box, to_lines
from gateway_documents.child.pdf.layout.aligned import goes_on, is_value
from gateway_documents.child.pdf.layout.blocks import RULED, box_of, cells
from gateway_documents.child.pdf.layout.rules import NEAR, Grid, find_grids

# Rows and columns of the smallest table, and the cells of the largest.
_MIN_SIDE, _MAX_CELLS = 2, 4_000
# The share of words that may be outside of the cell their middle is in.
_MAX_CROSSING = 0.02
_MIN_FILLED, _MIN_TEXTS = 0.3, 4
# Of the height of a word: the least gap of columns, and the largest gap within a word.
_MIN_GAP, _NO_SPACE = 0.6, 0.08


def replace_tables(page: liteparse.ParsedPage, blocks: list[LayoutBlock]) -> list[LayoutBlock]:
    """Return the blocks with those within a grid replaced by one table.

    A grid that would lose or repeat words is ignored.
    """
    if page.vector_graphics is None or not page.vector_graphics.lines:
        return blocks
    words = [*words_of(page)]
    tables_found = [*find_tables(page, words)]
    blocks = _parted(blocks, tables_found)
    for grid, table in tables_found:
        inside = [block for block in blocks if grid.contains(box_of(block))]
        if inside and _has_same_text(grid, table, inside, words):
            at = blocks.index(inside[0])
            blocks = [block for block in blocks if block not in inside]
            blocks.insert(at, table)
    return blocks


def _parted(
    blocks: Sequence[LayoutBlock], found: Sequence[tuple[Grid, LayoutBlock]]
) -> list[LayoutBlock]:
    """Return the blocks with the grids that are side by side in place of one table of them all."""
    parted: list[LayoutBlock] = []
    for block in blocks:
        around = box_of(block)
        inside = [table for _, table in found if box_of(table).is_within(around)]
        inside.sort(key=lambda table: box_of(table).left)
        is_several = block.kind == "table" and len(inside) > 1
        if is_several and _are_beside(inside) and letters_of(inside) == letters_of([block]):
            parted += inside
        else:
            parted.append(block)
    return parted


def _are_beside(found: Sequence[LayoutBlock]) -> bool:
    boxes = [*map(box_of, found)]
    return all(left.right <= right.left for left, right in pairwise(boxes))


def find_tables(
    page: liteparse.ParsedPage, words: Sequence[Box]
) -> Iterator[tuple[Grid, LayoutBlock]]:
    """Yield the grids of a page that have words in their cells, and their tables."""
    if not words:
        return
    for grid in find_grids(page, statistics.median(word.height for word in words)):
        if rows := _rows(grid, [word for word in words if grid.contains(word)]):
            left, top = grid.lefts[0], grid.tops[0]
            box = AnnotationRect(left, top, grid.lefts[-1] - left, grid.tops[-1] - top)
            yield grid, LayoutBlock(kind="table", id=RULED, bbox=box, rows=rows)


def _has_same_text(
    grid: Grid, table: LayoutBlock, inside: Sequence[LayoutBlock], words: Sequence[Box]
) -> bool:
    """Whether a table has all words of the blocks, no others, and not fewer columns."""
    columns = max((len(row) for block in inside for row in cells(block)), default=0)
    texts, found = letters_of(inside), letters_of([table])
    boxes = [box_of(block) for block in inside]
    return (
        columns <= len(cells(table)[0])
        and sum((found - texts).values()) <= _MAX_CROSSING * found.total()
        and all(grid.contains(word) for word in words if any(map(word.is_within, boxes)))
    )


def words_of(page: liteparse.ParsedPage) -> Iterator[Box]:
    """Yield the words of a page."""
    for item in page.text_items:
        for word in item.words or [item]:
            yield Box(word.x, word.x + word.width, word.y, word.y + word.height, word.text)


def letters_of(blocks: Iterable[LayoutBlock]) -> Counter[str]:
    """Return the letters and digits of blocks, each with its count."""
    """Return the letters and digits of blocks, each with its count."""
    found: Counter[str] = Counter()
    for block in blocks:
        found.update(filter(str.isalnum, block.text or ""))
        for row in cells(block):
            for cell in row:
                found.update(filter(str.isalnum, cell.text))
        for line in block.lines or ():
            found.update(filter(str.isalnum, line))
    return found


def _rows(grid: Grid, words: Sequence[Box]) -> list[list[LayoutCell]]:
    """Return the texts of a grid's cells; none if it is no table."""
    height, width = grid.size
    if min(height, width) < _MIN_SIDE or height * width > _MAX_CELLS:
        return []
    found = _cells(grid)
    owners = {square: cell for cell in found for square in cell.squares}
    texts: dict[Cell, list[Box]] = {cell: [] for cell in found}
    crossing = 0
    for word in words:
        cell = owners[_square(grid, word)]
        texts[cell].append(word)
        crossing += not cell.holds(grid, word)
    filled = [cell for cell, boxes in texts.items() if boxes]
    if (
        crossing > _MAX_CROSSING * len(words)
        or len(filled) < max(_MIN_TEXTS, _MIN_FILLED * len(found))
        or not all(cell.is_rectangle for cell in found)
    ):
        return []
    words_at: list[list[list[Box]]] = [[[] for _ in range(width)] for _ in range(height)]
    for cell in filled:
        for column, some in _split(grid, cell, texts[cell]):
            words_at[cell.top][column] = some
    rows = [
        [_cell(grid, number, column, some) for column, some in enumerate(line)]
        for number, row in enumerate(words_at)
        for line in _lines(row)
    ]
    columns = [at for at in range(width) if any(row[at].text for row in rows)]
    rows = [[row[at] for at in columns] for row in rows if any(cell.text for cell in row)]
    return rows if min(len(rows), len(columns)) >= _MIN_SIDE else []


@attrs.frozen
class Cell:
    """The squares of a grid that no line parts, by row and column."""

    squares: frozenset[tuple[int, int]]
    top: int = attrs.field(init=False)
    left: int = attrs.field(init=False)
    below: int = attrs.field(init=False)
    behind: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        rows, columns = zip(*self.squares, strict=True)
        object.__setattr__(self, "top", min(rows))
        object.__setattr__(self, "left", min(columns))
        object.__setattr__(self, "below", max(rows) + 1)
        object.__setattr__(self, "behind", max(columns) + 1)

    @property
    def is_rectangle(self) -> bool:
        """Whether the squares fill a rectangle."""
        return len(self.squares) == (self.below - self.top) * (self.behind - self.left)

    def holds(self, grid: Grid, word: Box) -> bool:
        """Whether no letter of a word is outside."""
        slack = NEAR + 0.15 * (word.right - word.left)
        return (
            grid.lefts[self.left] - slack <= word.left
            and word.right <= grid.lefts[self.behind] + slack
        )


def _cells(grid: Grid) -> list[Cell]:
    height, width = grid.size
    parent = {(row, column): (row, column) for row in range(height) for column in range(width)}

    def root(square: tuple[int, int]) -> tuple[int, int]:
        while parent[square] != square:
            square = parent[square]
        return square

    for row, column in parent:
        x, y = grid.middle(row, column)
        if column + 1 < width and not grid.is_parted_down(grid.lefts[column + 1], y):
            parent[root((row, column + 1))] = root((row, column))
        if row + 1 < height and not grid.is_parted_across(grid.tops[row + 1], x):
            parent[root((row + 1, column))] = root((row, column))
    groups: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for square in parent:
        groups.setdefault(root(square), set()).add(square)
    return [Cell(frozenset(group)) for group in groups.values()]


def _square(grid: Grid, word: Box) -> tuple[int, int]:
    height, width = grid.size
    x, y = word.middle
    row = bisect_right(grid.tops, y) - 1
    column = bisect_right(grid.lefts, x) - 1
    return min(max(row, 0), height - 1), min(max(column, 0), width - 1)


def _cell(grid: Grid, row: int, column: int, words: Sequence[Box]) -> LayoutCell:
    return LayoutCell(text_of(words), grid.rectangle(row, column)) if words else LayoutCell("")


def _lines(row: list[list[Box]]) -> list[list[list[Box]]]:
    """Return the lines of a drawn row as rows if several have a label and values."""
    found = [
        [[word for word in line if word in cell] for cell in row]
        for line in to_lines(word for cell in row for word in cell)
    ]
    valued = [line for line in found if any(line[1:])]
    are_rows = len(valued) > 1 and all(line[0] and _has_values(line, row) for line in valued)
    if not are_rows:
        return [row]
    lines: list[list[list[Box]]] = []
    for line in found:
        above = lines[-1] if lines else []
        if above and not any(above[1:]) and goes_on(text_of(line[0])):
            line[0] = above[0] + line[0]
            lines.pop()
        lines.append(line)
    return lines


def _has_values(line: Sequence[Sequence[Box]], row: Sequence[Sequence[Box]]) -> bool:
    """Whether a line has values in most filled columns but the first, and nothing else."""
    texts = [text_of(words) for words in line[1:] if words]
    return all(map(is_value, texts)) and 2 * len(texts) >= sum(map(bool, row[1:]))


def _split(grid: Grid, cell: Cell, words: Sequence[Box]) -> Iterator[tuple[int, list[Box]]]:
    """Yield the words of a cell by column: of several if the words have wide gaps at edges."""
    left, rest = cell.left, list(words)
    for column in range(cell.left + 1, cell.behind):
        before = [word for word in rest if word.middle[0] < grid.lefts[column]]
        after = [word for word in rest if word.middle[0] >= grid.lefts[column]]
        if before and after and _gap(before, after) > _MIN_GAP * after[0].height:
            yield left, before
            left, rest = column, after
    yield left, rest


def _gap(before: Iterable[Box], after: Iterable[Box]) -> float:
    return min(word.left for word in after) - max(word.right for word in before)


def text_of(words: Iterable[Box]) -> str:
    """Return words in reading order on one line, with words broken at a line's end joined."""
    text = ""
    for line in to_lines(words):
        joined = line[0].text
        for before, word in pairwise(line):
            is_near = word.left - before.right < _NO_SPACE * word.height
            joined += word.text if is_near else f" {word.text}"
        is_broken = text[-1:] == "-" and text[-2:-1].isalpha() and joined[:1].islower()
        text = text[:-1] + joined if is_broken else f"{text} {joined}"
    return tables.cell_text(text)
