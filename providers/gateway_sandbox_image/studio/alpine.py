"""The mountains: a massif, wooded foothills in the mist, tall firs in front."""

from .buildings import paint_cabin
from .colour import mix
from .figures import paint_wanderer
from .massif import paint_massif
from .ridges import paint_distance, paint_ridge, ridge, scattered_hills, top_of
from .scene import Scene
from .svg import Drawing, Point, height_at
from .trees import paint_frame_of_firs, row_of_firs
from .weather import paint_mist

_FOOTHILLS = 3


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint the ranges at the horizon."""
    paint_distance(drawing, scene, scene.horizon * 0.3)
    paint_massif(drawing, scene, min(scene.horizon * 0.56, scene.width * 0.42))
    paint_mist(drawing, scene, scene.horizon - 10 * scene.unit, 170 * scene.unit, 0.6)


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the foothills, with a cabin or a traveller on the middle one."""
    unit, depth = scene.unit, scene.height - scene.horizon
    for layer in range(_FOOTHILLS):
        base = scene.horizon + depth * (0.1 + 0.86 * (layer / (_FOOTHILLS - 1)) ** 1.25)
        line = _paint_foothill(drawing, scene, layer, base)
        if layer < _FOOTHILLS - 1:
            paint_mist(drawing, scene, base + unit * 70, unit * 130, 0.5)
        if layer == 1:
            paint_inhabitants(drawing, scene, line)
    paint_frame_of_firs(drawing, scene)


def _paint_foothill(drawing: Drawing, scene: Scene, layer: int, base: float) -> list[Point]:
    dice, unit, palette = scene.dice(f"foothill {layer}"), scene.unit, scene.palette
    share = layer / (_FOOTHILLS - 1)
    tall = max(unit * (60 + 26 * layer), (scene.height - scene.horizon) * 0.2)
    line = ridge(dice, scene.width, base, scattered_hills(dice, scene.width, tall, 3), unit * 20)
    colour = mix(palette.land[1], palette.land[2], 0.1 + 0.8 * share)
    haze = mix(colour, palette.sky[-1], 0.5 - 0.3 * share)
    stops = [(0, colour, 1.0), (0.5, colour, 1.0), (1, haze, 1.0)]
    paint = drawing.vertical(top_of(line) - unit * 30, base + unit * 110, stops)
    drawing.fill(row_of_firs(dice, line, unit * (8 + 9 * layer), unit * (32 + 40 * layer)), paint)
    paint_ridge(drawing, scene, line, colour, haze, unit * 190)
    return line


def paint_inhabitants(drawing: Drawing, scene: Scene, line: list[Point]) -> None:
    """Paint a cabin or a traveller on a hill if the prompt names one."""
    dice, unit = scene.dice("inhabitants"), scene.unit
    x = scene.width * (0.5 + scene.light_side * dice.uniform(0.02, 0.14))
    if "cabin" in scene.motifs:
        paint_cabin(drawing, scene, (x, height_at(line, x) + unit * 10), unit * 62)
    elif "wanderer" in scene.motifs:
        paint_wanderer(drawing, scene, (x, height_at(line, x) + unit), unit * 46)
