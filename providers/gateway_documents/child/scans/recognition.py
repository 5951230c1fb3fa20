"""Reads the text in a picture, or on a page of a PDF, with rapidocr."""

import io
import math
import re
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import pypdfium2
from PIL import Image, ImageDraw, ImageOps
from rapidocr import RapidOCR

from gateway_documents.child import tables
from gateway_documents.child.lines import to_text
from gateway_documents.child.pdf import pdf_document, pdf_reader
from gateway_documents.child.scans import reading
from gateway_documents.child.scans.lines import Line, by_direction
from gateway_documents.child.scans.page import Page
from gateway_documents.errors import UNREADABLE_SCRIPT, Unreadable

# At this resolution, 8-point letters are 22 pixels high.
_DPI = 200
_POINTS_PER_INCH = 72
# Pixels of the largest picture; a larger page is rendered at less than 200 dpi.
_MAX_PIXELS = 40_000_000
_KINDS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP")
_SETTINGS = {
    # Threads would not survive the fork.
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    "Global.log_level": "critical",
    # The default enlarges a line to a height of 736 pixels, which takes 1 GB.
    "Det.limit_type": "max",
    # Finds lines of 7-point letters on an A4 page.
    "Det.limit_side_len": 960,
    # A batch, and its memory, grows with its longest line.
    "Rec.rec_batch_num": 1,
    # It takes one long line in four for upside down. `reading` judges the page as a whole.
    "Global.use_cls": False,
    # Where columns are parted within a line.
    "Global.return_word_box": True,
}
# The share of a page's letters in the tables of a page that is not read line by line.
_TABLE_SHARE = 0.5
# The least share of a page's letters that its layout keeps.
_WHOLE = 0.9
# The end of a line between two characters of Chinese or Japanese, which have no spaces.
_WIDE = r"[\u3001-\u30ff\u3400-\u9fff\uff00-\uffef]"
_BROKEN = re.compile(f"(?<={_WIDE}) (?={_WIDE})")
# Holds the single reader, which is loaded before the fork.
_reader: list[RapidOCR] = []


def load_models() -> None:
    """Load rapidocr's models and Pillow's decoders by using each of them once."""
    cv2.setNumThreads(0)
    pdf_document.warm_up()
    _reader.append(RapidOCR(params=_SETTINGS))
    word = Image.new("RGB", (200, 60), "white")
    ImageDraw.Draw(word).text((20, 15), "word", fill="black", font_size=30)
    with pdf_reader.without_pool():
        _read(word)
    for kind in _KINDS:
        file = io.BytesIO()
        word.save(file, kind)
        _picture(file.getvalue(), 0)
    page = pypdfium2.PdfDocument.new()
    page.new_page(10, 10)
    page.save(file := io.BytesIO())
    _page(file.getvalue(), 0)


def recognise(kind: str, number: str, data: bytes) -> bytes:
    """Return the text of a page of a "pdf", or of a frame of a "picture", counted from 0.

    Raises `Unreadable` if there is no such page or the picture cannot be decoded.
    """
    try:
        image = _page(data, int(number)) if kind == "pdf" else _picture(data, int(number))
    except (Unreadable, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - decoders raise anything
        raise Unreadable("The picture cannot be decoded: it is damaged.") from None
    return _read(image).encode(errors="replace")


def _page(data: bytes, number: int) -> Image.Image:
    document = pypdfium2.PdfDocument(data)
    page = document[number]
    width, height = page.get_size()
    affordable = math.sqrt(_MAX_PIXELS / max(width * height, 1))
    bitmap: Any = page.render(scale=min(_DPI / _POINTS_PER_INCH, affordable), may_draw_forms=False)
    image: Image.Image = bitmap.to_pil()
    return image.convert("RGB")


def _picture(data: bytes, number: int) -> Image.Image:
    # `_MAX_PIXELS` is lower than Pillow's limit, and Pillow only warns.
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(io.BytesIO(data), formats=_KINDS) as image:
        image.seek(number)
        if image.width * image.height > _MAX_PIXELS:
            raise Unreadable("The picture is too large: it has more than 40 million pixels.")
        upright = ImageOps.exif_transpose(image)
    if not upright.has_transparency_data:
        return upright.convert("RGB")
    paper = Image.new("RGBA", upright.size, "white")
    paper.alpha_composite(upright.convert("RGBA"))
    return paper.convert("RGB")


def _read(image: Image.Image) -> str:
    if all(low == high for low, high in image.getextrema()):  # type: ignore[misc]
        # An empty page needs no model.
        return ""
    pixels = np.asarray(image)
    lines = _lines(pixels)
    if reading.is_doubtful(lines):
        turned = np.ascontiguousarray(np.rot90(pixels, 2))
        if reading.certainty(others := _lines(turned)) > reading.certainty(lines):
            pixels, lines = turned, others
    if lines and not reading.is_legible(lines):
        raise Unreadable(UNREADABLE_SCRIPT)
    return _markdown(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY), lines)


def _markdown(brightness: Any, lines: Sequence[Line]) -> str:
    """Return the text of a grey page, with that in other directions at its end."""
    pages = (Page.of(brightness, group) for group in by_direction(lines))
    return "\n\n".join(map(_arranged, pages))


def _arranged(page: Page) -> str:
    """Return the text of a page as of a PDF, or line by line as of a receipt."""
    text = pdf_document.parse(page.to_pdf()).pages[0].translate(page.rare)
    cells = "".join(cell for table in tables.find(text)[0] for row in table for cell in row)
    letters, expected = _letters(text), sum(_letters(box.text) for box in page.boxes)
    is_document = page.has_sentences or _letters(cells) >= _TABLE_SHARE * letters
    if is_document and letters >= _WHOLE * expected:
        return _BROKEN.sub("", text)
    return to_text(page.boxes)


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _lines(pixels: Any) -> list[Line]:
    found: Any = _reader[0](pixels)
    if found.boxes is None or found.txts is None:
        return []
    each = zip(found.boxes, found.txts, found.scores, found.word_results, strict=True)
    return [
        Line(
            np.asarray(corners, dtype=float),
            text.strip(),
            float(score),
            [(word, np.asarray(place, dtype=float)) for word, _, place in words],
        )
        for corners, text, score, words in each
    ]
