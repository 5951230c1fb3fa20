"""Pictures for the tests: a subject on a soft background, and its outline."""

import io

from PIL import Image, ImageDraw, ImageFilter


def subject(size: int = 256) -> tuple[Image.Image, Image.Image]:
    """Return a shaded ball above a table as RGB, and its outline as a grey picture."""
    wall = Image.linear_gradient("L").resize((size, size)).point(lambda level: 150 + level // 4)
    picture = Image.merge("RGB", (wall, wall.point(lambda level: level - 10), wall))
    outline = Image.new("L", (size, size))
    box = (size // 4, size // 5, size * 3 // 4, size * 7 // 10)
    ImageDraw.Draw(outline).ellipse(box, fill=255)
    shade = Image.radial_gradient("L").resize((size, size))
    ball = Image.merge("RGB", (shade.point(lambda level: 230 - level // 2), shade, shade))
    picture.paste(ball, mask=outline.filter(ImageFilter.GaussianBlur(1)))
    return picture, outline


def texture(width: int, height: int, seed: int = 1) -> Image.Image:
    """Return a picture with lines, edges and noise."""
    bands = [Image.effect_noise((width, height), 40 + 10 * band + seed) for band in range(3)]
    picture = Image.merge("RGB", bands).filter(ImageFilter.GaussianBlur(1.5))
    draw = ImageDraw.Draw(picture)
    for step in range(0, width, 17):
        draw.line((step, 0, width - step, height), fill=(step % 255, 40, 200), width=2)
    return picture


def file_of(image: Image.Image, name: str = "PNG", **options: object) -> bytes:
    """Return the file of a picture."""
    file = io.BytesIO()
    image.save(file, name, **options)
    return file.getvalue()


def opened(data: bytes) -> Image.Image:
    """Return a decoded picture."""
    with Image.open(io.BytesIO(data)) as image:
        image.load()
    return image
