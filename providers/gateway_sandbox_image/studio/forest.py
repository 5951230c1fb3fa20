"""The forest: rows of firs, each darker and taller than the one behind, mist between them."""

from .alpine import paint_inhabitants
from .colour import mix, ramp
from .ridges import paint_distance, paint_ridge, ridge, scattered_hills, top_of
from .scene import Scene
from .svg import Drawing, Point
from .trees import row_of_firs
from .weather import paint_mist

_ROWS = 6
_INHABITED_ROW = 3


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint the ranges at the horizon."""
    paint_distance(drawing, scene, scene.horizon * 0.34)


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the wood, row by row."""
    unit, depth = scene.unit, scene.height - scene.horizon
    for row in range(_ROWS):
        share = row / (_ROWS - 1)
        base = scene.horizon + depth * (-0.06 + 1.08 * share**1.2)
        line = _paint_row(drawing, scene, row, base)
        if row < _ROWS - 1:
            paint_mist(drawing, scene, base + unit * 40, unit * 150, 0.75 - 0.4 * share)
        if row == _INHABITED_ROW:
            paint_inhabitants(drawing, scene, line)


def _paint_row(drawing: Drawing, scene: Scene, row: int, base: float) -> list[Point]:
    dice, unit, palette = scene.dice(f"wood {row}"), scene.unit, scene.palette
    share = row / (_ROWS - 1)
    hills = scattered_hills(dice, scene.width, unit * 90, 3)
    line = ridge(dice, scene.width, base, hills, unit * 24)
    haze = mix(palette.sky[-1], palette.land[0], 0.35)
    colour = ramp((mix(haze, palette.land[0], 0.6), palette.land[1], palette.land[2]), share)
    foot = mix(colour, haze, 0.62 * (1 - share))
    tall = unit * (44 + 150 * share**1.3)
    stops = [(0, colour, 1.0), (0.45, colour, 1.0), (1, foot, 1.0)]
    paint = drawing.vertical(top_of(line) - tall, base + unit * 70, stops)
    drawing.fill(row_of_firs(dice, line, unit * (8 + 26 * share), tall), paint)
    paint_ridge(drawing, scene, line, colour, foot, unit * 150)
    return line
