"""Recognised lines of a page: their direction, and their place after the page was turned."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import cv2
import numpy as np

from gateway_documents.child.lines import Box

# Lines in one direction differ from it by less than an eighth of a turn.
_SAME_DIRECTION = math.cos(math.pi / 4)
# A box this much higher than wide is a turned line, and not a short word.
_TALL = 1.5


@attrs.frozen(eq=False)
class Line:
    """A line of text, with its corners in pixels: the first is where the reader began."""

    corners: Any
    text: str
    certainty: float = 1.0
    """Of the reader, from 0 to 1."""
    words: Sequence[tuple[str, Any]] = ()
    """The words with their corners."""

    @property
    def direction(self) -> float:
        """The angle at which the reader read the line; a tall one from top to bottom."""
        across, down = self.corners[1] - self.corners[0], self.corners[3] - self.corners[0]
        x, y = down if np.hypot(*down) > _TALL * np.hypot(*across) else across
        return math.atan2(y, x)

    @property
    def length(self) -> float:
        """The longer side in pixels."""
        return max(self._sides)

    @property
    def height(self) -> float:
        """The shorter side in pixels, at least 1."""
        return max(min(self._sides), 1.0)

    @property
    def size(self) -> int:
        """The number of characters except spaces."""
        return sum(not char.isspace() for char in self.text)

    @property
    def _sides(self) -> tuple[float, float]:
        across, down = self.corners[1] - self.corners[0], self.corners[3] - self.corners[0]
        return float(np.hypot(*across)), float(np.hypot(*down))


@attrs.frozen
class Turn:
    """A rotation that makes lines of a direction level, and what keeps the page at the origin."""

    angle: float
    rotation: Any
    offset: Any
    size: tuple[int, int]

    @classmethod
    def of(cls, angle: float, width: int, height: int) -> "Turn":
        """Return the turn of a page of this size."""
        cos, sin = math.cos(angle), math.sin(angle)
        rotation = np.array([[cos, -sin], [sin, cos]])
        page = np.array([[0, 0], [width, 0], [width, height], [0, height]]) @ rotation
        right, bottom = np.ceil(page.max(axis=0) - page.min(axis=0))
        return cls(angle, rotation, -page.min(axis=0), (int(right), int(bottom)))

    def picture(self, brightness: Any) -> Any:
        """Return a turned grey picture; what was outside of it is white."""
        if not self.angle:
            return brightness
        matrix = np.hstack([self.rotation.T, self.offset[:, None]])
        return cv2.warpAffine(brightness, matrix, self.size, borderValue=255)

    def box(self, corners: Any, text: str) -> Box:
        """Return the bounding box of turned corners."""
        return Box.around(corners @ self.rotation + self.offset, text)


def by_direction(lines: Iterable[Line]) -> list[list[Line]]:
    """Return the lines of each direction, first that of most letters."""
    groups: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: -line.size):
        for group in groups:
            if math.cos(line.direction - group[0].direction) > _SAME_DIRECTION:
                group.append(line)
                break
        else:
            groups.append([line])
    return sorted(groups, key=lambda group: -sum(line.size for line in group))


def angle_of(lines: Sequence[Line]) -> float:
    """Return the angle at which most of the longer lines lie."""
    least = float(np.median([line.length for line in lines]))
    first = lines[0].direction
    angles = [line.direction - first for line in lines if line.length >= least]
    return first + float(np.median([math.remainder(angle, math.tau) for angle in angles]))
