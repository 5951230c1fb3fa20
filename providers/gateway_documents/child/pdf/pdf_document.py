"""PDF: the text layer with headings, lists and tables, by liteparse."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import liteparse
import pypdfium2

from gateway.domain.words import has_words
from gateway_documents.child import MAX_PAGES, escaping, raised_digits
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.pdf import (
    annotations,
    form_fields,
    invisible_text,
    pdf_signs,
    pdf_source,
    unknown_letters,
)
from gateway_documents.child.pdf.layout import (
    borderless,
    grids,
    headings,
    heads,
    loose,
    spaces,
    styles,
)
from gateway_documents.child.pdf.layout.blocks import to_markdown
from gateway_documents.child.pdf.layout.plain import restore
from gateway_documents.child.pdf.pdf_reader import ONE_PAGE, load
from gateway_documents.errors import Unreadable

_HEADER = b"%PDF-"
# The part of a page's height, at the top and at the bottom, where running lines may be.
_MARGIN = 0.1
# The fewest pages, and the smallest share of them, that have a running header or footer.
_MIN_PAGES, _MIN_SHARE = 3, 0.5
_DIGITS = re.compile(r"\d+")
# Numbers of a running line that may be the page's, and the most digits of one.
_MAX_NUMBERS, _MAX_PAGE_DIGITS = 8, 5
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.MULTILINE)
_TITLE, _MAX_LEVEL = "#", 6
_DECORATION = re.compile(r"[#*_`>\s|]+")


def parse(data: bytes) -> Parsed:
    """Return the pages of a PDF; the ones without a text layer of their own are in `textless`.

    A running header or footer stays on the first page that has it. Raises `Unreadable` for a PDF
    that is encrypted or cannot be opened.
    """
    # liteparse reads nothing that precedes the header.
    data = data[max(data.find(_HEADER), 0) :]
    _check_length(data)
    source = pdf_source.prepare(data)
    data, pages = source.data, source.pages
    plain_pages, body = raised_digits.find(data), styles.body_style(pages)
    layouts = [_arranged(page, body) for page in pages]
    margins = [_margin_lines(*one) for one in zip(pages, layouts, strict=True)]
    running = {kind: _running_lines(margins, kind) for kind in ("", _TITLE)}
    levels = _heading_levels(pages, layouts)
    texts, textless = [], {}
    for number, page in enumerate(pages):
        text = ""
        if has_words(page.text or "") and number not in source.is_wrong:
            text = to_markdown(layouts[number]) or page.text or ""
            if plain := plain_pages.get(number):
                text = spaces.close(restore(text, plain.text, page, data), plain.text)
                text = raised_digits.write_into(text, plain.shifted)
            text = _without(text, running, number, margins[number])
            text = pdf_signs.escaped(text, layouts[number])
            text = _with_levels(text, levels)
        text = form_fields.named(text, source.fields.get(number, ()))
        text = "\n\n".join((text, *map(escaping.paragraph, source.texts.get(number, ()))))
        if number in source.unread:
            textless[number] = True
        elif not text.strip() and not (page.text or "").strip() and number not in source.lost:
            textless[number] = _has_picture(page)
        texts.append(text.strip("\n"))
    return Parsed(texts, source.notes, textless)


def _check_length(data: bytes) -> None:
    """Raise `Unreadable` for more pages than can be parsed in time."""
    # A PDF that PDFium cannot open is refused by `_read`, which has the reason.
    with contextlib.suppress(pypdfium2.PdfiumError):
        pages = len(pypdfium2.PdfDocument(data))
        if pages > MAX_PAGES:
            raise Unreadable(
                f"The file is too large: it has {pages:,} pages, and up to {MAX_PAGES:,} are read."
            )


def _arranged(page: liteparse.ParsedPage, body: styles.Style) -> list[liteparse.LayoutBlock]:
    blocks = grids.replace_tables(page, list(page.blocks or ()))
    blocks = borderless.replace_blocks(page, blocks)
    blocks = heads.attach(page, loose.mend(page, blocks))
    return headings.refine(page, blocks, body)


def warm_up() -> None:
    """Make the reader and use every library once: none can be loaded after a fork."""
    load()
    raised_digits.find(ONE_PAGE)
    invisible_text.removed(ONE_PAGE)
    annotations.draw(ONE_PAGE)
    unknown_letters.blank(ONE_PAGE)


def _running_lines(margins: Sequence[Sequence[str]], kind: str) -> dict[str, int]:
    """Return the keys of running headers and footers of a kind, each with its first page."""
    count: Counter[str] = Counter()
    first: dict[str, int] = {}
    for number, lines in enumerate(margins):
        keys = (_running_keys(line, number) for line in lines if line.startswith(kind))
        for line in set(chain.from_iterable(keys)):
            count[line] += 1
            first.setdefault(line, number)
    needed = max(_MIN_PAGES, _MIN_SHARE * len(margins))
    return {line: first[line] for line, times in count.items() if times >= needed}


def _margin_lines(page: liteparse.ParsedPage, blocks: Sequence[liteparse.LayoutBlock]) -> list[str]:
    """Return the texts in the margins; those of headings begin with #."""
    lines = []
    for block in blocks:
        if block.text and block.bbox is not None:
            below = block.bbox.y + block.bbox.height
            if below < _MARGIN * page.height or block.bbox.y > (1 - _MARGIN) * page.height:
                lines.append((_TITLE if block.kind == "heading" else "") + block.text)
    return lines


def _without(
    markdown: str, running: Mapping[str, dict[str, int]], number: int, margin: Sequence[str]
) -> str:
    """Return a page without those running lines that are in its margin.

    A heading stays, also in the margin, unless the line is a heading on most pages. A page of
    only running lines keeps them.
    """
    left = Counter(map(_plain, margin))
    paragraphs = markdown.split("\n\n")
    dropped = set()
    for at in sorted(range(len(paragraphs)), key=lambda at: paragraphs[at].startswith(_TITLE)):
        plain = _plain(paragraphs[at])
        first = running[_TITLE if paragraphs[at].startswith(_TITLE) else ""]
        keys = _running_keys(plain, number)
        if left[plain] and any(first.get(key, number) != number for key in keys):
            left[plain] -= 1
            dropped.add(at)
    kept = (text for at, text in enumerate(paragraphs) if at not in dropped)
    return markdown if len(dropped) == len(paragraphs) else "\n\n".join(kept)


def _heading_levels(
    pages: Sequence[liteparse.ParsedPage], layouts: Sequence[Sequence[liteparse.LayoutBlock]]
) -> dict[str, int]:
    """Return the level of each heading: the largest letters of the document are level 1."""
    sizes: dict[str, float] = {}
    for page, blocks in zip(pages, layouts, strict=True):
        texts = [block.text for block in blocks if block.kind == "heading"]
        letters = {item.text.strip(): item.font_size or 0.0 for item in page.text_items}
        for text in filter(None, texts):
            lines = [size for line, size in letters.items() if line and text.startswith(line)]
            if lines:
                sizes[_key(text)] = round(max(lines))
    ranks = {size: rank for rank, size in enumerate(sorted(set(sizes.values()), reverse=True), 1)}
    return {text: min(ranks[size], _MAX_LEVEL) for text, size in sizes.items()}


def _with_levels(markdown: str, levels: dict[str, int]) -> str:
    def leveled(found: re.Match[str]) -> str:
        level = levels.get(_key(found[2]), len(found[1]))
        return f"{'#' * level} {found[2]}"

    return _HEADING.sub(leveled, markdown)


def _running_keys(line: str, page: int) -> Iterator[str]:
    """Yield a line, and the line with each number relative to the page's.

    Lines that differ in another number, such as the total of an invoice, have no key in common.
    """
    plain = _plain(line)
    yield plain
    for found in islice(_DIGITS.finditer(plain), _MAX_NUMBERS):
        if len(found[0]) <= _MAX_PAGE_DIGITS:
            offset = int(found[0]) - page
            yield f"{plain[: found.start()]}\0{offset}\0{plain[found.end() :]}"


def _plain(line: str) -> str:
    return " ".join(_DECORATION.sub(" ", line).split())


def _key(line: str) -> str:
    return _DIGITS.sub("0", _DECORATION.sub(" ", line)).strip()


def _has_picture(page: liteparse.ParsedPage) -> bool:
    found = page.complexity
    if found is None:
        return True
    figures = found.layout.figure_count if found.layout else 0
    return bool(found.full_page_image or found.image_block_count or figures)
