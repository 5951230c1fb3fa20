"""The desert: table mountains far off, and dunes with a lit and a shaded side."""

import math
from random import Random

from .colour import mix, ramp
from .figures import paint_wanderer
from .scene import Scene
from .svg import Drawing, Place, Point, below, line_through, smooth
from .weather import paint_mist

_DUNES = 6
_CACTUS = "M0 4V-100M0 -38h-8q-12 0 -12 -14v-16M0 -50h8q12 0 12 -14v-14"  # on a grid of 100


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint two rows of table mountains and the dust at their feet."""
    palette = scene.palette
    far = mix(palette.sky[-1], palette.land[0], 0.6)
    near = mix(mix(palette.sky[-1], palette.land[0], 0.76), palette.land[1], 0.35)
    _paint_mesas(drawing, scene, far, 70 * scene.unit)
    _paint_mesas(drawing, scene, near, 110 * scene.unit)
    paint_mist(drawing, scene, scene.horizon, 90 * scene.unit, 0.45)


def _paint_mesas(drawing: Drawing, scene: Scene, colour: str, size: float) -> None:
    dice, x = scene.dice(f"mesas {size}"), -size
    points: list[Point] = [(x, scene.horizon)]
    while x < scene.width + size:
        x += size * dice.uniform(0.9, 4)
        width = scene.unit * dice.uniform(70, 260)
        points += _mesa(dice, (x, scene.horizon), width, size * dice.uniform(0.5, 1.15))
        x += width
    haze = mix(colour, scene.palette.sky[-1], 0.6)
    paint = drawing.vertical(scene.horizon - size, scene.horizon, [(0, colour, 1), (1, haze, 1)])
    drawing.fill(below(points, scene.height), paint)


def _mesa(dice: Random, foot: Point, width: float, tall: float) -> list[Point]:
    """Return scree below, walls above, a level top."""
    x, y = foot
    scree = tall * dice.uniform(0.5, 0.9)
    wall = tall * 0.05
    table = [(x + wall + width * i / 5, y - tall * dice.uniform(0.95, 1.03)) for i in range(6)]
    end = x + 2 * wall + width
    left = [(x - scree, y), (x - scree * 0.3, y - tall * 0.42), (x, y - tall * 0.5)]
    right = [(end, y - tall * 0.5), (end + scree * 0.35, y - tall * 0.4), (end + scree, y)]
    return [*left, *table, *right]


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the dunes, cacti, and the traveller if the prompt names one."""
    line: list[Point] = []
    for dune in range(_DUNES):
        line = _paint_dune(drawing, scene, dune / (_DUNES - 1))
    _paint_ripples(drawing, scene, max(y for _, y in line))
    if "cactus" in scene.motifs:
        _paint_cacti(drawing, scene, line)
    else:
        spot = min(line[32:-32], key=lambda point: point[1])
        paint_wanderer(drawing, scene, spot, scene.unit * 44)


def _paint_dune(drawing: Drawing, scene: Scene, nearness: float) -> list[Point]:
    palette, depth = scene.palette, scene.height - scene.horizon
    base = scene.horizon + depth * (0.03 + 0.66 * nearness**1.25)
    swell = depth * (0.06 + 0.2 * nearness)
    dice = scene.dice(f"dune {nearness}")
    line = _crest(dice, scene.width, base, swell, 2.6 - 1.4 * nearness)
    far = mix(palette.sky[-1], palette.land[0], 0.7)
    sand = ramp((far, palette.land[0], palette.land[1]), nearness)
    lit = mix(sand, palette.glow, 0.42 - 0.1 * nearness)
    paint = drawing.vertical(base - swell, base + swell * 3, [(0, lit, 1), (1, sand, 1)])
    drawing.fill(below(line, scene.height + 2), paint)
    shade = ramp(palette.land, 0.28 + 0.62 * nearness)
    for top in range(3, len(line) - 3):
        if line[top - 1][1] > line[top][1] <= line[top + 1][1]:
            _paint_shadow(drawing, scene, line, top, (shade, swell * dice.uniform(2.2, 3.2)))
    return line


def _crest(dice: Random, width: float, base: float, swell: float, waves: float) -> list[Point]:
    """Return long windward slopes and short lee ones."""
    phase, second = dice.uniform(0, math.tau), dice.uniform(0, math.tau)
    points = []
    for index in range(161):
        share = index / 160
        turn = phase + share * math.tau * waves * 0.5
        wave = math.sin(turn + 0.55 * math.sin(turn)) + 0.25 * math.sin(second + share * 9)
        points.append((share * width, base - swell * wave * 0.62))
    return points


def _paint_shadow(
    drawing: Drawing, scene: Scene, line: list[Point], top: int, look: tuple[str, float]
) -> None:
    """Paint shade with an S-shaped edge down from the top."""
    shade, reach = look
    (x, y), drift = line[top], -scene.light_side * reach * 0.37
    lee = _lee(line, top, -scene.light_side)
    edge = [
        (x, y),
        (x + drift * 0.35, y + reach * 0.12),
        (x - drift * 0.25, y + reach * 0.36),
        (x + drift * 0.9, y + reach * 0.66),
        *_foot_of_shadow(lee[-1], scene.width, drift, y + reach),
    ]
    stops = [(0, shade, 0.92), (0.5, shade, 0.55), (1, shade, 0.0)]
    paint = drawing.vertical(y, y + reach * 0.62, stops)
    drawing.fill(smooth(edge) + line_through(lee[::-1], start="L") + "Z", paint)


def _foot_of_shadow(end: Point, width: int, drift: float, floor: float) -> list[Point]:
    """Close a shadow below the picture's edge, or in a curve to the crest's end."""
    x, y = end
    if x <= 0 or x >= width:
        return [(x, max(y, floor))]
    return [(x - drift * 0.5, y + (floor - y) * 0.35), end]


def _lee(line: list[Point], top: int, step: int) -> list[Point]:
    points, index = [line[top]], top
    while 0 <= index + step < len(line) and line[index + step][1] >= line[index][1]:
        index += step
        points.append(line[index])
    return points


def _paint_ripples(drawing: Drawing, scene: Scene, top: float) -> None:
    dice, unit = scene.dice("ripples"), scene.unit
    tone = mix(scene.palette.land[1], scene.palette.land[2], 0.5)
    y = top + unit * 18
    while y < scene.height:
        near = (y - top) / (scene.height - top)
        phase, swing = dice.uniform(0, math.tau), unit * (3 + 4 * near)
        waves = [
            swing * math.sin(phase + i * 0.8) + unit * 5 * math.sin(i * 0.37) for i in range(25)
        ]
        comb = smooth([(scene.width * i / 24, y + wave) for i, wave in enumerate(waves)])
        drawing.stroke(comb, tone, unit * (0.8 + 1.6 * near), 0.1 + 0.14 * near)
        y += unit * (9 + 16 * near) * dice.uniform(0.8, 1.2)


def _paint_cacti(drawing: Drawing, scene: Scene, line: list[Point]) -> None:
    dice = scene.dice("cacti")
    tone = mix(scene.palette.land[2], "#000000", 0.35)
    for _ in range(dice.choice((2, 3))):
        spot = line[dice.randrange(12, len(line) - 12)]
        drawing.stamp_line(_CACTUS, Place(spot, scene.unit * dice.uniform(60, 130)), tone, 11)
