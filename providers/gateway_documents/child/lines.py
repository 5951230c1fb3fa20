"""Arranges recognised text boxes into lines and paragraphs."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

# Two boxes are on one line if they share this part of the smaller box's height.
_SAME_LINE = 0.5
# A gap of this part of a line's height starts a paragraph.
_NEW_PARAGRAPH = 0.9

# The fewest lines of a column of running text, and its fewest letters a line on average.
_MIN_LINES, _MIN_LETTERS = 3, 10


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

    def is_beside(self, other: "Box") -> bool:
        """Whether both boxes are on one line."""
        shared = min(self.bottom, other.bottom) - max(self.top, other.top)
        return shared > _SAME_LINE * min(self.height, other.height)

    def is_within(self, other: "Box") -> bool:
        """Whether the middle is within another box."""
        x, y = (self.left + self.right) / 2, (self.top + self.bottom) / 2
        return other.left <= x <= other.right and other.top <= y <= other.bottom


def to_text(boxes: Iterable[Box]) -> str:
    """Return the text in reading order, with empty lines between paragraphs.

    Columns of running text are read one after the other; rows of a table or a receipt stay lines.
    """
    return "\n\n".join(_text_of(block) for block in _columns(list(boxes)))


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


def to_lines(boxes: Iterable[Box]) -> list[list[Box]]:
    """Return the lines from top to bottom, and the boxes of each from left to right."""
    lines: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: box.top + box.bottom):
        if lines and box.is_beside(lines[-1][0]):
            lines[-1].append(box)
        else:
            lines.append([box])
    return [sorted(line, key=lambda box: box.left) for line in lines]


def _text_of(boxes: Iterable[Box]) -> str:
    text, above = "", None
    for line in to_lines(boxes):
        first = min(line, key=lambda box: box.top + box.bottom)
        text += _gap(above, first) if above else ""
        text += " ".join(box.text for box in line)
        above = first
    return text


def _gap(above: Box, below: Box) -> str:
    is_far = below.top - above.bottom > _NEW_PARAGRAPH * min(above.height, below.height)
    return "\n\n" if is_far else "\n"
