"""A planet: banded, lit from one side, perhaps with a ring, and its moons."""

import math

import attrs
from PIL import Image, ImageDraw

from .colour import mix, rgb
from .scene import Scene
from .svg import Drawing, Place, Point
from .texture import fractal, glow

_RING = (1.32, 2.05)  # inner and outer edge, in radii of the planet
_RING_ODDS = 0.55


@attrs.frozen(kw_only=True)
class _Globe:
    centre: Point
    radius: float
    tilt: float  # degrees


def paint_planet(drawing: Drawing, scene: Scene) -> None:
    """Paint the planet, its ring (half behind and half before it), and its moons."""
    dice = scene.dice("planet")
    x = scene.width * (0.5 - scene.light_side * dice.uniform(0.06, 0.16))
    globe = _Globe(
        centre=(x, scene.horizon * dice.uniform(0.4, 0.5)),
        radius=scene.unit * dice.uniform(190, 250),
        tilt=dice.choice((-1, 1)) * dice.uniform(12, 24),
    )
    is_ringed = "ring" in scene.motifs or dice.random() < _RING_ODDS
    _lay_on_globe(drawing, globe, glow(scene.palette.glow, 0.32), 2.6)
    if is_ringed:
        _paint_half_ring(drawing, scene, globe, "1")
    _lay_on_globe(drawing, globe, _face(scene, int(globe.radius * 2), -globe.tilt), 1)
    _paint_shading(drawing, scene, globe)
    if is_ringed:
        _paint_half_ring(drawing, scene, globe, "0")
    _paint_moons(drawing, scene, globe)


def _lay_on_globe(drawing: Drawing, globe: _Globe, picture: Image.Image, radii: float) -> None:
    reach, (x, y) = globe.radius * radii, globe.centre
    drawing.lay(picture, x - reach, y - reach, 2 * reach, 2 * reach)


def _face(scene: Scene, size: int, turn: float) -> Image.Image:
    dice, palette = scene.dice("planet's face"), scene.palette
    whole = fractal(dice, (size * 3 // 2, size * 3 // 2), (0.9, 10), 6, 0.5)
    rim = (whole.width - size) // 2
    box = (rim, rim, rim + size, rim + size)
    bands = whole.rotate(turn, Image.Resampling.BICUBIC).crop(box)
    high = Image.new("RGB", bands.size, rgb(mix(palette.disc, palette.glow, 0.35)))
    low = Image.new("RGB", bands.size, rgb(mix(palette.glow, palette.land[1], 0.55)))
    face = Image.composite(high, low, bands)
    large = Image.new("L", (size * 2, size * 2))  # drawn double: ImageDraw does not anti-alias
    ImageDraw.Draw(large).ellipse((2, 2, size * 2 - 3, size * 2 - 3), fill=255)
    face.putalpha(large.resize((size, size), Image.Resampling.LANCZOS))
    return face


def _paint_shading(drawing: Drawing, scene: Scene, globe: _Globe) -> None:
    """Paint night on one side, a thin rim of atmosphere on the other."""
    side, (x, y), radius = scene.light_side, globe.centre, globe.radius
    night, air = scene.palette.sky[0], scene.palette.disc
    falling = ((0.0, 0.0), (0.42, 0.05), (0.62, 0.42), (0.82, 0.85), (1.0, 0.97))
    lit = (x + side * radius * 0.55, y - radius * 0.5)
    stops = [(at, night, share) for at, share in falling]
    drawing.circle(globe.centre, radius + 0.8, drawing.radial(lit, radius * 1.75, stops))
    rim = [(0, air, 0.0), (0.9, air, 0.0), (0.985, air, 0.35), (1, air, 0.0)]
    off = (x - side * radius * 0.03, y + radius * 0.03)
    drawing.circle(globe.centre, radius, drawing.radial(off, radius * 1.04, rim))


def _paint_half_ring(drawing: Drawing, scene: Scene, globe: _Globe, sweep: str) -> None:
    """Paint half of the ring: `sweep` is 1 behind the planet, 0 before it."""
    dice, palette = scene.dice("ring"), scene.palette
    place = Place(globe.centre, globe.radius * 100, turn=globe.tilt)
    reach, outer = _RING
    middle, half = (reach + outer) / 2, (outer - reach) / 2
    while reach < outer:
        width = dice.uniform(0.012, 0.05)
        fade = 0.85 * dice.uniform(0.25, 1) * (1 - 0.7 * ((reach - middle) / half) ** 2)
        colour = mix(palette.disc, palette.lit, dice.random() * 0.7)
        path = f"M{-reach:.3f} 0A{reach:.3f} {reach * 0.2:.3f} 0 0 {sweep} {reach:.3f} 0"
        drawing.stamp_line(path, place, colour, width, fade)
        reach += width + dice.choice((0.004, 0.012, 0.03))


def _paint_moons(drawing: Drawing, scene: Scene, globe: _Globe) -> None:
    dice, palette, side = scene.dice("moons"), scene.palette, scene.light_side
    for _ in range(dice.choice((1, 2, 2))):
        size, turn = globe.radius * dice.uniform(0.05, 0.13), dice.uniform(0, math.tau)
        x = globe.centre[0] + math.cos(turn) * globe.radius * 2.0
        y = globe.centre[1] + math.sin(turn) * globe.radius * 1.45
        tone = mix(palette.disc, palette.lit, dice.random() * 0.5)
        dim = mix(tone, palette.shade, 0.5)
        stops = [(0, tone, 1.0), (0.5, dim, 1.0), (1, palette.sky[0], 1.0)]
        lit = (x + side * size * 0.6, y - size * 0.5)
        drawing.circle((x, y), size, drawing.radial(lit, size * 1.8, stops))
