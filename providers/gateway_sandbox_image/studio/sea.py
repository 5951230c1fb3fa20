"""The sea: islands on the horizon, boats, and a headland that may carry a lighthouse or a cabin."""

import math

from .buildings import paint_cabin, paint_lighthouse
from .colour import mix
from .figures import paint_sailboat, paint_wanderer
from .ridges import ridge, roughness, scattered_hills
from .scene import Scene
from .svg import Drawing, Point, height_at, line_through, outline
from .trees import paint_tufts
from .water import paint_glitter
from .weather import paint_mist

_ON_A_CLIFF = ("lighthouse", "cabin", "wanderer")
_BRINK = 0.62  # where, along the headland, the cliff falls to the water


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint islands, away from the light."""
    for island in range(3):
        _paint_island(drawing, scene, island)
    paint_mist(drawing, scene, scene.horizon - 4 * scene.unit, 60 * scene.unit, 0.4)


def _paint_island(drawing: Drawing, scene: Scene, nearness: int) -> None:
    dice, palette = scene.dice(f"island {nearness}"), scene.palette
    haze = mix(palette.sky[-1], palette.land[0], 0.5)
    wide = scene.width * 0.5
    left = scene.width * (0.25 - scene.light_side * dice.uniform(0.18, 0.52))
    tall = scene.unit * dice.uniform(36, 95) * (1.25 if "mountains" in scene.motifs else 0.8)
    peaks = scattered_hills(dice, wide, tall, 4)
    coast = ridge(dice, wide, scene.horizon, peaks, scene.unit * 9)
    line = []
    for x, y in coast:
        shore = math.sin(math.pi * min(1.0, x / wide)) ** 0.6  # the shore slopes at both ends
        line.append((x + left, scene.horizon + 1 - max(0.0, scene.horizon - y) * shore))
    colour = mix(haze, palette.land[1], 0.12 + 0.3 * nearness)
    stops = [(0, colour, 1.0), (1, mix(colour, haze, 0.5), 1.0)]
    paint = drawing.vertical(scene.horizon - tall, scene.horizon, stops)
    drawing.fill(line_through(line) + f"V{scene.horizon + 1:.1f}H{left:.1f}Z", paint)


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the light on the water, boats, and the headland."""
    dice, unit = scene.dice("sea"), scene.unit
    depth = scene.height - scene.horizon
    paint_glitter(drawing, scene, scene.horizon + 1)
    if "boat" in scene.motifs:
        x = scene.width * (0.5 - scene.light_side * dice.uniform(0.0, 0.2))
        paint_sailboat(drawing, scene, (x, scene.horizon + depth * 0.2), unit * 105)
        away = x + scene.width * 0.17
        paint_sailboat(drawing, scene, (away, scene.horizon + depth * 0.05), unit * 36)
    if not scene.motifs.isdisjoint(_ON_A_CLIFF):
        _paint_headland(drawing, scene)


def _paint_headland(drawing: Drawing, scene: Scene) -> None:
    """Paint a cliff on the side away from the light."""
    dice, palette, side = scene.dice("headland"), scene.palette, -scene.light_side
    reach, edge = scene.width * dice.uniform(0.4, 0.48), 0 if side < 0 else scene.width
    level = scene.horizon + (scene.height - scene.horizon) * dice.uniform(0.3, 0.4)
    crest = [(edge - side * reach * x, level + y) for x, y in _cliff(scene, scene.height - level)]
    tone = mix(palette.land[1], palette.land[2], 0.72)
    paint = drawing.vertical(level, scene.height, [(0, tone, 1), (0.7, palette.land[2], 1)])
    drawing.fill(line_through(crest) + f"V{scene.height + 2}H{edge}Z", paint)
    paint_tufts(drawing, scene, sorted(crest[:38]), tone)
    _paint_ledges(drawing, scene, crest[30:], tone)
    for _ in range(4):
        along = edge - side * (reach + scene.unit * dice.uniform(-70, 110))
        spot = along, scene.height - scene.unit * dice.uniform(24, 150)
        _paint_rock(drawing, scene, spot, scene.unit * dice.uniform(14, 52))
    _paint_dwellers(drawing, scene, sorted(crest), edge - side * reach * dice.uniform(0.26, 0.4))


def _cliff(scene: Scene, depth: float) -> list[Point]:
    """Return fractions of the length, and pixels below the highest point."""
    rough, unit = roughness(scene.dice("cliff"), 61, 0.74), scene.unit
    points = []
    for index in range(61):
        share = index / 60
        crag = unit * (9 if share < _BRINK else 26) * rough[index]
        fall = depth * max(0.0, (share - _BRINK) / (1 - _BRINK)) ** 1.5
        points.append((share, unit * 60 * share + fall + crag))
    return points


def _paint_dwellers(drawing: Drawing, scene: Scene, line: list[Point], x: float) -> None:
    unit = scene.unit
    if "lighthouse" in scene.motifs:
        paint_lighthouse(drawing, scene, (x, height_at(line, x) + unit * 4), unit * 250)
        x -= scene.light_side * unit * 120
    if "cabin" in scene.motifs:
        paint_cabin(drawing, scene, (x, height_at(line, x) + unit * 6), unit * 66)
    elif "lighthouse" not in scene.motifs:
        paint_wanderer(drawing, scene, (x, height_at(line, x) + unit * 3), unit * 54)


def _paint_ledges(drawing: Drawing, scene: Scene, brink: list[Point], tone: str) -> None:
    dice = scene.dice("ledges")
    for start in range(0, len(brink) - 4, 3):
        x, y = brink[start]
        deep = scene.unit * dice.uniform(90, 260)
        lean = scene.light_side * deep * dice.uniform(0.1, 0.3)
        right = brink[start + dice.randrange(2, 5)]
        plane = [
            (x, y),
            right,
            (right[0] + lean, right[1] + deep * 0.7),
            (x + lean * 0.4, y + deep),
        ]
        colour = mix(tone, scene.palette.glow, dice.uniform(0.12, 0.3))
        stops = [(0, colour, 0.75), (1, colour, 0.0)]
        drawing.fill(outline(plane), drawing.vertical(y, y + deep, stops))


def _paint_rock(drawing: Drawing, scene: Scene, spot: Point, size: float) -> None:
    dice, palette, (x, y) = scene.dice(f"rock {spot}"), scene.palette, spot
    lumps = []
    for step in range(9):
        turn = math.pi * step / 8
        across, up = size * dice.uniform(0.75, 1.15), size * dice.uniform(0.43, 0.86)
        lumps.append((x + across * math.cos(turn), y - up * math.sin(turn)))
    drawing.fill(outline(lumps), mix(palette.land[1], palette.land[2], 0.8))
    foam = (
        f"M{x - size * 1.5:.1f} {y:.1f}Q{x:.1f} {y + size * 0.3:.1f} {x + size * 1.5:.1f} {y:.1f}"
    )
    drawing.stroke(foam, palette.lit, 2.2 * scene.unit, 0.5)
