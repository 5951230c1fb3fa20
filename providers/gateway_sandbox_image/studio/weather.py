"""Clouds, mist, aurora, rain and snow."""

import math
from random import Random

from PIL import Image, ImageChops, ImageFilter

from .colour import mix, ramp, rgb
from .scene import Scene
from .svg import Drawing
from .texture import between, faded, fractal, relief, stacked, tinted

_COARSENESS = 2  # clouds are soft: half the resolution is plenty
_AURORA = ("#6a3fc4", "#6a6fd8", "#45c99a", "#6df5b0")  # top to hem
_GLOW_CELLS = 48  # of the mask that tells how near the light is; it has no detail
_RIM = 8  # pixels; as far as the light is shifted to find the lit side


def paint_clouds(drawing: Drawing, scene: Scene) -> None:
    """Paint thin streaks high up and heaped clouds towards the horizon."""
    cover = scene.palette.clouds
    if cover <= 0:
        return
    dice = scene.dice("clouds")
    size = (scene.width // _COARSENESS + 2 * _RIM, int(scene.horizon) // _COARSENESS + 2 * _RIM)
    aspect = scene.width / scene.horizon
    streaks = fractal(dice, size, (1.5 * aspect, 7), 6, 0.52)
    thin = between(streaks, 0.78 - 0.33 * cover, 1.0, 0.35 + 0.35 * cover)
    high = faded(size, [(0, 0.35), (0.3, 0.8), (0.8, 1), (1, 0.1)])
    clouds = [_lit(scene, streaks, ImageChops.multiply(thin, high))]
    heaps = fractal(dice, size, (2.2 * aspect, 4.6), 6, 0.55)
    low = 0.76 - 0.3 * cover
    heaped = between(heaps, low, low + 0.24, 0.88)
    deep = faded(size, [(0, 0.0), (0.25, 0.2), (0.6, 0.8), (0.85, 1), (1, 0.35)])
    clouds.append(_lit(scene, heaps, ImageChops.multiply(heaped, deep)))
    drawing.lay(stacked(clouds), 0, 0, scene.width, scene.horizon)


def _lit(scene: Scene, noise: Image.Image, mask: Image.Image) -> Image.Image:
    """Shade by direction and distance to the light, keeping the disc free."""
    palette = scene.palette
    x, y = scene.light[0] / _COARSENESS, scene.light[1] / _COARSENESS
    width, height = noise.width - 2 * _RIM, noise.height - 2 * _RIM
    away = (6 if x < width / 2 else -6, -4 if y > height * 0.55 else 7)
    inner = (_RIM, _RIM, _RIM + width, _RIM + height)
    facing = relief(noise, away, 2.2).crop(inner)
    warmth = _nearness((width, height), (x, y))
    amount = ImageChops.add(facing, warmth, scale=1.5, offset=-16)
    cloud = Image.composite(
        Image.new("RGB", amount.size, rgb(palette.lit)),
        Image.new("RGB", amount.size, rgb(palette.shade)),
        amount,
    )
    parting = warmth.point([max(0, value - 190) * 3 for value in range(256)])
    cloud.putalpha(ImageChops.subtract(mask.crop(inner), parting))
    return cloud


def _nearness(size: tuple[int, int], spot: tuple[float, float]) -> Image.Image:
    reach = 0.5 * max(size)
    centres = [(cell + 0.5) / _GLOW_CELLS for cell in range(_GLOW_CELLS)]
    levels = bytes(
        round(255 * math.exp(-math.dist((x * size[0], y * size[1]), spot) / reach))
        for y in centres
        for x in centres
    )
    mask = Image.frombytes("L", (_GLOW_CELLS, _GLOW_CELLS), levels)
    return mask.resize(size, Image.Resampling.BICUBIC)


def paint_mist(drawing: Drawing, scene: Scene, y: float, height: float, strength: float) -> None:
    """Paint a bank of mist around the line `y`."""
    dice = scene.dice(f"mist {y:.0f}")
    size = (scene.width // 3, max(8, int(height) // 3))
    noise = fractal(dice, size, (4 * scene.width / scene.height, 2), 4, 0.5)
    bank = faded(size, [(0, 0), (0.25, 0.25), (0.55, 1), (0.8, 0.6), (1, 0)])
    mask = ImageChops.multiply(between(noise, 0.1, 0.95, strength), bank)
    palette = scene.palette
    colour = mix(palette.sky[-1], palette.glow, 0.25)
    if palette.is_night:
        colour = mix(palette.sky[-1], palette.sky[-2], 0.35)
    drawing.lay(tinted(mask, colour), 0, y - height / 2, scene.width, height)


def paint_aurora(drawing: Drawing, scene: Scene) -> None:
    """Paint three curtains of green and violet light, the nearest the brightest."""
    dice = scene.dice("aurora")
    size = (scene.width // _COARSENESS, int(scene.horizon) // _COARSENESS)
    curtains = [
        _curtain(dice, size, fold, strength) for fold, strength in enumerate((0.45, 0.7, 0.95))
    ]
    drawing.lay(stacked(curtains), 0, 0, scene.width, scene.horizon)


def _curtain(dice: Random, size: tuple[int, int], fold: int, strength: float) -> Image.Image:
    width, height = size
    rays = fractal(dice, (width, 8), (26 + 14 * fold, 1), 4, 0.7).resize((width, 1)).tobytes()
    hem = fractal(dice, (width, 2), (2.2, 1), 2, 0.3).resize((width, 1)).tobytes()
    reach = int(height * (0.58 - 0.08 * fold))
    colours, rising = _ray(reach)
    light, mask = Image.new("RGB", size, rgb(_AURORA[-1])), Image.new("L", size)
    dimmers = [[value * step // 15 for value in range(256)] for step in range(16)]
    for x in range(width):
        top = int(height * (0.38 + 0.2 * fold + 0.42 * (hem[x] / 255 - 0.5))) - reach
        level = strength * (0.2 + 0.8 * rays[x] / 255)
        light.paste(colours, (x, top))
        mask.paste(rising.point(dimmers[int(level * 15)]), (x, top))
    light.putalpha(mask.filter(ImageFilter.GaussianBlur(1.4)))
    return light


def _ray(reach: int) -> tuple[Image.Image, Image.Image]:
    """Return a ray that fades upwards, with a sharp lower edge."""
    colours, rising = Image.new("RGB", (1, reach)), Image.new("L", (1, reach))
    for row in range(reach):
        share = row / reach
        colours.putpixel((0, row), rgb(ramp(_AURORA, share**1.15)))
        rising.putpixel((0, row), round(255 * share**1.9 * min(1.0, (1 - share) / 0.08)))
    return colours, rising


def paint_rain(drawing: Drawing, scene: Scene) -> None:
    """Paint streaks of rain."""
    dice, unit = scene.dice("rain"), scene.unit
    for opacity, count in ((0.1, 260), (0.18, 130)):
        data = ""
        for _ in range(count):
            x, y = dice.uniform(-0.05, 1.1) * scene.width, dice.uniform(-0.05, 1) * scene.height
            length = unit * dice.uniform(22, 60)
            data += f"M{x:.1f} {y:.1f}l{-length * 0.22:.1f} {length:.1f}"
        drawing.stroke(data, "#e9f0f0", 1.1 * unit, opacity)


def paint_snowfall(drawing: Drawing, scene: Scene) -> None:
    """Paint snow: many small flakes, and a few large, soft ones."""
    dice, unit = scene.dice("snowfall"), scene.unit
    for _ in range(420):
        centre = (dice.uniform(0, scene.width), dice.uniform(0, scene.height))
        near = dice.random() ** 4
        drawing.circle(centre, unit * (0.9 + 3.4 * near), "#ffffff", 0.75 - 0.45 * near)
