"""Space: nebulae, a planet, and the ground of an airless world."""

from PIL import ImageChops

from .colour import mix
from .figures import paint_astronaut
from .planet import paint_planet
from .ridges import ridge, scattered_hills, scattered_peaks, top_of
from .scene import Scene
from .svg import Drawing, Point, below, height_at
from .texture import between, fractal, stacked, tinted

_COARSENESS = 2  # gas is soft: half the resolution is plenty
_GROUND = (  # far to near: what scatters its heights, their size and roughness, how many
    (scattered_peaks, 88, 30, 9),
    (scattered_hills, 54, 12, 3),
    (scattered_hills, 30, 7, 2),
)


def paint_backdrop(drawing: Drawing, scene: Scene) -> None:
    """Paint the nebula and the planet."""
    _lay_nebula(drawing, scene)
    paint_planet(drawing, scene)


def paint_front(drawing: Drawing, scene: Scene) -> None:
    """Paint the ground, and the astronaut if the prompt names one."""
    line: list[Point] = []
    for layer in range(len(_GROUND)):
        line = _paint_ground(drawing, scene, layer)
    if "wanderer" in scene.motifs:
        x = scene.width * (0.5 + scene.light_side * scene.dice("landing").uniform(0.12, 0.26))
        y = height_at(line, x) + scene.unit * 26
        paint_astronaut(drawing, scene, (x, y), scene.unit * 62)


def _lay_nebula(drawing: Drawing, scene: Scene) -> None:
    dice, palette = scene.dice("nebula"), scene.palette
    size = (scene.width // _COARSENESS, scene.height // _COARSENESS)
    aspect = scene.width / scene.height
    clouds = []
    for colour, strength, low in (
        (palette.shade, 0.85, 0.35),
        (palette.lit, 0.6, 0.48),
        (palette.glow, 0.42, 0.62),
    ):
        wide = between(fractal(dice, size, (1.3 * aspect, 1.3), 3, 0.5), low, 1.0)
        fine = between(fractal(dice, size, (3 * aspect, 3), 6, 0.62), 0.2, 0.95, strength)
        clouds.append(tinted(ImageChops.multiply(wide, fine), colour))
    drawing.lay(stacked(clouds), 0, 0, scene.width, scene.height)


def _paint_ground(drawing: Drawing, scene: Scene, layer: int) -> list[Point]:
    dice, palette, unit = scene.dice(f"ground {layer}"), scene.palette, scene.unit
    scatter, size, jag, count = _GROUND[layer]
    base = scene.horizon + (scene.height - scene.horizon) * (0.14 + 0.3 * layer)
    line = ridge(
        dice, scene.width, base, scatter(dice, scene.width, unit * size, count), unit * jag
    )
    far = mix(palette.land[0], palette.sky[-1], 0.5)
    colour = mix(far, palette.land[2], 0.1 + 0.4 * layer)
    lit, dark = mix(colour, palette.glow, 0.4 - 0.1 * layer), mix(colour, palette.sky[0], 0.7)
    stops = [(0, lit, 1.0), (0.5, colour, 1.0), (1, dark, 1.0)]
    paint = drawing.vertical(top_of(line), base + unit * 120, stops)
    drawing.fill(below(line, scene.height + 2), paint)
    if layer:
        for _ in range(5):
            spot = dice.uniform(0, scene.width), base + unit * dice.uniform(24, 130)
            wide = unit * dice.uniform(16, 46) * (0.5 + (spot[1] - base) / unit / 90)
            _paint_crater(drawing, scene, spot, wide)
    return line


def _paint_crater(drawing: Drawing, scene: Scene, spot: Point, size: float) -> None:
    """Paint a crater dark towards the light, bright away from it."""
    palette, side, (x, y) = scene.palette, scene.light_side, spot
    towards, away = (x + side * size, y), (x - side * size, y)
    half = f"A{size:.1f} {size * 0.22:.1f} 0 0"
    start, end = f"M{x - size:.1f} {y:.1f}", f"{x + size:.1f} {y:.1f}"
    hollow = [(0, palette.sky[0], 0.8), (1, palette.sky[0], 0.15)]
    paint = drawing.slanted(towards, away, hollow)
    drawing.fill(f"{start}{half} 1 {end}{half} 1 {x - size:.1f} {y:.1f}Z", paint)
    rim = [(0, palette.glow, 0.0), (1, palette.glow, 0.55)]
    drawing.stroke(f"{start}{half} 0 {end}", drawing.slanted(towards, away, rim), 1.6 * scene.unit)
