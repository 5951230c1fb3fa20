"""Fractal noise from Pillow's resampling: clouds, mist, nebulae, grain."""

import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random

from PIL import Image, ImageChops, ImageOps

from .colour import rgb
from .svg import FALLOFF

Size = tuple[int, int]
_GLOW_SIZE = 72  # pixels; it has no detail and is stretched


def fractal(
    dice: Random, size: Size, cells: tuple[float, float], octaves: int = 5, gain: float = 0.5
) -> Image.Image:
    """Return grey noise with `cells` blobs across and down, each octave twice as fine.

    `gain` is the weight of an octave next to the one before.
    """
    canvas: Image.Image | None = None
    total = 0.0
    for octave in range(octaves):
        columns = max(2, round(cells[0] * 2**octave) + 2)
        rows = max(2, round(cells[1] * 2**octave) + 2)
        grains = Image.frombytes("L", (columns, rows), dice.randbytes(columns * rows))
        layer = grains.resize(size, Image.Resampling.BICUBIC, box=_inner(columns, rows))
        weight = gain**octave
        total += weight
        canvas = layer if canvas is None else Image.blend(canvas, layer, weight / total)
    assert canvas is not None  # noqa: S101 - there is at least one octave
    return ImageOps.autocontrast(canvas, cutoff=1)


def between(noise: Image.Image, low: float, high: float, peak: float = 1.0) -> Image.Image:
    """Return a mask that rises softly from 0 at `low` to `peak` at `high`; all 0 to 1."""
    steps = []
    for value in range(256):
        share = min(1.0, max(0.0, (value / 255 - low) / (high - low)))
        steps.append(round(255 * peak * share * share * (3 - 2 * share)))
    return noise.point(steps)


def faded(size: Size, shape: Sequence[tuple[float, float]]) -> Image.Image:
    """Return a mask whose brightness runs from top to bottom through (place, level), 0 to 1."""
    levels = bytes(round(255 * _level(row / 255, shape)) for row in range(256))
    column = Image.frombytes("L", (1, 256), levels)
    return column.resize(size, Image.Resampling.BILINEAR)


def relief(noise: Image.Image, away: tuple[int, int], strength: float) -> Image.Image:
    """Return how much each spot of a noise faces a light; `away` (pixels) points away from it.

    A rim as wide as `away` is wrong: the shift wraps round.
    """
    shifted = ImageChops.offset(noise, *away)
    return ImageChops.subtract(noise, shifted, scale=1 / strength, offset=128)


def tinted(mask: Image.Image, colour: str) -> Image.Image:
    """Return a picture of one colour with the mask as its opacity."""
    picture = Image.new("RGBA", mask.size, (*rgb(colour), 0))
    picture.putalpha(mask)
    return picture


def glow(colour: str, strength: float) -> Image.Image:
    """Return a square with a light in its middle."""
    half = _GLOW_SIZE / 2
    levels = bytes(
        round(255 * strength * _level(math.hypot(x + 0.5 - half, y + 0.5 - half) / half, FALLOFF))
        for y in range(_GLOW_SIZE)
        for x in range(_GLOW_SIZE)
    )
    return tinted(Image.frombytes("L", (_GLOW_SIZE, _GLOW_SIZE), levels), colour)


def stacked(layers: list[Image.Image]) -> Image.Image:
    """Return pictures of one size laid over each other."""
    below = layers[0]
    for layer in layers[1:]:
        below = Image.alpha_composite(below, layer)
    return below


def _inner(columns: int, rows: int) -> tuple[float, float, float, float]:
    """Omit half a cell around, where resampling would stretch the border."""
    return (0.5, 0.5, columns - 0.5, rows - 0.5)


def _level(place: float, shape: Sequence[tuple[float, float]]) -> float:
    for (start, low), (end, high) in pairwise(shape):
        if start <= place <= end:
            return low + (high - low) * (place - start) / (end - start)
    return shape[-1][1]
