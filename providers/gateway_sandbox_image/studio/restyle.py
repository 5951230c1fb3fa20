"""Restyles a buyer's picture: its lines and light in a palette's colours."""

import io

from PIL import Image, ImageChops, ImageFilter, ImageOps

from .caption import Sheet, is_sheet, paint_sheet
from .colour import ramp, rgb
from .palette import Palette
from .picture import bloom, grain, paint_on, vignette
from .scene import Scene, compose
from .svg import Drawing
from .weather import paint_rain, paint_snowfall

# Only these formats are decoded.
_FORMATS = ("PNG", "JPEG", "WEBP")
# Pixels of the longer side; a larger picture is scaled down.
_LONGEST = 1600
# The minimum size of a sheet's shorter side, so that its caption is readable.
_SHORTEST_SHEET = 640
# The maximum ratio of a sheet's sides; the sides of a longer picture are cropped.
_MAX_RATIO = 3.0
# The weight of the palette in a pixel's colour; the rest is the picture's own.
_TINT = 0.72
_LEVELS = range(256)
_SMOOTH = Image.Resampling.LANCZOS


def restyle(prompt: str, data: bytes) -> Image.Image:
    """Return a file's picture in the mood of the prompt's words, on a captioned sheet."""
    picture = _read(data)
    if is_sheet(picture):
        picture = _cut_out(picture)
    sheet = sheet_around(*picture.size)
    picture = ImageOps.fit(picture, sheet.picture, _SMOOTH)
    scene = compose(prompt, *sheet.picture)
    page = Drawing(sheet.width, sheet.height)
    paint_sheet(page, sheet, prompt, scene.digest[:4].hex(), scene.palette.land[2])
    paper = Image.new("RGB", (sheet.width, sheet.height))
    paint_on(paper, page, 1)
    paper.paste(_repaint(picture, scene), (sheet.margin, sheet.margin))
    return grain(paper, scene)


def sheet_around(width: int, height: int) -> Sheet:
    """Return the sheet whose picture has the shape of `width` by `height` pixels."""
    most = _MAX_RATIO * min(width, height)
    wide, high = min(width, most), min(height, most)
    scale = min(_LONGEST / max(wide, high), max(1.0, _SHORTEST_SHEET / min(wide, high)))
    wide, high = wide * scale, high * scale
    # The margins are fractions of the sheet's shorter side, which includes them.
    sheet = Sheet(width=round(wide), height=round(high))
    for _ in range(12):
        across, down = sheet.width - sheet.picture[0], sheet.height - sheet.picture[1]
        sheet = Sheet(width=round(wide + across), height=round(high + down))
    return sheet


def _read(data: bytes) -> Image.Image:
    """Read a picture upright, without transparency."""
    # The gateway has measured the picture, so that Pillow need not warn.
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
        # A larger picture takes more memory without showing more.
        image.thumbnail((2 * _LONGEST, 2 * _LONGEST), _SMOOTH)
        upright = ImageOps.exif_transpose(image)
        if not upright.has_transparency_data:
            return upright.convert("RGB")
        seen = upright.convert("RGBA")
    paper = Image.new("RGB", seen.size, "white")
    paper.paste(seen, mask=seen.getchannel("A"))
    return paper


def _cut_out(drawn: Image.Image) -> Image.Image:
    """Crop a sheet of this renderer, so that sheets do not nest."""
    sheet = Sheet(width=drawn.width, height=drawn.height)
    # Two pixels less: the margins of a larger resolution are rounded differently.
    rim, (across, down) = sheet.margin + 2, sheet.picture
    return drawn.crop((rim, rim, rim + across - 4, rim + down - 4))


def _repaint(picture: Image.Image, scene: Scene) -> Image.Image:
    brushed = picture.filter(ImageFilter.MedianFilter(3))
    graded = Image.blend(brushed, _grade(brushed, scene.palette), _TINT)
    inked = ImageChops.multiply(graded, _outlines(brushed))
    weather = Drawing(scene.width, scene.height)
    if "rain" in scene.motifs:
        paint_rain(weather, scene)
    if "snow" in scene.motifs:
        paint_snowfall(weather, scene)
    paint_on(inked, weather, 1)
    return vignette(bloom(inked))


def _grade(picture: Image.Image, palette: Palette) -> Image.Image:
    """Use the palette's colours, from its land to its glow."""
    light = ImageOps.autocontrast(picture.convert("L"), cutoff=0.5)
    colours = (palette.land[2], palette.land[1], palette.sky[-3], palette.sky[-1], palette.disc)
    steps = [rgb(ramp(colours, level / 255)) for level in _LEVELS]
    return Image.merge("RGB", [light.point([step[band] for step in steps]) for band in range(3)])


def _outlines(picture: Image.Image) -> Image.Image:
    """Draw soft dark lines on white."""
    edges = (
        picture.convert("L").filter(ImageFilter.GaussianBlur(1.2)).filter(ImageFilter.FIND_EDGES)
    )
    lines = edges.point([255 - min(120, max(0, level - 10) * 3) for level in _LEVELS])
    # The filter leaves the border unchanged.
    lines.paste(255, (0, 0, lines.width, 1))
    lines.paste(255, (0, lines.height - 1, lines.width, lines.height))
    lines.paste(255, (0, 0, 1, lines.height))
    lines.paste(255, (lines.width - 1, 0, lines.width, lines.height))
    return Image.merge("RGB", (lines.filter(ImageFilter.GaussianBlur(0.6)),) * 3)
