"""Turns pages whose text lies on its side, such as wide tables on upright pages."""

import io
from collections import Counter
from collections.abc import Mapping, Sequence

import liteparse
import pypdfium2

_QUARTER, _FULL = 90, 360
# A longer document is not read twice.
_MAX_PAGES = 200


def find(pages: Sequence[liteparse.ParsedPage]) -> dict[int, int]:
    """Return the angle of each page, from 0, on which most letters are turned."""
    found = {}
    for number, page in enumerate(pages if len(pages) <= _MAX_PAGES else ()):
        letters: Counter[int] = Counter()
        for item in page.text_items:
            quarters = round((item.rotation or 0) / _QUARTER)
            letters[quarters * _QUARTER % _FULL] += len(item.text)
        angle = max(letters, key=letters.__getitem__, default=0)
        if angle:
            found[number] = angle
    return found


def upright(data: bytes, turns: Mapping[int, int]) -> bytes:
    """Return a PDF with pages turned back by their angle."""
    document = pypdfium2.PdfDocument(data)
    for number, angle in turns.items():
        page = document[number]
        page.set_rotation((page.get_rotation() - angle) % _FULL)
    document.save(copy := io.BytesIO())
    return copy.getvalue()
