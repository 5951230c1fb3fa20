"""Figures: birds, travellers, astronauts, balloons, and boats on the water.

Each is a stencil on a grid of 100 units, with its origin at the figure's base.
"""

from .colour import mix
from .scene import Scene
from .svg import Drawing, Place, Point, disc

_WING = "M-100 {tip}Q-45 {high} 0 0Q45 {high} 100 {tip}Q45 {low} 0 16Q-45 {low} -100 {tip}Z"
_WANDERER = "M-11 4L-8 -34L-19 -32Q-15 -70 -7 -80H7Q16 -70 20 -30L9 -34L12 4H3L1 -26L-3 4Z" + disc(
    0, -90, 8.5
)
_STAFF = "M29 4L24 -78"
_MAINSAIL = "M3 -100Q34 -45 40 -16L3 -13Z"
_JIB = "M-2 -90Q-14 -45 -36 -15L-2 -13Z"
_SAILING_HULL = "M-42 -10Q0 -7 46 -11L32 2H-28Z"
_ROWING_HULL = "M-50 -13Q0 -2 50 -13Q36 5 20 5H-20Q-36 5 -50 -13Z"
_ROWER = "M-10 -5Q-10 -26 0 -28Q9 -26 8 -5Z" + disc(0.5, -33.5, 5.2)
_BAG = "M{0} -10C{0} -74 {1} -74 {1} -10C{1} 22 {2} 52 {2} 52H{3}C{3} 52 {0} 22 {0} -10Z"


def paint_birds(drawing: Drawing, scene: Scene) -> None:
    """Paint a loose flock of birds, away from the light."""
    dice, unit, side = scene.dice("birds"), scene.unit, -scene.light_side
    x = scene.width * (0.5 + side * dice.uniform(0.05, 0.25))
    y = scene.horizon * dice.uniform(0.22, 0.42)
    tone = mix(scene.palette.land[2], scene.palette.land[1], 0.35)
    for index in range(dice.randrange(5, 10)):
        size = unit * dice.uniform(7, 14) * (1 - index * 0.04)
        across = x + unit * (side * index * 20 + dice.gauss(0, 12))
        down = y + unit * (index * 9 + dice.gauss(0, 10))
        rise = dice.uniform(25, 65)
        wings = _WING.format(tip=-0.75 * rise, high=-1.25 * rise, low=-0.85 * rise)
        drawing.stamp(wings, Place((across, down), size), tone, 0.85)


def paint_wanderer(drawing: Drawing, scene: Scene, spot: Point, size: float) -> None:
    """Paint a traveller with a coat and a staff against the light."""
    tone, place = mix(scene.palette.land[2], "#000000", 0.3), Place(spot, size)
    drawing.stamp(_WANDERER, place, tone)
    drawing.stamp_line(_STAFF, place, tone, 2.5)


def paint_astronaut(drawing: Drawing, scene: Scene, spot: Point, size: float) -> None:
    """Paint an astronaut whose visor reflects the light."""
    palette, side = scene.palette, scene.light_side
    suit = mix(palette.disc, palette.land[1], 0.22)
    shadow = drawing.slanted((0, 0), (-130 * side, 0), [(0, "#000000", 0.6), (1, "#000000", 0)])
    place = Place(spot, size)
    drawing.stamp(f"M{14 * side} 0Q0 -5 {-130 * side} 0Q0 10 {14 * side} 0Z", place, shadow)
    shaded = Place((spot[0] - side * size * 0.035, spot[1]), size)
    for tone, where in ((mix(suit, palette.land[2], 0.62), shaded), (suit, place)):
        drawing.stamp_line("M-8 0V-38M8 0V-38", where, tone, 13)
        drawing.stamp_line("M0 -42V-60", where, tone, 30)
        drawing.stamp_line("M-17 -62l-6 24M17 -62l6 24", where, tone, 10)
        drawing.stamp(disc(0, -85, 15), where, tone)
    drawing.stamp(disc(3 * side, -85, 10), place, palette.land[2])
    drawing.stamp(disc(7 * side, -88, 2.5), place, palette.glow)


def paint_balloons(drawing: Drawing, scene: Scene) -> None:
    """Paint three hot-air balloons at different distances."""
    dice, unit, side = scene.dice("balloons"), scene.unit, -scene.light_side
    for size, x, y in ((150, 0.16, 0.34), (66, 0.36, 0.56), (38, 0.02, 0.66)):
        across = scene.width * (0.5 + side * (x + dice.uniform(-0.05, 0.05)))
        down = scene.horizon * (y + dice.uniform(-0.05, 0.05))
        _paint_balloon(drawing, scene, Place((across, down), unit * size))


def _paint_balloon(drawing: Drawing, scene: Scene, place: Place) -> None:
    palette, side = scene.palette, scene.light_side
    cloth = mix("#d9573f", palette.glow, 0.18), mix("#f3e2c0", palette.lit, 0.3)
    for stripe, width in enumerate((50, 36, 21, 7)):
        drawing.stamp(_bag(width), place, cloth[stripe % 2])
    dark = palette.land[2]
    stops = [(0, palette.disc, 0.35), (0.4, dark, 0.0), (1, dark, 0.6)]
    drawing.stamp(_bag(50), place, drawing.radial((side * 30, -35), 95, stops))
    drawing.stamp_line("M-9 52L-5.5 70M9 52L5.5 70", place, dark, 1.2)
    drawing.stamp("M-7 69H7V80H-7Z", place, mix(dark, "#5a3a20", 0.5))


def _bag(width: float) -> str:
    """Return the bag or a stripe of it, `width` to each side."""
    return _BAG.format(-width, width, width / 5, -width / 5)


def paint_sailboat(drawing: Drawing, scene: Scene, spot: Point, size: float) -> None:
    """Paint a small sailing boat with its reflection."""
    palette = scene.palette
    bright = mix(palette.lit, "#ffffff", 0.35)
    sails = [bright, mix(bright, palette.shade, 0.45)][:: scene.light_side]
    for stretch, opacity in ((-0.75, 0.32), (1, 1.0)):
        place = Place(spot, size, stretch)
        drawing.stamp(_MAINSAIL, place, sails[0], opacity)
        drawing.stamp(_JIB, place, sails[1], opacity)
        drawing.stamp(_SAILING_HULL, place, palette.land[2], opacity)


def paint_rowboat(drawing: Drawing, scene: Scene, spot: Point, size: float) -> None:
    """Paint a rowing boat with one person on still water."""
    tone = mix(scene.palette.land[2], "#000000", 0.2)
    for stretch, opacity in ((-0.8, 0.35), (1, 1.0)):
        place = Place(spot, size, stretch)
        drawing.stamp(_ROWING_HULL, place, tone, opacity)
        drawing.stamp(_ROWER, place, tone, opacity)
    wake = mix(scene.palette.land[2], scene.palette.glow, 0.6)
    drawing.stamp_line("M-90 6H95", Place(spot, size), wake, 1.2)
