"""Water: a rippled mirror image of the picture above it, and the light's path."""

import math
from random import Random

from PIL import Image, ImageChops

from .colour import mix, rgb
from .scene import Scene
from .svg import Drawing
from .texture import between, faded, fractal, glow

_WAVES = {"lake": 0.35, "city": 0.55, "sea": 1.0}  # how rough the water is, 0 to 1
_BANDS = 48  # in which ripples are stretched, wider towards the viewer
_GLINTS = 420
_LEVELS = 9  # of brightness; glints of one level are one path


def reflect(picture: Image.Image, scene: Scene, waterline: int, scale: int) -> None:
    """Fill the picture below `waterline` (pixels) with the reflection of the part above."""
    dice, waves = scene.dice("water"), _WAVES[scene.setting]
    size = (picture.width, picture.height - waterline)
    above = _smeared(picture.crop((0, 0, picture.width, waterline)), waves)
    swing = scale * scene.unit
    calm = _mirrored(above, size[1], dice, 0.9 * swing)
    broken = _mirrored(above, size[1], dice, 5.5 * swing * (0.5 + waves))
    ripples = _ripples(dice, size)
    water = Image.composite(broken, calm, between(ripples, 0.35, 0.75))
    veil = faded(size, [(0, 0.1 + 0.14 * waves), (0.3, 0.22 + 0.16 * waves), (1, 0.62)])
    water = _washed(water, _depths(scene), veil)
    troughs = ripples.point([int(max(0, 110 - value) * 0.9 * waves) for value in range(256)])
    water = _washed(water, mix(_depths(scene), "#000000", 0.35), troughs)
    crests = ripples.point([int(max(0, value - 168) * waves) for value in range(256)])
    water = _washed(water, mix(scene.palette.sky[-2], scene.palette.lit, 0.3), crests)
    _warm(water, scene, scale)
    picture.paste(water, (0, waterline))


def _depths(scene: Scene) -> str:
    palette = scene.palette
    return mix(mix(palette.sky[0], palette.sky[1], 0.5), palette.land[1], 0.22)


def _washed(water: Image.Image, colour: str, mask: Image.Image) -> Image.Image:
    return Image.composite(Image.new("RGB", water.size, rgb(colour)), water, mask)


def _smeared(above: Image.Image, waves: float) -> Image.Image:
    """Blur downwards, as waves do."""
    length = max(1, round(above.height / 560 * (5 + 50 * waves**3)))
    squeezed = above.resize((above.width, above.height // length + 2), Image.Resampling.BOX)
    return squeezed.resize(above.size, Image.Resampling.BICUBIC)


def _mirrored(above: Image.Image, depth: int, dice: Random, swing: float) -> Image.Image:
    """Shift each row by up to `swing` pixels."""
    water = Image.new("RGB", (above.width, depth))
    squeeze = min(1.0, 0.92 * above.height / depth)
    first, second = dice.uniform(0, math.tau), dice.uniform(0, math.tau)
    for row in range(depth):
        near = (row + 1) / depth
        beat = math.sin(first + 46 * math.log1p(5 * near))
        beat += 0.6 * math.sin(second + 91 * math.log1p(4 * near))
        source = above.height - 1 - row * squeeze + swing * beat * (0.25 + 1.6 * near)
        y = min(above.height - 1, max(0, round(source)))
        sway = swing * 0.5 * math.sin(second + 63 * math.log1p(6 * near)) * (0.2 + near)
        strip = above.crop((0, y, above.width, y + 1))
        water.paste(ImageChops.offset(strip, round(sway), 0), (0, row))
    return water


def _ripples(dice: Random, size: tuple[int, int]) -> Image.Image:
    """Return ripples that grow towards the viewer."""
    width, depth = size[0] // 2, size[1]
    flat = fractal(dice, (width, 256), (7, 46), 4, 0.6)
    opened = Image.new("L", (width, depth))
    edges = [round(depth * (band / _BANDS) ** 1.7) for band in range(_BANDS + 1)]
    for band in range(_BANDS):
        tall = edges[band + 1] - edges[band]
        box = (0, 256 * band / _BANDS, width, 256 * (band + 1) / _BANDS)
        if tall:
            strip = flat.resize((width, tall), Image.Resampling.BICUBIC, box=box)
            opened.paste(strip, (0, edges[band]))
    return opened.resize(size, Image.Resampling.BICUBIC)


def _warm(water: Image.Image, scene: Scene, scale: int) -> None:
    wide, tall = round(water.width * 0.62), round(water.height * 1.9)
    light = glow(scene.palette.glow, 0.3 if scene.palette.is_night else 0.85)
    light = light.resize((wide, tall), Image.Resampling.BICUBIC)
    water.paste(light, (round(scene.light[0] * scale) - wide // 2, -tall // 3), light)


def paint_glitter(drawing: Drawing, scene: Scene, waterline: float) -> None:
    """Lay the path of light on the water below the sun or moon."""
    dice, unit, depth = scene.dice("glitter"), scene.unit, scene.height - waterline
    strength = (0.6 if scene.palette.is_night else 0.9) * (0.55 + 0.45 * _WAVES[scene.setting])
    levels = [""] * _LEVELS
    for _ in range(_GLINTS):
        near, away = dice.random() ** 1.35, dice.gauss(0, 0.55)
        x = scene.light[0] + away * unit * (20 + 105 * near)
        y = waterline + 1.5 + depth * near
        length = unit * (4 + 34 * near) * dice.uniform(0.4, 1.3)
        thick = unit * (1.0 + 4.2 * near) * dice.uniform(0.6, 1.2)
        bright = (1 - 0.75 * near) * max(0.1, 1 - 0.55 * abs(away)) * dice.uniform(0.3, 1)
        levels[int(strength * bright * _LEVELS)] += (
            f"M{x - length:.1f} {y:.1f}Q{x:.1f} {y - thick:.1f} {x + length:.1f} {y:.1f}"
            f"Q{x:.1f} {y + thick:.1f} {x - length:.1f} {y:.1f}Z"
        )
    tone = mix(scene.palette.disc, scene.palette.glow, 0.35)
    for level, glints in enumerate(levels):
        if glints:
            drawing.fill(glints, tone, (level + 0.5) / _LEVELS)
