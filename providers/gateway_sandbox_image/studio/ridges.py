"""Lines of land against the sky: rough ranges and round hills, and how they fade into haze."""

from collections.abc import Callable
from itertools import pairwise
from random import Random

import attrs

from .colour import mix
from .scene import Scene
from .svg import Drawing, Point, below

_STEP = 3.0  # pixels between two points of a ridge


@attrs.frozen(kw_only=True)
class Peak:
    """One summit of a range."""

    x: float
    height: float
    reach: float  # half of its width at the foot
    is_round: bool = False

    def height_at(self, x: float) -> float:
        """Return the height of the flank: rock is steep above, a hill is a gentle bell."""
        away = min(1.0, abs(x - self.x) / self.reach)
        shape: float = (1 - away * away) ** 2 if self.is_round else (1 - away) ** 1.3
        return self.height * shape


Scatter = Callable[[Random, float, float, int], list[Peak]]


def scattered_peaks(dice: Random, width: float, height: float, count: int) -> list[Peak]:
    """Return peaks spread over the width, none like its neighbour."""
    peaks = []
    for index in range(count):
        tall = height * dice.uniform(0.45, 1.0)
        x = width * (index + dice.uniform(0.15, 0.85)) / count
        peaks.append(Peak(x=x, height=tall, reach=tall * dice.uniform(1.5, 2.3)))
    return peaks


def scattered_hills(dice: Random, width: float, height: float, count: int) -> list[Peak]:
    """Return hills spread over the width: as peaks are, but round and broad."""
    return [
        attrs.evolve(peak, reach=width / count * dice.uniform(0.7, 1.1), is_round=True)
        for peak in scattered_peaks(dice, width, height, count)
    ]


def roughness(dice: Random, count: int, decay: float) -> list[float]:
    """Return `count` steps of fractal noise between about -1 and 1 (midpoint displacement)."""
    line, size = [dice.uniform(-1, 1), dice.uniform(-1, 1)], 1.0
    while len(line) < count:
        finer = []
        for left, right in pairwise(line):
            finer += [left, (left + right) / 2 + dice.uniform(-size, size) * 0.5]
        line = [*finer, line[-1]]
        size *= decay
    return line[:count]


def ridge(dice: Random, width: float, base: float, peaks: list[Peak], jag: float) -> list[Point]:
    """Return a ridge line: the tallest peak wins at every step; rock is rough by `jag` pixels."""
    count = int(width / _STEP) + 2
    rough, warp = roughness(dice, count, 0.73), roughness(dice, count, 0.56)
    tallest = max(peak.height for peak in peaks)
    points = []
    for index in range(count):
        x = index * _STEP
        bent = x + warp[index] * jag * 1.5  # straight flanks would look drawn with a ruler
        height = max(peak.height_at(bent) for peak in peaks)
        points.append((x, base - height - jag * rough[index] * (0.35 + 0.65 * height / tallest)))
    return points


def top_of(line: list[Point]) -> float:
    """Return the y of a line's highest point."""
    return min(y for _, y in line)


def paint_ridge(
    drawing: Drawing, scene: Scene, line: list[Point], colour: str, haze: str, depth: float
) -> None:
    """Fill below a ridge; its foot dissolves into haze over `depth` pixels."""
    top = top_of(line)
    paint = drawing.vertical(top, top + depth, [(0, colour, 1), (0.35, colour, 1), (1, haze, 1)])
    drawing.fill(below(line, scene.height + 2), paint)


def paint_distance(
    drawing: Drawing, scene: Scene, height: float, scatter: Scatter = scattered_peaks
) -> None:
    """Paint two ranges behind each other, the nearer one darker and lower."""
    dice, palette = scene.dice("distance"), scene.palette
    haze = mix(palette.sky[-1], palette.sky[-2], 0.4)
    for nearness in (0, 1):
        tall = height * (1 - 0.35 * nearness)
        base = scene.horizon - height * 0.12 * (1 - nearness)
        peaks = scatter(dice, scene.width, tall, 4 + nearness)
        line = ridge(dice, scene.width, base, peaks, height * 0.2)
        colour = mix(haze, palette.land[0], 0.4 + 0.5 * nearness)
        paint_ridge(drawing, scene, line, colour, mix(colour, haze, 0.75), tall * 1.15)
