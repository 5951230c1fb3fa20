"""A picture from prompt to pixels: draw, reflect, add bloom, place on paper."""

import io

import resvg_py
from PIL import Image, ImageChops, ImageFilter

from .caption import SANS, SERIF, Sheet, paint_sheet
from .compositions import WATERSIDE, paint_backdrop, paint_front
from .scene import Scene, compose
from .svg import Drawing, Layer
from .water import reflect

_LEVELS = range(256)
_SMOOTH = Image.Resampling.BICUBIC


def draw(prompt: str, width: int, height: int, scale: int) -> Image.Image:
    """Return the finished sheet, `scale` pixels per unit of width and height."""
    sheet = Sheet(width=width, height=height)
    scene = compose(prompt, *sheet.picture)
    page = Drawing(width, height)
    paint_sheet(page, sheet, prompt, scene.digest[:4].hex(), scene.palette.land[2])
    paper = Image.new("RGB", (width * scale, height * scale))
    paint_on(paper, page, scale)
    paper.paste(_painted(scene, scale), (sheet.margin * scale, sheet.margin * scale))
    return grain(paper, scene)


def _painted(scene: Scene, scale: int) -> Image.Image:
    backdrop, front = Drawing(scene.width, scene.height), Drawing(scene.width, scene.height)
    paint_backdrop(backdrop, scene)
    paint_front(front, scene)
    picture = Image.new("RGB", (scene.width * scale, scene.height * scale))
    paint_on(picture, backdrop, scale)
    if scene.setting in WATERSIDE:
        reflect(picture, scene, round(scene.horizon * scale), scale)
    paint_on(picture, front, scale)
    return vignette(bloom(picture))


def paint_on(picture: Image.Image, drawing: Drawing, scale: int) -> None:
    """Rasterise a drawing onto a picture, at `scale` pixels per unit."""
    for run in drawing.runs(scale):
        if isinstance(run, Layer):
            _lay_on(picture, run, scale)
            continue
        shapes = _rasterised(run)
        picture.paste(shapes, (0, 0), shapes)


def _rasterised(document: str) -> Image.Image:
    fonts = [str(SERIF), str(SANS)] if "<text" in document else []
    png = resvg_py.svg_to_bytes(svg_string=document, skip_system_fonts=True, font_files=fonts)
    return Image.open(io.BytesIO(png)).convert("RGBA")


def _lay_on(picture: Image.Image, layer: Layer, scale: int) -> None:
    left, top = round(layer.x * scale), round(layer.y * scale)
    wide, tall = round(layer.width * scale), round(layer.height * scale)
    seen_left, seen_top = max(0, left), max(0, top)
    seen_right, seen_bottom = min(picture.width, left + wide), min(picture.height, top + tall)
    if seen_left >= seen_right or seen_top >= seen_bottom:
        return
    across, down = layer.picture.width / wide, layer.picture.height / tall
    part = (
        (seen_left - left) * across,
        (seen_top - top) * down,
        (seen_right - left) * across,
        (seen_bottom - top) * down,
    )
    size = (seen_right - seen_left, seen_bottom - seen_top)
    stretched = layer.picture.resize(size, _SMOOTH, box=part)
    picture.paste(stretched, (seen_left, seen_top), stretched)


def bloom(picture: Image.Image) -> Image.Image:
    """Let bright areas glow beyond their edges."""
    small = picture.resize((picture.width // 8, picture.height // 8), Image.Resampling.BOX)
    bright = small.point([max(0, int((level - 150) * 0.29)) for level in _LEVELS] * 3)
    halo = bright.filter(ImageFilter.GaussianBlur(min(small.size) / 26))
    return ImageChops.screen(picture, halo.resize(picture.size, _SMOOTH))


def vignette(picture: Image.Image) -> Image.Image:
    """Darken the corners slightly."""
    falloff = [int(255 - max(0, level - 120) * 0.42) for level in _LEVELS]
    shade = Image.radial_gradient("L").point(falloff).resize(picture.size, _SMOOTH)
    return ImageChops.multiply(picture, Image.merge("RGB", (shade,) * 3))


def grain(paper: Image.Image, scene: Scene) -> Image.Image:
    """Add film grain, which hides the 256 steps of a gradient."""
    dice, count = scene.dice("grain"), paper.width * paper.height
    one, two = (Image.frombytes("L", paper.size, dice.randbytes(count)) for _ in range(2))
    soft = [round(128 + (level - 128) * 0.045) for level in _LEVELS]
    noise = ImageChops.add(one, two, scale=2).point(soft)
    return ImageChops.add(paper, Image.merge("RGB", (noise,) * 3), offset=-128)
