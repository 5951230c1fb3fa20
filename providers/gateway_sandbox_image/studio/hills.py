"""The hills: rolling meadows, a lone tree, grass in front."""

import math
from random import Random

from .buildings import paint_cabin
from .colour import mix, ramp
from .figures import paint_wanderer
from .ridges import paint_distance, scattered_hills, top_of
from .scene import Scene
from .svg import Drawing, Point, below, height_at
from .trees import paint_lone_tree, paint_tufts

_MEADOWS = 6


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint the hills at the horizon."""
    paint_distance(drawing, scene, scene.horizon * 0.22, scattered_hills)


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the meadows, and the tree and figures on them."""
    unit, dice, side = scene.unit, scene.dice("meadow"), scene.light_side
    lines = [_paint_meadow(drawing, scene, layer / (_MEADOWS - 1)) for layer in range(_MEADOWS)]
    near, nearest = lines[-2], lines[-1]
    x = scene.width * (0.5 - side * dice.uniform(0.16, 0.3))
    foot = min(height_at(near, x), height_at(nearest, x)) + unit * 3
    paint_lone_tree(drawing, scene, (x, foot), unit * dice.uniform(190, 260))
    x = scene.width * (0.5 + side * dice.uniform(0.05, 0.2))
    if "cabin" in scene.motifs:
        paint_cabin(drawing, scene, (x, height_at(lines[-3], x) + unit * 6), unit * 54)
    elif "wanderer" in scene.motifs:
        foot = min(height_at(near, x), height_at(nearest, x))
        paint_wanderer(drawing, scene, (x, foot), unit * 52)
    grass = mix(scene.palette.land[2], scene.palette.land[1], 0.12)
    paint_tufts(drawing, scene, nearest, grass)


def _paint_meadow(drawing: Drawing, scene: Scene, nearness: float) -> list[Point]:
    palette = scene.palette
    base = scene.horizon + (scene.height - scene.horizon) * 0.72 * nearness**1.35
    swell = scene.height * (0.035 + 0.05 * nearness)
    dice = scene.dice(f"meadow {nearness}")
    line = _rolling(dice, scene.width, base, swell, 2.2 - nearness)
    haze = mix(palette.sky[-1], palette.land[0], 0.5)
    colour = ramp((haze, *palette.land), 0.22 + 0.72 * nearness)
    lit = mix(colour, palette.glow, 0.3 * (1 - nearness))
    stops = [(0, lit, 1.0), (1, mix(colour, haze, 0.22 * (1 - nearness)), 1.0)]
    paint = drawing.vertical(base - swell, base + swell * 3.2, stops)
    drawing.fill(below(line, scene.height + 2), paint)
    sheen = [(0, palette.glow, 0.34), (0.5, palette.glow, 0.1), (1, palette.glow, 0.0)]
    spot = (scene.light[0], top_of(line) - swell * 0.2)
    drawing.fill(below(line, scene.height + 2), drawing.radial(spot, scene.width * 0.6, sheen))
    return line


def _rolling(dice: Random, width: float, base: float, swell: float, waves: float) -> list[Point]:
    """Return three superimposed waves."""
    mixed = [
        (dice.uniform(0, math.tau), math.tau * waves * speed * dice.uniform(0.8, 1.25), weight)
        for speed, weight in ((0.55, 0.6), (1.1, 0.32), (2.3, 0.1))
    ]
    points = []
    for index in range(61):
        share = index / 60
        wave = sum(math.sin(phase + share * speed) * weight for phase, speed, weight in mixed)
        points.append((share * width, base - swell * wave))
    return points
