"""Ruled lines of a page, and the grids they form."""

from collections.abc import Iterable, Iterator, Sequence

import attrs
import liteparse
from liteparse import AnnotationRect

from gateway_documents.child.lines import Box

# In points: how far the ends of lines may be apart that meet, and the shortest line.
NEAR, _SHORTEST = 3.0, 6.0
# Drawings have more: lines, and pairs of one across and one down.
_MAX_LINES, _MAX_PAIRS = 4_000, 40_000
_WHITE = "ffffff"
# Lines of text between the drawn rows of a table.
_MAX_GAP = 4
# The least height of a row, of a line's, whose box can be higher than its letters.
_LEAST_ROW = 0.6


@attrs.frozen
class Rule:
    """A ruled line: its position across, and where it begins and ends."""

    at: float
    start: float
    end: float

    def covers(self, where: float) -> bool:
        """Whether the line passes a position."""
        return self.start - NEAR <= where <= self.end + NEAR


@attrs.frozen
class Grid:
    """A grid's lines."""

    across: Sequence[Rule]
    down: Sequence[Rule]
    tops: Sequence[float]
    lefts: Sequence[float]

    @classmethod
    def of(cls, across: Sequence[Rule], down: Sequence[Rule], line_height: float) -> "Grid":
        """Return the grid of lines, without rows that are less high than a line of text."""
        tops = _edges(across, down, max(_LEAST_ROW * line_height, 2 * NEAR))
        return cls(across, down, tops, _edges(down, across, 2 * NEAR))

    @property
    def size(self) -> tuple[int, int]:
        """The number of rows and columns."""
        return len(self.tops) - 1, len(self.lefts) - 1

    def middle(self, row: int, column: int) -> tuple[float, float]:
        """Return the middle of a square."""
        return (
            (self.lefts[column] + self.lefts[column + 1]) / 2,
            (self.tops[row] + self.tops[row + 1]) / 2,
        )

    def rectangle(self, row: int, column: int) -> AnnotationRect:
        """Return a square."""
        left, top = self.lefts[column], self.tops[row]
        return AnnotationRect(left, top, self.lefts[column + 1] - left, self.tops[row + 1] - top)

    def is_parted_down(self, x: float, y: float) -> bool:
        """Whether a line passes a point from top to bottom."""
        return any(abs(rule.at - x) <= 2 * NEAR and rule.covers(y) for rule in self.down)

    def is_parted_across(self, y: float, x: float) -> bool:
        """Whether a line passes a point from left to right."""
        return any(abs(rule.at - y) <= 2 * NEAR and rule.covers(x) for rule in self.across)

    def contains(self, box: Box) -> bool:
        """Whether the middle of a box is within the outer lines."""
        x, y = box.middle
        return (
            self.lefts[0] - NEAR <= x <= self.lefts[-1] + NEAR
            and self.tops[0] - NEAR <= y <= self.tops[-1] + NEAR
        )


def find_grids(page: liteparse.ParsedPage, line_height: float) -> list[Grid]:
    """Return the grids of lines that meet, each at least as high as a line of text."""
    across = rules_across(page)
    seen = _seen(page)
    down = _merged(
        Rule(line.x1, *sorted((line.y1, line.y2))) for line in seen if abs(line.x1 - line.x2) < 1
    )
    if len(across) * len(down) > _MAX_PAIRS:
        return []
    grids: list[Grid] = []
    parts = sorted(_that_meet(across, down), key=lambda part: min(rule.at for rule in part[0]))
    for rows, columns in parts:
        grid = Grid.of(rows, columns, line_height)
        above = next((other for other in grids if _continues(other, grid, line_height)), None)
        if above:
            grids.remove(above)
            grid = Grid.of([*above.across, *rows], [*above.down, *columns], line_height)
        grids.append(grid)
    return grids


def rules_across(page: liteparse.ParsedPage) -> list[Rule]:
    """Return the lines of a page from left to right."""
    return _merged(
        Rule(line.y1, *sorted((line.x1, line.x2)))
        for line in _seen(page)
        if abs(line.y1 - line.y2) < 1
    )


def _seen(page: liteparse.ParsedPage) -> list[liteparse.VectorLine]:
    lines = page.vector_graphics.lines if page.vector_graphics else []
    return [line for line in lines if _is_seen(line)] if len(lines) <= _MAX_LINES else []


def _that_meet(across: list[Rule], down: list[Rule]) -> Iterator[tuple[list[Rule], list[Rule]]]:
    """Yield the lines across and down that are connected."""
    while down:
        rows: list[Rule] = []
        fresh = columns = [down[0]]
        down = down[1:]
        while fresh:
            found = [rule for rule in across if any(_meet(rule, other) for other in fresh)]
            across = [rule for rule in across if rule not in found]
            rows += found
            fresh = [rule for rule in down if any(_meet(other, rule) for other in found)]
            down = [rule for rule in down if rule not in fresh]
            columns = [*columns, *fresh]
        if rows:
            yield rows, columns


def _continues(above: Grid, below: Grid, line_height: float) -> bool:
    """Whether two grids are rows of one table, of which only every other row is drawn."""
    gap = below.tops[0] - above.tops[-1]
    return 0 <= gap <= _MAX_GAP * line_height and all(
        any(abs(left - other) <= NEAR for other in above.lefts) for left in below.lefts
    )


def _is_seen(line: liteparse.VectorLine) -> bool:
    colour = (line.stroke_color if line.stroke else line.fill_color) or ""
    return not colour.endswith(_WHITE)


def _merged(rules: Iterable[Rule]) -> list[Rule]:
    """Return lines that touch and are at one position as one."""
    merged: list[Rule] = []
    cluster: list[Rule] = []
    for rule in sorted(rules, key=lambda rule: rule.at):
        if cluster and rule.at - cluster[0].at > NEAR:
            merged += _joined(cluster)
            cluster = []
        cluster.append(rule)
    merged += _joined(cluster)
    return [rule for rule in merged if rule.end - rule.start >= _SHORTEST]


def _joined(cluster: Iterable[Rule]) -> list[Rule]:
    joined: list[Rule] = []
    for rule in sorted(cluster, key=lambda rule: rule.start):
        if joined and rule.start <= joined[-1].end + NEAR:
            last = joined.pop()
            rule = Rule(last.at, last.start, max(last.end, rule.end))  # noqa: PLW2901
        joined.append(rule)
    return joined


def _meet(across: Rule, down: Rule) -> bool:
    return across.covers(down.at) and down.covers(across.at)


def _edges(rules: Sequence[Rule], crossing: Sequence[Rule], least: float) -> list[float]:
    """Return the positions of lines, and the outer ends of those that cross them."""
    ends = [min(rule.start for rule in crossing), max(rule.end for rule in crossing)]
    edges: list[float] = []
    for at in sorted([*(rule.at for rule in rules), *ends]):
        if not edges or at - edges[-1] > least:
            edges.append(at)
    return edges
