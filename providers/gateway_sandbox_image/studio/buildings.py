"""Single buildings: a cabin with a lit window, a lighthouse.

Each is a stencil on a grid of 100 units, with its origin at the middle of its foot.
"""

from .colour import mix
from .scene import Scene
from .svg import Drawing, Place, Point, fading

_CABIN = "M22 -60v-34h12v40ZM-50 10v-62L0 -86L50 -52v62Z"
_ROOF = "M-66 -44L0 -94L66 -44l-5 8L0 -79L-61 -36Z"
_WINDOWS = "M-26 -36h17v19h-17ZM10 -36h17v19h-17Z"
_MUNTINS = "M-17.5 -36v19m-8.5 -9.5h17M18.5 -36v19m-8.5 -9.5h17"
_SMOKE = "M28 -96c12 -30 -16 -45 4 -80s2 -50 24 -80"
_TOWER = "M-11.5 0L-7 -82H7L11.5 0Z"
_BANDS = "M-10.9 -11.5L-10 -27.9H10L10.9 -11.5ZM-9.1 -44.3L-8.3 -59H8.3L9.1 -44.3Z"
_LANTERN = "M-10 -85H10V-82H-10ZM-5 -99H5V-85H-5ZM-7.5 -98Q0 -110 7.5 -98Z"
_LAMP = "M-3.4 -97H3.4V-86H-3.4Z"
# Palettes without stars in which a lighthouse is lit.
_DIM = ("storm", "mist")


def paint_cabin(drawing: Drawing, scene: Scene, spot: Point, size: float) -> None:
    """Build a cabin with lit windows and smoke over its chimney."""
    palette, place = scene.palette, Place(spot, size)
    wall = mix(palette.land[2], palette.land[1], 0.18)
    roof = mix(palette.land[2], "#000000", 0.3)
    if "winter" in scene.motifs:
        roof = mix(palette.lit, palette.shade, 0.25)
    warm = (spot[0], spot[1] - size * 0.28)
    drawing.circle(warm, size * 1.5, drawing.radial(warm, size * 1.5, fading(palette.lamp, 0.5)))
    smoke = drawing.vertical(-260, -90, [(0, palette.lit, 0), (1, palette.lit, 0.3)])
    drawing.stamp_line(_SMOKE, place, smoke, 10)
    drawing.stamp(_CABIN, place, wall)
    drawing.stamp(_ROOF, place, roof)
    drawing.stamp(_WINDOWS, place, palette.lamp)
    drawing.stamp_line(_MUNTINS, place, wall, 1.6)


def paint_lighthouse(drawing: Drawing, scene: Scene, spot: Point, size: float) -> None:
    """Raise a lighthouse; after dark its beam crosses the picture."""
    palette, place = scene.palette, Place(spot, size)
    dark = palette.land[2]
    if palette.stars or palette.name in _DIM:
        _paint_beam(drawing, scene, place)
    drawing.stamp(_TOWER, place, mix(palette.lit, palette.land[1], 0.22))
    drawing.stamp(_BANDS, place, mix(dark, "#8a2b2b", 0.45))
    away = -scene.light_side
    drawing.stamp(f"M0 0V-82H{7 * away}L{11.5 * away} 0Z", place, dark, 0.3)
    drawing.stamp(_LANTERN, place, dark)
    drawing.stamp(_LAMP, place, palette.lamp)


def _paint_beam(drawing: Drawing, scene: Scene, place: Place) -> None:
    lamp = scene.palette.lamp
    side = -1 if place.spot[0] > scene.width / 2 else 1
    stops = [(0, lamp, 0.6), (0.4, lamp, 0.16), (1, lamp, 0.0)]
    beam = drawing.slanted((0, -93), (600 * side, -143), stops)
    drawing.stamp(f"M0 -93L{600 * side} -198V-93Z", place, beam)
    drawing.stamp(_around_lamp(), place, drawing.radial((0, -93), 60, fading(lamp, 0.9)))


def _around_lamp() -> str:
    return "M-60 -153H60V-33H-60Z"
