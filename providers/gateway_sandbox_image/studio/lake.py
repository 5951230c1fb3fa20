"""The lake: mountains and their mirror image, a wooded shore, reeds in front."""

from .buildings import paint_cabin
from .colour import mix
from .figures import paint_rowboat
from .massif import paint_massif
from .ridges import paint_distance
from .scene import Scene
from .svg import Drawing, below
from .trees import paint_frame_of_firs, paint_tufts, row_of_firs
from .water import paint_glitter
from .weather import paint_mist


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint mountains and the far shore."""
    dice, unit = scene.dice("far shore"), scene.unit
    paint_distance(drawing, scene, scene.horizon * 0.26)
    paint_massif(drawing, scene, min(scene.horizon * 0.5, scene.width * 0.38))
    paint_mist(drawing, scene, scene.horizon - 16 * unit, 120 * unit, 0.55)
    _paint_shore(drawing, scene, 0.0, 0.15)
    _paint_shore(drawing, scene, 1.0, 0.65)
    if "cabin" in scene.motifs:
        x = scene.width * (0.5 + scene.light_side * dice.uniform(0.0, 0.1))
        paint_cabin(drawing, scene, (x, scene.horizon - unit * 3), unit * 50)


def _paint_shore(drawing: Drawing, scene: Scene, nearness: float, dark: float) -> None:
    """Paint firs; the nearer row keeps clear of the light."""
    dice, unit, palette = scene.dice(f"shore {nearness}"), scene.unit, scene.palette
    left, right = 0.0, float(scene.width)
    if nearness and scene.light_side < 0:
        left = scene.width * 0.56
    elif nearness:
        right = scene.width * 0.44
    line = [
        (left + (right - left) * i / 20, scene.horizon + unit * dice.uniform(-5, 2))
        for i in range(21)
    ]
    colour = mix(palette.land[1], palette.land[2], dark)
    firs = row_of_firs(dice, line, unit * (6 + 4 * nearness), unit * (30 + 22 * nearness))
    drawing.fill(firs, colour)
    drawing.rect(left, scene.horizon - 4 * unit, right - left, 6 * unit, colour)


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the light on the water, a boat, and the near bank."""
    dice, unit = scene.dice("lake"), scene.unit
    paint_glitter(drawing, scene, scene.horizon + 2)
    if "boat" in scene.motifs:
        x = scene.width * (0.5 + scene.light_side * dice.uniform(-0.06, 0.1))
        y = scene.horizon + (scene.height - scene.horizon) * 0.46
        paint_rowboat(drawing, scene, (x, y), unit * 62)
    paint_frame_of_firs(drawing, scene)
    _paint_bank(drawing, scene)


def _paint_bank(drawing: Drawing, scene: Scene) -> None:
    unit, dice, tone = scene.unit, scene.dice("bank"), scene.palette.land[2]
    line = []
    for index in range(31):
        rise = 26 + 53 * (index / 15 - 1) ** 2 + dice.uniform(-4, 4)
        line.append((scene.width * index / 30, scene.height - unit * rise))
    drawing.fill(below(line, scene.height), tone)
    paint_tufts(drawing, scene, line, tone)
