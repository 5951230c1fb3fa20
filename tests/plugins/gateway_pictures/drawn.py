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


def drawings() -> dict[str, Image.Image]:
    """Return pictures with hard edges, from which networks trained on photographs make noise."""
    kinds = ("text", "light text", "logo", "code", "stripes")
    made = {kind: Image.new("RGB", (96, 96), "white") for kind in kinds}
    made["light text"].paste("black", (0, 0, 96, 96))
    drawn = {kind: ImageDraw.Draw(image) for kind, image in made.items()}
    for line in range(4, 90, 16):
        drawn["text"].text((4, line), "Hello 12345", fill="black", font_size=14)
        drawn["light text"].text((4, line), "Hello 12345", fill="white", font_size=14)
    drawn["logo"].ellipse((10, 10, 86, 86), fill=(255, 0, 0), outline="black", width=3)
    drawn["logo"].rectangle((36, 36, 60, 60), fill=(0, 0, 255))
    for module in range(16 * 16):
        if module * module % 37 % 2:
            left, top = 8 + module % 16 * 5, 8 + module // 16 * 5
            drawn["code"].rectangle((left, top, left + 4, top + 4), fill="black")
    for line in range(0, 96, 2):
        drawn["stripes"].line((0, line, 96, line), fill="black")
    return made


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
