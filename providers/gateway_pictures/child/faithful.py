"""Keeps an enlargement true to its original, where the network fails or colours are hidden.

SPAN returns coloured noise for hard edges, such as those of text, logos and QR codes.
"""

from PIL import Image, ImageChops, ImageFilter

# By so many levels of 256 a pixel of the shrunk result may differ from the original. Photographs
# differ by up to 22.
_MOST_OFF = 28
# Parts are replaced in whole cells of so many pixels a side, and with the cells around them,
# because noise spreads farther than it is found.
_CELL = 8
# Rows that are interpolated at once: a whole picture takes too much memory.
_ROWS = 32 * _CELL


def replace_unlike(image: Image.Image, large: Image.Image) -> None:
    """Replace the parts of an enlarged RGB picture that do not show the original, by Lanczos."""
    factor = large.width // image.width
    unlike = _find_unlike(image, large.reduce(factor))
    for top in range(0, image.height, _ROWS):
        bottom = min(top + _ROWS, image.height)
        size = (large.width, (bottom - top) * factor)
        cells = (0, top / _CELL, image.width / _CELL, bottom / _CELL)
        mask = unlike.resize(size, Image.Resampling.BILINEAR, box=cells)
        if mask.getbbox():
            box = (0, top, image.width, bottom)
            part = image.resize(size, Image.Resampling.LANCZOS, box=box)
            large.paste(part, (0, top * factor), mask)


def _find_unlike(image: Image.Image, shrunk: Image.Image) -> Image.Image:
    """Return a picture with one pixel for each cell: white for those to be replaced."""
    red, green, blue = ImageChops.difference(image, shrunk).split()
    most = ImageChops.lighter(ImageChops.lighter(red, green), blue)
    off = most.point(lambda level: 255 if level > _MOST_OFF else 0)
    return off.reduce(_CELL).point(_full).filter(ImageFilter.MaxFilter(3))


def without_transparency(image: Image.Image) -> Image.Image:
    """Return an RGBA picture as RGB, with the nearest visible colours in transparent pixels.

    Their own colours are often black, and would darken the edges of the subject.
    """
    seen = image.getchannel("A").point(_full)
    if seen.getextrema()[0] or max(image.size) == 1:
        return image.convert("RGB")
    known = image.copy()
    known.putalpha(seen)
    # The mean of visible pixels alone; a pixel of it is transparent if all four are.
    half = without_transparency(known.reduce(2))
    box = (0, 0, image.width / 2, image.height / 2)
    filled = half.resize(image.size, Image.Resampling.BILINEAR, box=box)
    filled.paste(image.convert("RGB"), mask=seen)
    return filled


def _full(level: int) -> int:
    return 255 if level else 0
