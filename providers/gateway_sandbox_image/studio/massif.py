"""The main mountains: rock with a lit and a shaded side, and snow."""

from itertools import groupby
from random import Random

from .colour import mix
from .ridges import Peak, paint_ridge, ridge, roughness, top_of
from .scene import Scene
from .svg import Drawing, Point, below, outline

_OVERLOOK = 14  # steps to each side that a summit is higher than
_SADDLE = 9.0  # pixels of climbing after which a flank belongs to the next summit
_FULL_COVER = 1.1  # snow down to below the foot


def paint_massif(drawing: Drawing, scene: Scene, height: float) -> None:
    """Paint the massif on the horizon, away from the light."""
    dice, palette = scene.dice("massif"), scene.palette
    base = scene.horizon + height * 0.04
    line = ridge(dice, scene.width, base, _peaks(dice, scene, height), height * 0.17)
    haze = mix(palette.sky[-1], palette.land[0], 0.35)
    rock = mix(palette.land[0], palette.land[1], 0.62)
    foot = mix(rock, haze, 0.7)
    paint_ridge(drawing, scene, line, mix(rock, palette.glow, 0.2), foot, height * 1.1)
    if snow := _snow_cover(scene):
        _paint_snow(drawing, scene, line, base - height * (1 - snow), height * 0.16)
    for summit in _summits(line, base - height * 0.22):
        _paint_faces(drawing, scene, line, summit, (base, height))
    stops = [(0, haze, 0.0), (0.6, haze, 0.35), (1, haze, 0.75)]
    drawing.fill(below(line, scene.height), drawing.vertical(base - height * 0.5, base, stops))


def _peaks(dice: Random, scene: Scene, height: float) -> list[Peak]:
    """Return peaks, the lowest on the side of the light."""
    side = scene.light_side
    centre = scene.width * (0.5 - side * dice.uniform(0.1, 0.2))
    peaks = [Peak(x=centre, height=height, reach=height * dice.uniform(1.25, 1.6))]
    for distance in (-1.15, -0.55, 0.6, 1.2):
        tall = height * dice.uniform(0.42, 0.78) * (0.62 if distance * side > 0 else 1.0)
        x = centre + distance * height * dice.uniform(0.8, 1.25)
        peaks.append(Peak(x=x, height=tall, reach=tall * dice.uniform(1.3, 1.9)))
    return peaks


def _snow_cover(scene: Scene) -> float:
    if "winter" in scene.motifs or scene.palette.name == "frost":
        return _FULL_COVER
    return scene.dice("snow line").choice((0.0, 0.32, 0.42, 0.5))


def _paint_snow(
    drawing: Drawing, scene: Scene, crest: list[Point], line: float, depth: float
) -> None:
    rough = roughness(scene.dice("snow"), len(crest), 0.8)
    white = mix(scene.palette.lit, "#ffffff", 0.45)
    stops = [(0, white, 1.0), (0.55, white, 0.9), (1, white, 0.25)]
    paint = drawing.vertical(top_of(crest), line + depth, stops)
    edge = [(x, max(y, line + depth * shift)) for (x, y), shift in zip(crest, rough, strict=True)]
    pairs = zip(crest, edge, strict=True)
    for is_white, run in groupby(pairs, key=lambda pair: pair[0][1] < pair[1][1]):
        if is_white:
            upper, lower = zip(*run, strict=True)
            drawing.fill(outline([*upper, *lower[::-1]]), paint)


def _paint_faces(
    drawing: Drawing,
    scene: Scene,
    line: list[Point],
    summit: int,
    extent: tuple[float, float],
) -> None:
    """Paint a summit; `extent` is the massif's base and height."""
    dice, palette, side = scene.dice(f"faces {summit}"), scene.palette, scene.light_side
    base, height = extent
    spine = _spine(dice, line[summit], base, -side)
    shaded = _flank(line, summit, -side)
    x, y = shaded[-1]
    inward = side * (base - y) * 0.55
    foot = [(x + inward * 0.4 + 6 * side, (y + base) / 2), (x + inward, base)]
    tone = mix(palette.land[1], palette.shade, 0.35)
    stops = [(0, tone, 0.82), (0.55, tone, 0.6), (1, tone, 0.0)]
    paint = drawing.vertical(line[summit][1], base, stops)
    drawing.fill(outline([*shaded, *foot, *spine[::-1]]), paint)
    for _ in range(7):
        start = spine[dice.randrange(max(1, len(spine) * 2 // 3))]
        _paint_gully(drawing, scene, dice, start, height * dice.uniform(0.1, 0.3))


def _paint_gully(drawing: Drawing, scene: Scene, dice: Random, start: Point, length: float) -> None:
    """Paint a shaded wedge from a point of the spine down."""
    x, y = start
    lean = length * dice.uniform(0.35, 0.8) * scene.light_side
    knee = (x + 0.5 * lean + dice.uniform(-3, 3), y + length * 0.42)
    back = (x + 0.12 * lean, y + length * dice.uniform(0.55, 0.8))
    tone = mix(scene.palette.land[1], scene.palette.shade, 0.4)
    paint = drawing.vertical(y, y + length, [(0, tone, 0.6), (1, tone, 0)])
    drawing.fill(outline([start, knee, (x + lean, y + length), back]), paint)


def _spine(dice: Random, summit: Point, base: float, drift: int) -> list[Point]:
    """Return the zigzag edge between light and shade."""
    x, y = summit
    spine = [summit]
    while y < base:
        drop = dice.uniform(5, 16)
        y += drop
        x += drop * (dice.uniform(-0.75, 0.75) + 0.12 * drift)
        spine.append((x, y))
    return spine


def _summits(line: list[Point], lowest: float) -> list[int]:
    return [
        index
        for index, (_, y) in enumerate(line)
        if y < lowest and y == top_of(line[max(0, index - _OVERLOOK) : index + _OVERLOOK + 1])
    ]


def _flank(line: list[Point], summit: int, step: int) -> list[Point]:
    """Return the flank to where it climbs again."""
    lowest = index = summit
    while 0 <= index + step < len(line) and line[lowest][1] - line[index][1] <= _SADDLE:
        index += step
        if line[index][1] > line[lowest][1]:
            lowest = index
    return [line[at] for at in range(summit, lowest + step, step)]
