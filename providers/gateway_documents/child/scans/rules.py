"""Ruled lines in a picture, and the edges of its coloured rows and cells."""

from collections.abc import Iterator, Sequence
from typing import Any

import cv2
import numpy as np

from gateway_documents.child.lines import Box

# The least difference of brightness, of 255, at an edge.
_CONTRAST = 10
# In heights of a line of text: the shortest edge, and the height of the thickest.
_SHORTEST, _THICKEST = 2.0, 0.6
_SHORTEST_PIXELS = 30
# Pixels of gaps within an edge.
_GAP = 7
# The part of a text's height, above and below, that may contain an edge.
_MARGIN = 0.15

Rule = tuple[float, float, float, float]
"""The left, top, right and bottom of a line."""


def find(brightness: Any, texts: Sequence[Box], line_height: float) -> list[Rule]:
    """Return the edges across and down in a grey picture, except those of letters."""
    covers = [_without_margins(box) for box in texts]
    across = _edges(brightness, covers, line_height)
    turned = [Box(box.top, box.bottom, box.left, box.right, "") for box in covers]
    down = _edges(np.ascontiguousarray(brightness.T), turned, line_height)
    return [*across, *((top, left, bottom, right) for left, top, right, bottom in down)]


def _without_margins(box: Box) -> Box:
    margin = _MARGIN * box.height
    return Box(box.left, box.right, box.top + margin, box.bottom - margin, "")


def _edges(brightness: Any, covers: Sequence[Box], line_height: float) -> Iterator[Rule]:
    shortest = max(int(_SHORTEST * line_height), _SHORTEST_PIXELS)
    even = cv2.blur(brightness, (max(shortest // 3, 9), 1))
    steps = np.zeros_like(even)
    steps[1:-1] = cv2.absdiff(even[2:], even[:-2]) > _CONTRAST
    for box in covers:
        left, top = max(int(box.left), 0), max(int(box.top), 0)
        steps[top : int(box.bottom) + 1, left : int(box.right) + 1] = 0
    steps = cv2.morphologyEx(steps, cv2.MORPH_CLOSE, np.ones((1, _GAP), np.uint8))
    steps = cv2.morphologyEx(steps, cv2.MORPH_OPEN, np.ones((1, shortest), np.uint8))
    for x, y, width, height, _ in cv2.connectedComponentsWithStats(steps)[2][1:]:
        if height <= _THICKEST * line_height:
            yield float(x), y + height / 2, float(x + width), y + height / 2
