"""Pictures of text, scanned PDFs, and failing readers of them, which run in a sandbox."""

import io
import os
from collections.abc import Sequence

from PIL import Image, ImageDraw

from gateway.sandbox.errors import SandboxRefusal


def drawn(*sentences: str, size: tuple[int, int] = (1000, 300)) -> Image.Image:
    """Return a picture with one sentence per line."""
    image = Image.new("RGB", size, "white")
    for at, sentence in enumerate(sentences):
        ImageDraw.Draw(image).text((30, 30 + 60 * at), sentence, fill="black", font_size=40)
    return image


def report(rows: Sequence[Sequence[str]]) -> Image.Image:
    """Return a page with a title, a sentence, a table and a last sentence."""
    image = Image.new("RGB", (1654, 1000), "white")
    draw = ImageDraw.Draw(image)
    draw.text((120, 80), "Quarterly report", fill="black", font_size=84)
    draw.text((120, 240), "Online orders grew fastest in the third quarter.", "black", font_size=32)
    for line, row in enumerate(rows):
        for column, cell in enumerate(row):
            draw.text((120 + 450 * column, 380 + 60 * line), cell, fill="black", font_size=32)
    draw.text((120, 760), "All figures are preliminary.", fill="black", font_size=32)
    return image


def ruled(rows: Sequence[Sequence[str]], width: int = 2) -> Image.Image:
    """Return a picture of a table of two columns with lines of this width."""
    image = Image.new("RGB", (900, 100 + 60 * len(rows)), "white")
    draw = ImageDraw.Draw(image)
    for line, row in enumerate(rows):
        for column, cell in enumerate(row):
            place = (50 + 400 * column, 40 + 60 * line)
            draw.text((place[0] + 20, place[1] + 12), cell, fill="black", font_size=32)
            if width:
                draw.rectangle(
                    (*place, place[0] + 400, place[1] + 60), outline="black", width=width
                )
    return image


def saved(*images: Image.Image, kind: str = "PNG", **options) -> bytes:
    """Return pictures as one file."""
    file = io.BytesIO()
    if len(images) > 1:
        options |= {"save_all": True, "append_images": images[1:]}
    images[0].save(file, kind, **options)
    return file.getvalue()


def scan(*sentences: str) -> bytes:
    """Return a PDF with a picture page for each sentence."""
    pages = [drawn(sentence, size=(1654, 2339)) for sentence in sentences]
    return saved(*pages, kind="PDF", resolution=200)


def joined(*documents: bytes) -> bytes:
    import pypdfium2

    whole = pypdfium2.PdfDocument.new()
    for document in documents:
        whole.import_pages(pypdfium2.PdfDocument(document))
    file = io.BytesIO()
    whole.save(file)
    return file.getvalue()


def read_even_pages(kind: str, number: str, data: bytes) -> bytes:
    if int(number) % 2:
        os.abort()
    return f"page {number}".encode()


def read_nothing(kind: str, number: str, data: bytes) -> bytes:
    raise SandboxRefusal("It is damaged.")


def vanish_on_odd_pages(kind: str, number: str, data: bytes) -> bytes:
    if int(number) % 2:
        os.kill(os.getpid(), 9)
    return b"read"
