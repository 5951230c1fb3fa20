"""Judges what the text reader returned for a page, and turns pages that lie on their side.

The reader turns each tall box to the left before reading it. So it reads pages that were turned to
the right, and vertical Japanese and Chinese, whose characters it knows lying on their side.
"""

from collections.abc import Sequence

from gateway_documents.child.lines import Box

# Measured on pages in Latin script, Chinese and Japanese: 0.98 and more. Upside down they have at
# most 0.72.
_CERTAIN = 0.95
# Hebrew and Thai have at most 0.75, and Cyrillic a twentieth of its letters.
_LEGIBLE = 0.75
_LETTERS = 0.4
# The reader knows some Greek letters, as symbols of formulas.
_GREEK = range(0x370, 0x400)
_GREEK_SHARE = 0.25
# A box this much higher than wide is a turned line, and not a short word.
_TALL = 1.5


def is_doubtful(boxes: Sequence[Box]) -> bool:
    """Whether the page may be upside down, or in a script that the reader does not know."""
    return certainty(boxes) < _CERTAIN


def certainty(boxes: Sequence[Box]) -> float:
    """Return how certain the reader is, from 0 to 1; missing letters lower it."""
    return _mean_certainty(boxes) * min(1.0, _letters_found(boxes))


def is_legible(boxes: Sequence[Box]) -> bool:
    """Whether the text is in a script that the reader knows."""
    letters = [char for box in boxes for char in box.text if char.isalpha()]
    greek = sum(ord(char) in _GREEK for char in letters)
    return (
        _mean_certainty(boxes) >= _LEGIBLE
        and _letters_found(boxes) >= _LETTERS
        and greek <= _GREEK_SHARE * len(letters)
    )


def upright(boxes: Sequence[Box], width: float) -> Sequence[Box]:
    """Return the boxes of a page of this width, turned to the left if most lines are tall.

    This puts the columns of vertical writing in their order, from right to left.
    """
    tall = sum(len(box.text) for box in boxes if _is_tall(box))
    if 2 * tall <= sum(len(box.text) for box in boxes):
        return boxes
    return [
        Box(box.top, box.bottom, width - box.right, width - box.left, box.text, box.certainty)
        for box in boxes
    ]


def _is_tall(box: Box) -> bool:
    return box.bottom - box.top > _TALL * (box.right - box.left)


def _mean_certainty(boxes: Sequence[Box]) -> float:
    """Return the mean of all characters."""
    return sum(box.certainty * _size(box) for box in boxes) / max(1, sum(map(_size, boxes)))


def _letters_found(boxes: Sequence[Box]) -> float:
    """Return the characters per square of a line's height; every script has 1 or more."""
    squares = sum(_squares(box) for box in boxes)
    return sum(map(_size, boxes)) / squares if squares else 0.0


def _squares(box: Box) -> float:
    sides = (box.right - box.left, box.bottom - box.top)
    return max(sides) / max(min(sides), 1.0)


def _size(box: Box) -> int:
    return sum(not char.isspace() for char in box.text)
