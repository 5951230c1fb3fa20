"""The city: rows of buildings into the haze, lamps behind the windows, a river in front."""

from random import Random

import attrs

from .colour import mix, ramp
from .figures import paint_sailboat
from .ridges import paint_distance
from .scene import Scene
from .svg import Drawing, disc
from .water import paint_glitter

_ROWS = 4
_LIT_ROWS = 2  # the farther ones are too far to see their windows


@attrs.frozen(kw_only=True)
class _Block:
    x: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The middle of its roof."""
        return self.x + self.width / 2


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint the skyline, far rows first."""
    palette = scene.palette
    if "mountains" in scene.motifs:
        paint_distance(drawing, scene, scene.horizon * 0.4)
    haze = mix(palette.sky[-1], palette.sky[-2], 0.4)
    tones = (mix(haze, palette.land[0], 0.55), *palette.land)
    for row in range(_ROWS):
        share = row / (_ROWS - 1)
        colour = ramp(tones, 0.06 + 0.88 * share)
        tall = scene.horizon * (0.52 - 0.24 * share)
        stops = [(0, colour, 1.0), (1, mix(colour, haze, 0.55 * (1 - share)), 1.0)]
        paint = drawing.vertical(scene.horizon - tall, scene.horizon, stops)
        _paint_row(drawing, scene, row, tall, paint)


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the light on the river, and a boat."""
    paint_glitter(drawing, scene, scene.horizon + 1)
    if "boat" in scene.motifs:
        x = scene.width * scene.dice("river").uniform(0.3, 0.7)
        paint_sailboat(drawing, scene, (x, scene.horizon + scene.unit * 60), scene.unit * 60)


def _paint_row(drawing: Drawing, scene: Scene, row: int, tall: float, paint: str) -> None:
    dice, unit, palette = scene.dice(f"row {row}"), scene.unit, scene.palette
    share = row / (_ROWS - 1)
    blocks = _blocks(dice, scene, tall, 0.75 + 0.55 * share)
    walls = "".join(
        f"M{block.x:.1f} {scene.horizon + 2:.1f}V{block.top:.1f}h{block.width:.1f}"
        f"V{scene.horizon + 2:.1f}Z{_roof(dice, block, unit)}"
        for block in blocks
    )
    drawing.fill(walls, paint)
    if row < _ROWS - _LIT_ROWS:
        return
    cell = unit * (0.8 + 0.5 * share)
    bright = (0.9 if palette.stars or palette.name == "storm" else 0.4) * (0.45 + 0.55 * share)
    warm = "".join(_windows(dice, block, cell, 0.24) for block in blocks)
    cold = "".join(_windows(dice, block, cell, 0.07) for block in blocks)
    drawing.fill(warm, palette.lamp, bright)
    drawing.fill(cold, mix(palette.lamp, "#ffffff", 0.55), bright * 0.75)


def _blocks(dice: Random, scene: Scene, tall: float, breadth: float) -> list[_Block]:
    """Return a row of buildings, tallest downtown."""
    unit, downtown = scene.unit, scene.width * dice.uniform(0.3, 0.7)
    blocks, x = [], -unit * 30
    while x < scene.width + unit * 10:
        width = unit * dice.uniform(26, 70) * breadth
        slope = max(0.25, 1 - abs(x + width / 2 - downtown) / scene.width * 1.5)
        height = tall * slope * dice.uniform(0.38, 1.0) ** 1.1
        blocks.append(_Block(x=x, top=scene.horizon - height, width=width, height=height))
        x += width * dice.uniform(0.72, 1.1)
    return blocks


def _roof(dice: Random, block: _Block, unit: float) -> str:
    roofs = (_flat, _stepped, _pointed, _antenna, _slanted, _domed)
    (roof,) = dice.choices(roofs, weights=(32, 22, 14, 14, 12, 6))
    return roof(block, unit * dice.uniform(8, 26))


def _flat(_block: _Block, _rise: float) -> str:
    return ""


def _stepped(block: _Block, rise: float) -> str:
    wide, narrow = block.width * 0.62, block.width * 0.34
    return (
        f"M{block.middle - wide / 2:.1f} {block.top + 1:.1f}v{-rise:.1f}h{wide:.1f}v{rise:.1f}Z"
        f"M{block.middle - narrow / 2:.1f} {block.top - rise + 1:.1f}v{-rise * 0.8:.1f}"
        f"h{narrow:.1f}v{rise * 0.8:.1f}Z"
    )


def _pointed(block: _Block, rise: float) -> str:
    eave = block.top + 1
    return (
        f"M{block.x + block.width * 0.22:.1f} {eave:.1f}L{block.middle:.1f}"
        f" {block.top - rise * 3:.1f}L{block.x + block.width * 0.78:.1f} {eave:.1f}Z"
    )


def _antenna(block: _Block, rise: float) -> str:
    mast = rise * 2.3
    return f"M{block.middle - 0.9:.1f} {block.top + 1:.1f}v{-mast:.1f}h1.8v{mast:.1f}Z"


def _slanted(block: _Block, rise: float) -> str:
    eave = block.top + 1
    return f"M{block.x:.1f} {eave:.1f}v{-rise:.1f}L{block.x + block.width:.1f} {eave:.1f}Z"


def _domed(block: _Block, _rise: float) -> str:
    return disc(block.middle, block.top, block.width * 0.36)


def _windows(dice: Random, block: _Block, cell: float, chance: float) -> str:
    across, down = cell * 7.5, cell * 10.5
    columns = int((block.width - across * 0.6) / across)
    start = block.middle - ((columns - 1) * across + cell * 3.6) / 2
    busy = chance * dice.uniform(0.4, 1.5)
    return "".join(
        f"M{start + column * across:.1f} {block.top + down * (row + 0.8):.1f}"
        f"h{cell * 3.6:.1f}v{cell * 4.6:.1f}h{-cell * 3.6:.1f}Z"
        for row in range(int((block.height - down) / down))
        for column in range(columns)
        if dice.random() < busy
    )
