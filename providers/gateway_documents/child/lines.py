"""Arranges recognised text boxes into lines and paragraphs."""

from collections.abc import Iterable, Sequence

import attrs

# Two boxes are on one line if they share this part of the smaller box's height.
_SAME_LINE = 0.5
# A gap of this part of a line's height starts a paragraph.
_NEW_PARAGRAPH = 0.9


@attrs.frozen
class Box:
    """A piece of text and its position in pixels from the top left."""

    left: float
    top: float
    bottom: float
    text: str

    @classmethod
    def around(cls, corners: Iterable[Sequence[float]], text: str) -> "Box":
        """Return the bounding box of four corners."""
        points = [(float(x), float(y)) for x, y in corners]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        return cls(min(xs), min(ys), max(ys), text.strip())

    @property
    def height(self) -> float:
        """The height in pixels, at least 1."""
        return max(self.bottom - self.top, 1.0)

    def stands_beside(self, other: "Box") -> bool:
        """Whether both boxes are on one line."""
        shared = min(self.bottom, other.bottom) - max(self.top, other.top)
        return shared > _SAME_LINE * min(self.height, other.height)


def to_text(boxes: Iterable[Box]) -> str:
    """Return the text from top to bottom and left to right, with empty lines between paragraphs."""
    lines: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: box.top + box.bottom):
        if lines and box.stands_beside(lines[-1][0]):
            lines[-1].append(box)
        else:
            lines.append([box])
    text, above = "", None
    for line in lines:
        text += _gap(above, line[0]) if above else ""
        text += " ".join(box.text for box in sorted(line, key=lambda box: box.left))
        above = line[0]
    return text


def _gap(above: Box, below: Box) -> str:
    is_far = below.top - above.bottom > _NEW_PARAGRAPH * min(above.height, below.height)
    return "\n\n" if is_far else "\n"
