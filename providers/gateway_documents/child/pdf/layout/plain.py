"""A page's plain text, for pages of which liteparse loses words.

It takes letters that overlap for one: in a font with very high boxes, those of other lines, too.
"""

import contextlib
import re
from collections.abc import Iterator

import liteparse
import pypdfium2
from pypdfium2 import raw

from gateway_documents.child.lines import Box
from gateway_documents.child.pdf.layout import grids
from gateway_documents.child.pdf.layout.blocks import to_markdown

# Of the letters and digits of a page.
_MAX_LOST = 0.15
_ITEM = re.compile(r"(?:[•●▪■-]|\(?\w{1,3}[.)]) +")
_SHORT_LINE = 0.7
# A word, and one broken at the end of a line, which PDFium marks.
_WORD = re.compile(r"([^\s\x02\ufffe]+)(?:[\x02\ufffe]\s*[^\s\x02\ufffe]+)*")
_PART = re.compile(r"[^\s\x02\ufffe]+")
_HEADING = re.compile(r"^(#{1,6} )(.+)$", re.MULTILINE)


def restore(markdown: str, text: str, page: liteparse.ParsedPage, data: bytes) -> str:
    """Return the Markdown of a page, or its visible plain text if too much of it is missing."""
    if not _lacks(markdown, text):
        return markdown
    lines: list[list[Box]] = []
    with contextlib.suppress(pypdfium2.PdfiumError):
        lines = [*_lines(pypdfium2.PdfDocument(data)[page.page_num - 1])]
    visible = " ".join(word.text for line in lines for word in line)
    return _paragraphs(lines, page, markdown) if _lacks(markdown, visible) else markdown


def _lacks(markdown: str, text: str) -> bool:
    wanted, found = _letters(text), _letters(markdown)
    return len(found) < (1 - _MAX_LOST) * len(wanted)


def _paragraphs(lines: list[list[Box]], page: liteparse.ParsedPage, markdown: str) -> str:
    """Return lines as paragraphs, with the headings that were found, and ruled tables."""
    marks = {_letters(found[2]): found[1] for found in _HEADING.finditer(markdown)}
    found = [*grids.find_tables(page, [word for line in lines for word in line])]
    width = max((line[-1].right - line[0].left for line in lines), default=0)
    paragraphs: list[str] = []
    above = 0.0
    for line in lines:
        table = next((one for grid, one in found if grid.contains(line[0])), None)
        text = to_markdown([table]) if table else " ".join(word.text for word in line)
        mark = marks.get(_letters(text), "")
        if table and text in paragraphs:
            continue
        if table or mark or above < _SHORT_LINE * width or _ITEM.match(text):
            paragraphs.append(mark + text)
        else:
            paragraphs[-1] += f" {text}"
        above = 0.0 if table or mark else line[-1].right - line[0].left
    return "\n\n".join(paragraphs)


def _lines(page: pypdfium2.PdfPage) -> Iterator[list[Box]]:
    """Yield the words within a page in the order of its content, by line."""
    chars = page.get_textpage()
    text = "".join(chr(raw.FPDFText_GetUnicode(chars, at)) for at in range(chars.count_chars()))
    around = Box(0, page.get_width(), 0, page.get_height(), "")
    line: list[Box] = []
    end = 0
    for found in _WORD.finditer(text):
        if line and "\n" in text[end : found.start()]:
            yield line
            line = []
        end = found.end()
        word = _word(chars, found, around.bottom)
        if word.is_within(around):
            line.append(word)
    if line:
        yield line


def _word(chars: pypdfium2.PdfTextPage, found: re.Match[str], height: float) -> Box:
    edges = [chars.get_charbox(at) for at in range(found.start(), found.start() + len(found[1]))]
    lefts, bottoms, rights, tops = zip(*edges, strict=True)
    whole = found[0] if found[0] == found[1] else "".join(_PART.findall(found[0]))
    text = whole.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return Box(min(lefts), max(rights), height - max(tops), height - min(bottoms), text)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))
