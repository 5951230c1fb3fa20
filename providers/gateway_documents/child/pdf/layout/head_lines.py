"""The head of a table without drawn cells: its lines, and their texts by column."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise

import attrs

from gateway_documents.child.pdf.layout.aligned import CAPTION, Cell, Group, Line, Span, goes_on
from gateway_documents.child.pdf.layout.grids import text_of
from gateway_documents.child.pdf.layout.rules import Rule

# In heights of a line. The gap between texts of a head: narrow columns, as of a statistic, have
# heads that are closer than their values.
_GAP = 0.4
# The gap above a line of a head: most are as close as lines of text; tables with wide rows have
# their head as far from the first row, and a head between ruled lines has more space (papers).
_NEAR, _WIDER, _FAR = 0.9, 1.2, 2.6
# The gap between rows of a head: less is a text of several lines in a narrow column.
_APART = 0.4
# Longer ones are captions or sentences above a table without a title. The lines bound the time.
_MAX_LINES, _MAX_LETTERS = 8, 60
# Of a table's width: a wider line of one text is a sentence or a title (reports); a shorter
# ruled line is below one title over several columns (papers).
_NARROW, _LONG = 0.6, 0.6
# A title in the middle of several columns, as a year over two measures, without a ruled line: how
# far the middles may be apart, of the distance between the columns.
_SEVERAL, _CENTRAL = 2, 0.35
# Points by which a head and its column may begin apart: tables aligned to the left.
_SAME = 1.5
# A label and its value, as of the date and the number above the table of an invoice.
_LABELLED = re.compile(r"\w: +\S*\d")


@attrs.frozen
class _Text:
    """A text of a head: its columns, and the number of its line."""

    words: Cell
    first: int
    last: int
    line: int

    @property
    def is_wide(self) -> bool:
        """Whether it belongs to several columns."""
        return self.last > self.first

    def is_over(self, column: int) -> bool:
        """Whether it belongs to a column."""
        return self.first <= column <= self.last


def find(group: Group, above: Sequence[Line], rules: Sequence[Rule]) -> list[Line]:
    """Return the lines of a table's head from top to bottom."""
    long = [rule.at for rule in rules if _cover(rule, group.extent) >= _LONG * group.extent.width]
    taken: list[Line] = []
    sure = 0
    is_ruled, is_near = False, True
    below = group.rows[0][0]
    near = max(_NEAR * below.height, _WIDER * group.row_gap)
    for line in reversed(above[-_MAX_LINES:]):
        cells = _cells(group, line)
        gap = below.top - line.bottom
        rule = any(line.middle < at < below.middle for at in long)
        if rule and taken:
            sure, is_ruled = len(taken), True
        if gap > _FAR * line.height or not _may_be_head(group, line, cells):
            break
        taken.append(line)
        below = line
        is_near = is_near and gap <= near
        if len(cells) > 1 and is_near and not is_ruled:
            sure = len(taken)
    top = next((line for line in reversed(above) if line not in taken), None)
    edge = top.middle if top else 0
    if taken and any(edge < at < taken[-1].middle for at in long):
        sure = len(taken)
    return [*_without_labels(group, taken[:sure][::-1], long)]


def _without_labels(group: Group, head: Sequence[Line], rules: Sequence[float]) -> Sequence[Line]:
    """Return the lines of a head without the labels below it, which become rows.

    A label is below the last ruled line, or is not the rest of the head's first text.
    """
    while len(head) > 1 and len(head[-1].cells(_GAP)) == 1:
        above, line = head[-2:]
        is_below = any(above.middle < at < line.middle for at in rules)
        cell = line.cells(_GAP)[0]
        if group.column_of(cell) or not (is_below or not goes_on(text_of(cell))):
            break
        group.rows.insert(0, (line, [cell]))
        head = head[:-1]
    return head


def _cover(rule: Rule, extent: Span) -> float:
    return min(rule.end, extent.right) - max(rule.start, extent.left)


def _may_be_head(group: Group, line: Line, cells: Sequence[Cell]) -> bool:
    extent, span = group.extent, Span.of(line.words)
    slack = 3 * line.height
    return (
        not CAPTION.match(line.text)
        and extent.left - slack <= span.left
        and cells[-1][0].left <= extent.right + slack
        and all(len(text_of(cell)) <= _MAX_LETTERS for cell in cells)
        and not (len(cells) == 1 and span.width > _NARROW * extent.width)
        and not (len(cells) > 1 and any(_LABELLED.search(text_of(cell)) for cell in cells))
    )


def rows(group: Group, lines: Sequence[Line], rules: Sequence[Rule]) -> list[list[str]]:
    """Return the rows of a head: texts over several columns are in rows of their own."""
    found = [text for number in range(len(lines)) for text in _texts(group, number, lines, rules)]
    starts = _starts(lines)
    has_wide = any(text.is_wide for text in found)
    made: dict[int, list[list[Cell]]] = {}
    for text in found:
        over = [
            other
            for other in found
            if other.is_wide and other.line < text.line and other.is_over(text.first)
        ]
        level = len({other.line for other in over})
        if not has_wide:
            level = starts[text.line]
        row = made.setdefault(level, [[] for _ in group.columns])
        row[text.first].append(text.words)
    return [[" ".join(map(text_of, cells)) for cells in made[level]] for level in sorted(made)]


def _starts(lines: Sequence[Line]) -> list[int]:
    """Return the row of each line: a gap that is wider than within a text starts one."""
    starts = [0]
    for above, below in pairwise(lines):
        gap = below.top - above.bottom
        starts.append(starts[-1] + (gap > _APART * below.height))
    return starts


def _rules_below(
    lines: Sequence[Line], number: int, group: Group, rules: Iterable[Rule]
) -> list[Rule]:
    below = lines[number + 1] if number + 1 < len(lines) else group.rows[0][0]
    return [rule for rule in rules if lines[number].middle < rule.at < below.middle]


def _is_over(rule: Rule, cell: Cell) -> bool:
    return rule.start <= Span.of(cell).middle <= rule.end


def _texts(group: Group, number: int, lines: Sequence[Line], every: Sequence[Rule]) -> list[_Text]:
    """Return the texts of a line with their columns."""
    inner = [rule for rule in every if lines[0].middle < rule.at < lines[number].middle]
    is_ruled = any(rule.start > group.columns[0].middle for rule in inner)
    cells = _cells(group, lines[number])
    below = _by_nearest(group, cells, lines[number + 1 :])
    rules = [
        (rule, [at for at, cell in enumerate(cells) if _is_over(rule, cell)])
        for rule in _rules_below(lines, number, group, every)
    ]
    texts = []
    for at, cell in enumerate(cells):
        own = [rule for rule, over in rules if over in ([], [at])]
        first, last = _columns(group, Span.of(cell), own)
        if first == last and not is_ruled:
            first, last = _over(group, Span.of(cell).middle, below[at]) or (first, last)
        texts.append(_Text(cell, first, last, number))
    return texts


def _by_nearest(group: Group, cells: Sequence[Cell], below: Iterable[Line]) -> list[list[Span]]:
    """Return where the texts of the lines below are, for each cell those that it is nearest to."""
    edges = [(Span.of(left).middle + Span.of(right).middle) / 2 for left, right in pairwise(cells)]
    found: list[list[Span]] = [[] for _ in cells]
    for line in below:
        for cell in _cells(group, line):
            if group.column_of(cell) > 0:
                span = Span.of(cell)
                found[bisect_left(edges, span.middle)].append(span)
    return found


def _over(group: Group, middle: float, below: Sequence[Span]) -> tuple[int, int] | None:
    """Return the columns of the texts below, if a text is over the middle of several."""
    columns = {_columns(group, span, ())[0] for span in below}
    if len(columns) < _SEVERAL:
        return None
    first, last = min(columns), max(columns)
    left = min(span.left for span in below)
    right = max(span.right for span in below)
    pitch = (group.columns[last].middle - group.columns[first].middle) / (last - first)
    return (first, last) if abs((left + right) / 2 - middle) <= _CENTRAL * pitch else None


def _cells(group: Group, line: Line) -> list[Cell]:
    """Return the texts of a line, also those that begin where a column does."""
    lefts = [column.left for column in group.columns[1:]]
    cells: list[Cell] = []
    for cell in line.cells(_GAP):
        cuts = [
            at
            for at, word in enumerate(cell)
            if at and any(abs(word.left - left) <= _SAME for left in lefts)
        ]
        if len(cuts) < _SEVERAL:
            cuts = []
        cells += [cell[start:end] for start, end in pairwise([0, *cuts, len(cell)])]
    return cells


def _columns(group: Group, span: Span, rules: Sequence[Rule]) -> tuple[int, int]:
    """Return the first and the last column of a text: those over which its ruled line is."""
    beside = group.columns[0].middle
    for rule in rules:
        if rule.start <= span.middle <= rule.end and rule.start > beside:
            under = [
                at
                for at, column in enumerate(group.columns)
                if rule.start <= column.middle <= rule.end
            ]
            if under:
                return under[0], under[-1]
    under = [
        at for at, column in enumerate(group.columns) if span.left <= column.middle <= span.right
    ]
    if under:
        return under[0], under[-1]
    nearest = min(
        range(len(group.columns)),
        key=lambda at: (
            abs(group.columns[at].left - span.left) > _SAME,
            abs(group.columns[at].middle - span.middle),
        ),
    )
    return nearest, nearest
