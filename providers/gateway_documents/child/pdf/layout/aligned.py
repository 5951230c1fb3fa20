"""Tables of values without drawn cells: rows of words in columns, and their head."""

import re
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs

from gateway_documents.child.lines import Box, to_lines

# In heights of a line: the least gap between cells, and between columns.
_GAP, _GUTTER = 0.7, 0.25
# The same between two numbers, and where other rows have a column.
LEAST_GAP, _CUT_GAP = 0.4, 0.6
# Points by which a word and its column may begin or end apart.
_ALIGNED = 1.5
# The largest gap between rows, in heights of a line.
_ROW_GAP, _LABEL_GAP = 3.5, 6
MIN_ROWS, _MAX_STUBS = 3, 3
# The most columns of a table, as of an hour or a week each.
_MAX_COLUMNS = 100
# How many first rows may be left out of a table, as lines of a form above it.
_MAX_DROPS = 8
# How far the first label may be indented, in heights of a line.
_INDENT = 3
# The most letters of a value, and of one without digits.
_LONG_VALUE, _SHORT_VALUE = 20, 3
# The share of values among the cells of a row, and of cells with text.
_VALUES, _FILLED = 0.6, 0.5
# The share of rows whose words are at one height, and how much they differ, of a line's height.
_LEVEL, _SLANT = 0.7, 0.2
# The share of a table's width that a line of one text may have.
_NARROW = 0.6
CAPTION = re.compile(r"(?:table|figure|fig|exhibit|chart|source|note)s?\b", re.IGNORECASE)
# Text of columns: the share of cells whose sentence goes on in the next row.
_LONG_CELL, _FLOWING = 20, 0.3
PAIR = 2
# Rows that are no table are tried again from the lines at these parts of them.
_RETRIES = 4
# Lines above the first row of a group: its label, and the head.
_LABEL_AND_HEAD = 2
# The share of cells with digits in a head, and in a table of numbers.
_FEW, _MOST = 0.4, 0.8

Cell = Sequence[Box]
"""The words of a cell's line."""


@attrs.frozen
class Span:
    """Where something begins and ends, from left to right."""

    left: float
    right: float

    @classmethod
    def of(cls, words: Sequence[Box]) -> "Span":
        """Return the span of words."""
        if len(words) == 1:
            return cls(words[0].left, words[0].right)
        return cls(min(word.left for word in words), max(word.right for word in words))

    @property
    def middle(self) -> float:
        """The middle."""
        return (self.left + self.right) / 2

    @property
    def width(self) -> float:
        """The width."""
        return self.right - self.left


@attrs.frozen
class Line:
    """A line of words."""

    words: Sequence[Box]
    height: float
    top: float
    bottom: float

    @classmethod
    def of(cls, words: Sequence[Box]) -> "Line":
        """Return the line of words."""
        height = statistics.median(word.height for word in words)
        top = statistics.median(word.top for word in words)
        return cls(words, height, top, top + height)

    @property
    def middle(self) -> float:
        """The middle, from the top."""
        return (self.top + self.bottom) / 2

    @property
    def is_level(self) -> bool:
        """Whether the words are at one height, unlike the labels of a chart."""
        middles = [word.middle[1] for word in self.words]
        return max(middles) - min(middles) <= _SLANT * self.height

    @property
    def text(self) -> str:
        """The words."""
        return " ".join(word.text for word in self.words)

    def cells(self, gap: float) -> list[Cell]:
        """Return the words between gaps, in heights of the line."""
        cells = [[self.words[0]]]
        end = self.words[0].right
        for before, word in pairwise(self.words):
            # The gap between two numbers may be narrow.
            are_numbers = before.text[-1:].isdigit() and word.text[:1].isdigit()
            least = min(gap, LEAST_GAP) if are_numbers else gap
            if word.left - end > least * self.height:
                cells.append([])
            cells[-1].append(word)
            end = max(end, word.right)
        return [*cells]


@attrs.define
class Group:
    """Rows of values in columns; other lines may be among them."""

    columns: list[Span] = attrs.field(factory=list)
    rows: list[tuple[Line, Sequence[Cell]]] = attrs.field(factory=list)
    values: int = 0
    """How many rows have values."""
    has_labels: bool = False
    """Whether the first column has only labels of groups of rows, and a head."""

    @property
    def is_small(self) -> bool:
        """Whether only its head makes it a table."""
        return self.values < MIN_ROWS

    @property
    def extent(self) -> Span:
        """Where the columns are."""
        return Span(self.columns[0].left, self.columns[-1].right)

    @property
    def row_gap(self) -> float:
        """The gap between most rows."""
        gaps = [below.top - above.bottom for (above, _), (below, _) in pairwise(self.rows)]
        return statistics.median(gaps or [0])

    def column_of(self, cell: Cell) -> int:
        """Return the column in which a cell begins."""
        at = min(Span.of(cell).middle, cell[0].right)
        for number, (left, right) in enumerate(pairwise(self.columns)):
            if at <= (left.right + right.left) / 2:
                return number
        return len(self.columns) - 1

    def cut(self, line: Line) -> list[Cell]:
        """Return the cells of a line; a word that begins or ends with a column starts one."""
        cells: list[Cell] = []
        for cell in line.cells(_GAP):
            end = cell[-1].right
            starts = [
                at
                for at, (before, word) in enumerate(pairwise(cell), 1)
                if word.left - before.right > _CUT_GAP * line.height
                and any(
                    abs(word.left - column.left) <= _ALIGNED or abs(end - column.right) <= _ALIGNED
                    for column in self.columns[1:]
                )
            ]
            cells += [cell[first:last] for first, last in pairwise([0, *starts[-1:], len(cell)])]
        return cells

    def is_far(self, line: Line) -> bool:
        """Whether a line is too far below the last row."""
        last = self.rows[-1][0]
        cells = line.cells(_GAP)
        is_label = len(cells) == 1 and self.column_of(cells[0]) == 0
        gap = _LABEL_GAP if is_label else _ROW_GAP
        return line.top - last.bottom > gap * min(line.height, last.height)


def has_value(words: Sequence[Box]) -> bool:
    """Whether any line has a value behind a gap. Pages of plain text, which are most, have none."""
    return any(
        is_value(" ".join(word.text for word in cell))
        for line in to_lines(words)
        for cell in Line.of(line).cells(_GAP)[1:]
    )


def find_groups(words: Sequence[Box], least: int = MIN_ROWS) -> Iterator[tuple[Group, list[Line]]]:
    """Yield the tables of `least` rows or more among words, and the lines above each."""
    lines = [Line.of(words) for words in to_lines(words)]
    at = start = 0
    while at < len(lines):
        group, end = _group(lines, at)
        if not group.has_labels:
            _drop_heads(group)
        if _is_table(group, least):
            first = lines.index(group.rows[0][0], start)
            yield group, lines[start:first]
            at = start = end
        else:
            at += max(1, len(group.rows) // _RETRIES)


def _group(lines: Sequence[Line], at: int) -> tuple[Group, int]:
    """Return the rows from a line on, and the number of the line behind them."""
    group, others = Group(), 0
    end = at
    for number in range(at, len(lines)):
        line = lines[number]
        cells = group.cut(line)
        if group.rows and group.is_far(line):
            break
        if is_row(cells):
            if not group.rows:
                _add_label(group, lines, number)
            columns = _with_row(group.columns, cells, line.height)
            if columns is None:
                break
            group.columns, others = columns, 0
            group.values += 1
            end = number + 1
        elif not group.rows or others == _MAX_STUBS or not _fits(group, line, cells):
            break
        else:
            others += 1
        group.rows.append((line, cells))
    del group.rows[len(group.rows) - others :]
    return group, end


def _add_label(group: Group, lines: Sequence[Line], number: int) -> None:
    """Begin a group with the label above its first row, if the head above has a column for it."""
    if number < _LABEL_AND_HEAD:
        return
    head, label, row = lines[number - _LABEL_AND_HEAD : number + 1]
    titles, labels, cells = (line.cells(_GAP) for line in (head, label, row))
    first, behind = titles[0][0], Span.of(titles[0]).right
    is_near = label.top - head.bottom <= _ROW_GAP * label.height
    if (
        len(labels) == 1
        and len(titles) == len(cells) + 1
        and is_near
        and abs(labels[0][0].left - first.left) <= _ALIGNED
        and behind <= cells[0][0].left
        and Span.of(labels[0]).width <= _NARROW * Span.of(head.words).width
    ):
        group.columns = [Span(first.left, behind)]
        group.rows.append((label, labels))
        group.has_labels = True


def is_row(cells: Sequence[Cell]) -> bool:
    """Whether most cells but the first are values."""
    texts = [" ".join(word.text for word in cell) for cell in cells[1:]]
    values = sum(map(is_value, texts))
    is_pair = len(texts) == 1 and not any(char.isdigit() for char in texts[0])
    return values > 0 and values >= _VALUES * len(texts) and not is_pair


def is_value(text: str) -> bool:
    """Whether a text is a number, a mark or a short word with digits."""
    has_digit = any(char.isdigit() for char in text)
    is_mark = not any(map(str.isalnum, text))
    return is_mark or len(text) <= (_LONG_VALUE if has_digit else _SHORT_VALUE)


def _with_row(columns: list[Span], cells: Sequence[Cell], height: float) -> list[Span] | None:
    """Return the columns with a row's cells; None if the row is in other columns."""
    spans = [Span.of(cell) for cell in cells]
    joined = _joined([*columns, *spans], _GUTTER * height)
    if len(joined) > _MAX_COLUMNS:
        return None
    if len(joined) < max(len(columns), len(cells)):
        # A long label covers empty cells.
        joined = _joined([*columns, *spans[1:]], _GUTTER * height)
        if len(joined) < max(len(columns), len(cells)) or spans[0].left > columns[0].right:
            return None
    return joined


def _columns(rows: Sequence[Sequence[Cell]]) -> list[Span]:
    spans = [Span.of(cell) for cells in rows if is_row(cells) for cell in cells]
    return _joined(spans, 0)


def _joined(spans: Sequence[Span], gap: float) -> list[Span]:
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: span.left):
        if joined and span.left <= joined[-1].right + gap:
            last = joined.pop()
            span = Span(last.left, max(last.right, span.right))  # noqa: PLW2901
        joined.append(span)
    return joined


def _fits(group: Group, line: Line, cells: Sequence[Cell]) -> bool:
    """Whether a line without values may be in a table: each text is in one column, or short."""
    if CAPTION.match(line.text):
        return False
    spans = [Span.of(cell) for cell in cells]
    extent = group.extent
    if (
        spans[0].left < extent.left - _INDENT * line.height
        or spans[-1].right > extent.right + line.height
    ):
        return False
    if len(cells) == 1:
        return spans[0].width <= _NARROW * extent.width
    return all(sum(_overlap(span, column) for column in group.columns) <= 1 for span in spans)


def _overlap(one: Span, other: Span) -> bool:
    return one.left < other.right and other.left < one.right


def _drop_heads(group: Group) -> None:
    """Remove the first rows while they could be a head."""
    for _ in range(_MAX_DROPS):
        if len(group.rows) <= 1 or not (_has_own_column(group) or _begins_with_head(group)):
            return
        _drop_first(group)
    # Rows that could each be a head are no table.
    group.values = 0


def _drop_first(group: Group) -> None:
    """Remove the first row with values, and the lines up to the next."""
    del group.rows[0]
    while group.rows and not is_row(group.rows[0][1]):
        del group.rows[0]
    group.values -= 1
    group.columns = _columns([cells for _, cells in group.rows])


def _begins_with_head(group: Group) -> bool:
    """Whether the first row has mostly words and the others have mostly numbers."""
    first, *others = [cells for _, cells in group.rows if is_row(cells)]
    return _numbers([first]) < _FEW and bool(others) and _numbers(others) > max(_MOST, 2 * _FEW)


def _numbers(rows: Sequence[Sequence[Cell]]) -> float:
    """Return the share of cells with digits, without those of the first column."""
    cells = [
        any(char.isdigit() for word in cell for char in word.text)
        for row in rows
        for cell in row[1:]
    ]
    return sum(cells) / max(len(cells), 1)


def _has_own_column(group: Group) -> bool:
    """Whether the first row has a cell where no other row has one, as a head may."""
    first, *others = [[group.column_of(cell) for cell in cells] for _, cells in group.rows]
    return bool(set(first) - {column for row in others for column in row})


def _is_table(group: Group, least: int) -> bool:
    width = len(group.columns)
    if group.values < (MIN_ROWS if width == PAIR else least) or width < PAIR:
        return False
    rows = [texts(group, cells) for _, cells in group.rows]
    rows = [row for row in rows if any(row[1:])]
    filled = sum(bool(text) for row in rows for text in row)
    columns = [*zip(*rows, strict=True)]
    level = sum(line.is_level for line, cells in group.rows if is_row(cells))
    return (
        filled >= _FILLED * width * len(rows)
        and level >= _LEVEL * group.values
        and not any(_flows(column) for column in columns)
    )


def texts(group: Group, cells: Sequence[Cell]) -> list[str]:
    """Return the texts of a row by column."""
    row = [""] * len(group.columns)
    for cell in cells:
        row[group.column_of(cell)] += " ".join(word.text for word in cell)
    return row


def _flows(column: Sequence[str]) -> bool:
    """Whether the cells of a column are lines of running text."""
    long = [
        (above, below)
        for above, below in pairwise(column)
        if len(above) >= _LONG_CELL and len(below) > 0
    ]
    flowing = sum(above[-1] not in ".!?:" and below[0].islower() for above, below in long)
    return flowing > max(1, _FLOWING * len(long))


def goes_on(label: str) -> bool:
    """Whether a label is the rest of the one above."""
    return label[:1].islower() or label[:1] == "("
