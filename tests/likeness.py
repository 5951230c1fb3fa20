"""The similarity of two pictures, in light and shade, and in colours."""

import statistics

from PIL import Image, ImageChops, ImageStat

# Small enough that neither a brush's stroke nor a snowflake counts.
_SIZE = (48, 36)


def likeness(one: Image.Image, two: Image.Image) -> float:
    """Return the correlation of light and shade, from -1 to 1; 1 for the same shapes."""
    return statistics.correlation(
        *(list(_shrink(picture, "L").tobytes()) for picture in (one, two))
    )


def colour_difference(one: Image.Image, two: Image.Image) -> float:
    """Return the mean difference of the colours, from 0 to 255."""
    difference = ImageChops.difference(_shrink(one, "RGB"), _shrink(two, "RGB"))
    return statistics.fmean(ImageStat.Stat(difference).mean)


def scene_of(sheet: Image.Image) -> Image.Image:
    """Return the scene on a sheet of the sandbox renderer, without its paper and caption."""
    width, height = sheet.size
    return sheet.crop((width // 12, height // 12, width - width // 12, height * 4 // 5))


def _shrink(picture: Image.Image, mode: str) -> Image.Image:
    return picture.convert(mode).resize(_SIZE, Image.Resampling.BOX)
