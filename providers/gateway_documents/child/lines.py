"""Arranges recognised text boxes into headings, paragraphs and tables."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

import attrs

from gateway_documents.child import escaping, tables

# Two boxes are on one line if they share this part of the smaller box's height.
_SAME_LINE = 0.5
# A gap of this part of a line's height starts a paragraph.
_NEW_PARAGRAPH = 0.9

# The fewest lines of a column of running text, and its fewest letters a line on average.
_MIN_LINES, _MIN_LETTERS = 3, 10

# Heights of a heading and of a title in those of the body's lines, and their most letters. Boxes
# around lines with and without descenders differ by a fifth.
_HEADING, _TITLE = 1.3, 1.6
_MAX_HEADING = 120

# The fewest rows and columns of a table, and the share of its cells that have text. Two columns
# may be labels and values, or a receipt.
_MIN_ROWS, _MIN_COLUMNS = 3, 3
_FILLED = 0.6


@attrs.frozen
class Box:
    """A piece of text and its position in pixels from the top left."""

    left: float
    right: float
    top: float
    bottom: float
    text: str

    @classmethod
    def around(cls, corners: Iterable[Sequence[float]], text: str) -> "Box":
        """Return the bounding box of four corners."""
        points = [(float(x), float(y)) for x, y in corners]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        return cls(min(xs), max(xs), min(ys), max(ys), text.strip())

    @property
    def height(self) -> float:
        """The height in pixels, at least 1."""
        return max(self.bottom - self.top, 1.0)

    @property
    def middle(self) -> tuple[float, float]:
        """The middle, from the left and from the top."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def is_beside(self, other: "Box") -> bool:
        """Whether both boxes are on one line."""
        shared = min(self.bottom, other.bottom) - max(self.top, other.top)
        return shared > _SAME_LINE * min(self.height, other.height)

    def is_within(self, other: "Box") -> bool:
        """Whether the middle is within another box."""
        x, y = self.middle
        return other.left <= x <= other.right and other.top <= y <= other.bottom


Line = Sequence[Box]


def to_text(boxes: Iterable[Box]) -> str:
    """Return Markdown in reading order, with empty lines between paragraphs.

    Columns of running text are read one after the other; lines of a receipt stay lines.
    """
    found = list(boxes)
    body = usual_height((box.height, len(box.text)) for box in found)
    return "\n\n".join(_text_of(block, body) for block in _columns(found))


def _columns(boxes: list[Box]) -> Iterator[list[Box]]:
    """Yield the parts of a page in reading order: lines above columns, each column, the rest."""
    bands = list(_bands(boxes))
    plain: list[Box] = []
    while bands:
        size = _longest_with_gap(bands)
        part = [box for band in bands[:size] for box in band]
        gutter = _gutter(part)
        if gutter is None:
            plain += bands.pop(0)
            continue
        if plain:
            yield plain
            plain = []
        yield from _columns([box for box in part if box.left < gutter])
        yield from _columns([box for box in part if box.left >= gutter])
        del bands[:size]
    if plain:
        yield plain


def _longest_with_gap(bands: Sequence[list[Box]]) -> int:
    """Return how many of the first bands have a vertical gap in common."""
    part: list[Box] = []
    for size, band in enumerate(bands):
        part += band
        if not any(_gaps(part)):
            return max(size, 1)
    return len(bands)


def _bands(boxes: list[Box]) -> Iterator[list[Box]]:
    """Yield the boxes between horizontal gaps, from top to bottom."""
    band: list[Box] = []
    for box in sorted(boxes, key=lambda box: box.top):
        if band and box.top > max(other.bottom for other in band):
            yield band
            band = []
        band.append(box)
    if band:
        yield band


def _gaps(boxes: Sequence[Box]) -> Iterator[float]:
    """Yield where boxes begin behind a vertical gap as wide as a line is high."""
    reach = 0.0
    for box in sorted(boxes, key=lambda box: box.left):
        if reach and box.left - reach > box.height:
            yield box.left
        reach = max(reach, box.right)


def _gutter(boxes: Sequence[Box]) -> float | None:
    """Return where the right column begins, if a gap parts two columns of running text."""
    for at in _gaps(boxes):
        left = [box for box in boxes if box.left < at]
        right = [box for box in boxes if box.left >= at]
        if _is_column(left) and _is_column(right):
            return at
    return None


def _is_column(boxes: list[Box]) -> bool:
    letters = sum(char.isalpha() for box in boxes for char in box.text)
    return len(boxes) >= _MIN_LINES and letters >= _MIN_LETTERS * len(boxes)


def to_lines(boxes: Iterable[Box]) -> list[Line]:
    """Return the lines from top to bottom, and the boxes of each from left to right."""
    lines: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: box.top + box.bottom):
        if lines and box.is_beside(lines[-1][0]):
            lines[-1].append(box)
        else:
            lines.append([box])
    return [sorted(line, key=lambda box: box.left) for line in lines]


def _text_of(boxes: Iterable[Box], body: float) -> str:
    text, above = "", None
    for lines in _with_tables(to_lines(boxes)):
        if len(lines) > 1:
            part = tables.to_markdown(_grid(lines, _columns_of(lines)))
        else:
            mark, words = _heading_mark(lines[0], body), " ".join(box.text for box in lines[0])
            part = mark + escaping.inline(words) if mark else escaping.paragraph(words)
        if above is not None:
            is_block = len(lines) > 1 or part.startswith("#") or _ends_with_block(text)
            text += "\n\n" if is_block else _gap(above, lines[0][0])
        text += part
        above = lines[-1][0]
    return text


def _ends_with_block(text: str) -> bool:
    return text.rpartition("\n")[2].startswith(("#", "|"))


def _heading_mark(line: Line, body: float) -> str:
    """Return the mark of a heading for a line of large letters, else nothing."""
    height = max(box.height for box in line)
    letters = sum(char.isalpha() for box in line for char in box.text)
    if height < _HEADING * body or not 1 < letters <= _MAX_HEADING:
        return ""
    return "# " if height >= _TITLE * body else "## "


def usual_height(texts: Iterable[tuple[float, int]]) -> float:
    """Return the height of most letters, from the height and the letters of each text."""
    by_height = sorted(texts)
    left = sum(letters for _, letters in by_height) / 2
    for height, letters in by_height:
        left -= letters
        if left <= 0:
            return height
    return 1.0


def _with_tables(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yield single lines, and the lines of each table together."""
    at = 0
    while at < len(lines):
        size = _table_size(lines[at:])
        yield lines[at : at + size]
        at += size


def _table_size(lines: Sequence[Line]) -> int:
    """Return how many of the first lines are rows of a table; 1 if there is none."""
    rows = list(takewhile(lambda line: len(line) > 1, lines))
    for size in range(len(rows), _MIN_ROWS - 1, -1):
        columns = _columns_of(rows[:size])
        if len(columns) >= _MIN_COLUMNS and _is_filled(_grid(rows[:size], columns)):
            return size
    return 1


def _columns_of(lines: Iterable[Line]) -> list[float]:
    """Return the left edges of columns that vertical gaps part in all these lines."""
    edges: list[float] = []
    reach = -1.0
    for box in sorted((box for line in lines for box in line), key=lambda box: box.left):
        if box.left > reach:
            edges.append(box.left)
        reach = max(reach, box.right)
    return edges


def _grid(lines: Iterable[Line], columns: Sequence[float]) -> list[list[str]]:
    rows = []
    for line in lines:
        row = [""] * len(columns)
        for box in line:
            at = bisect_right(columns, box.left) - 1
            row[at] = f"{row[at]} {tables.cell_text(box.text)}".strip()
        rows.append(row)
    return rows


def _is_filled(rows: Sequence[Sequence[str]]) -> bool:
    return sum(bool(cell) for row in rows for cell in row) >= _FILLED * len(rows) * len(rows[0])


def _gap(above: Box, below: Box) -> str:
    is_far = below.top - above.bottom > _NEW_PARAGRAPH * min(above.height, below.height)
    return "\n\n" if is_far else "\n"
