"""The sky: its gradient, the stars, and the sun or moon with its glow."""

from random import Random

from PIL import Image, ImageChops

from .colour import mix, ramp
from .scene import Scene
from .svg import Drawing, Place, disc, fading, line_through
from .texture import between, faded, fractal, glow, tinted

_STOPS = 14  # along the sky: so many that the eye finds no edge
_SMOOTH = Image.Resampling.BICUBIC
_STARLIGHT = ("#ffffff", "#ffffff", "#dfe9ff", "#fff0d6")
_CRESCENT = "M0 -100A100 100 0 0 1 0 100A122 122 0 0 0 0 -100Z"  # the moon's radius is 100
_MARIA = ((-30, -25, 30), (12, -42, 20), (30, 2, 26), (-12, 30, 20), (-48, 20, 14))


def paint_sky(drawing: Drawing, scene: Scene) -> None:
    """Paint everything behind the clouds."""
    palette = scene.palette
    stops = [(i / _STOPS, ramp(palette.sky, i / _STOPS), 1.0) for i in range(_STOPS + 1)]
    drawing.cover(drawing.vertical(0, scene.horizon, stops))
    if palette.is_night:
        _lay_milky_way(drawing, scene)
    if scene.setting != "space":
        _lay_glow(drawing, scene)
    if palette.stars or "stars" in scene.motifs:
        _paint_stars(drawing, scene)
    if "meteor" in scene.motifs and palette.stars:
        _paint_meteor(drawing, scene)
    if scene.setting != "space":
        _paint_disc(drawing, scene)


def _lay_glow(drawing: Drawing, scene: Scene) -> None:
    palette = scene.palette
    reach = max(scene.width, scene.height)
    strength = 0.3 if palette.is_night else 0.55
    for radius in (reach * 0.95, reach * 0.34):
        x, y = scene.light[0] - radius, scene.light[1] - radius
        drawing.lay(glow(palette.glow, strength), x, y, 2 * radius, 2 * radius)


def _paint_disc(drawing: Drawing, scene: Scene) -> None:
    palette, unit, y = scene.palette, scene.unit, scene.light[1]
    if palette.is_night:
        _paint_moon(drawing, scene, 46 * unit)
        return
    is_low = y > scene.horizon * 0.62
    radius = (66 if is_low else 44) * unit
    stops = [(0, palette.disc, 1.0), (1, mix(palette.disc, palette.glow, 0.45), 1.0)]
    halo = drawing.radial(scene.light, radius * 3.2, fading(palette.disc, 0.5))
    drawing.circle(scene.light, radius * 3.2, halo)
    drawing.circle(scene.light, radius, drawing.vertical(y - radius, y + radius, stops))


def _paint_moon(drawing: Drawing, scene: Scene, radius: float) -> None:
    palette = scene.palette
    halo = drawing.radial(scene.light, radius * 4.5, fading(palette.disc, 0.4))
    drawing.circle(scene.light, radius * 4.5, halo)
    if "crescent" in scene.motifs:
        drawing.stamp(_CRESCENT, Place(scene.light, radius, turn=-28), palette.disc)
        return
    place = Place(scene.light, radius)
    dim = mix(palette.disc, palette.sky[2], 0.35)
    stops = [(0, palette.disc, 1.0), (0.6, palette.disc, 1.0), (1, dim, 1.0)]
    drawing.stamp(disc(0, 0, 100), place, drawing.radial((-30, -30), 160, stops))
    for mare in _MARIA:
        drawing.stamp(disc(*mare), place, palette.sky[3], 0.13)


def _paint_stars(drawing: Drawing, scene: Scene) -> None:
    dice, unit, palette = scene.dice("stars"), scene.unit, scene.palette
    amount = max(palette.stars, 0.5 if "stars" in scene.motifs else 0.0)
    deep = scene.horizon * (0.92 if palette.is_night else 0.6)
    for _ in range(int(scene.width * deep / (unit * unit) / 2200 * amount)):
        x, y = dice.uniform(0, scene.width), deep * dice.random() ** 1.25
        size = unit * (0.55 + 1.25 * dice.random() ** 6)
        bright = (0.15 + 0.8 * dice.random() ** 1.6) * (1 - y / deep) ** 0.5
        drawing.circle((x, y), size, dice.choice(_STARLIGHT), bright)
    for _ in range(int(9 * amount)):
        _paint_bright_star(drawing, dice, scene.width, deep * 0.7, unit)


def _paint_bright_star(
    drawing: Drawing, dice: Random, width: int, deep: float, unit: float
) -> None:
    centre = (dice.uniform(0.03, 0.97) * width, dice.uniform(0.03, 1) * deep)
    size = unit * dice.uniform(1.5, 2.3)
    halo = drawing.radial(centre, size * 7, fading("#e8f0ff", 0.4))
    drawing.circle(centre, size * 7, halo)
    drawing.circle(centre, size, "#ffffff", 0.95)


def _lay_milky_way(drawing: Drawing, scene: Scene) -> None:
    dice = scene.dice("milky way")
    width, height = scene.width // 2, scene.height // 2
    size = (width * 2, int(height * 0.62))
    across = faded(size, [(0, 0), (0.3, 0.35), (0.5, 1), (0.7, 0.35), (1, 0)])
    dust = between(fractal(dice, size, (9, 3), 6, 0.62), 0.25, 0.95, 0.55)
    slant = dice.choice((-1, 1)) * dice.uniform(28, 52)  # degrees
    band = ImageChops.multiply(across, dust).rotate(slant, _SMOOTH, expand=True)
    sky = Image.new("L", (width, height))
    sky.paste(band, ((width - band.width) // 2, int(height * 0.34) - band.height // 2))
    horizon = scene.horizon / scene.height
    sky = ImageChops.multiply(sky, faded(sky.size, [(0, 1), (0.35, 0.9), (horizon, 0), (1, 0)]))
    light = tinted(sky, mix(scene.palette.lit, "#ffffff", 0.45))
    drawing.lay(light, 0, 0, scene.width, scene.height)


def _paint_meteor(drawing: Drawing, scene: Scene) -> None:
    dice, unit, side = scene.dice("meteor"), scene.unit, -scene.light_side
    x = scene.width * (0.5 + side * dice.uniform(0.08, 0.3))
    y = scene.horizon * dice.uniform(0.2, 0.45)
    length = unit * dice.uniform(120, 200)
    tail = (x + side * length, y - length * 0.55)
    stops = [(0, "#ffffff", 0.95), (0.25, "#ffffff", 0.4), (1, "#ffffff", 0.0)]
    paint = drawing.slanted((x, y), tail, stops)
    drawing.stroke(line_through(((x, y), tail)), paint, 1.7 * unit)
    drawing.circle((x, y), 1.6 * unit, "#ffffff")
