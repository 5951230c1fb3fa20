"""Headings: parted from the text around them, and those that are no headings made paragraphs."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

import liteparse
from liteparse import AnnotationRect, LayoutBlock

from gateway_documents.child.pdf.layout import bullets, code, texts
from gateway_documents.child.pdf.layout.blocks import box_of, cells, rectangle
from gateway_documents.child.pdf.layout.styles import PageLines, Style, TextLine

# The first sentence of a paragraph set in bold, and the begin of the next.
_RUN_IN = re.compile(r"(?:\w{1,3}[.)] )?[^.]*\w{2,} [^.]*\w{2,}\. +[A-Z]")
_NUMBERED = re.compile(r"\d{1,2}(?:\.\d{1,2})*[.)] |\d{1,2}(?:\.\d{1,2})+ ")
# The least share of letters among letters and digits.
_MIN_LETTERS = 0.5
# A longer heading in the body's style, and one with so many commas, is a paragraph.
_MAX_WORDS, _MAX_COMMAS = 12, 4
# The most words of a heading that liteparse takes for a part of a paragraph.
_MAX_PARTED = 20
# Lines of one heading are not further apart, of the height of a line.
_MAX_PITCH = 1.4
# The least size of letters of a heading that liteparse takes for a paragraph, and its longest word.
_LARGE, _MIN_WORD = 1.3, 3
# Parts of a page's height: running headers in bold, and in large letters, end above.
_TOP, _HEADER = 0.07, 0.08
# How far a running header is from the text, of its own height.
_FAR = 1.5
# Points by which the left edges of aligned lines differ.
_ALIGNED = 2.0
_SENTENCE_ENDS = (".", ",", ";", ":")


def refine(
    page: liteparse.ParsedPage, blocks: Sequence[LayoutBlock], body: Style
) -> list[LayoutBlock]:
    """Return the blocks of a page with headings that are one line or several of one style."""
    lines = PageLines(page)
    blocks = code.restore(lines, [*_without_frames(lines, blocks)], body)
    blocks = bullets.mark(page, lines, blocks)
    parted: list[LayoutBlock] = []
    for block, below in zip_longest(blocks, blocks[1:]):
        if below and _is_running(lines, block, below, body):
            parted.append(_paragraph(block, block.text or ""))
        elif _is_title(lines, block, body):
            parted.append(replace(block, kind="heading", level=1))
        else:
            parted += _parts(lines, block, body, parted[-1] if parted else None)
    return _assembled(lines, parted, body)


def _assembled(page: PageLines, blocks: Sequence[LayoutBlock], body: Style) -> list[LayoutBlock]:
    """Return the blocks with the lines of a heading, and of a run-in paragraph, as one."""
    refined: list[LayoutBlock] = []
    is_open = False
    for block, below in zip_longest(blocks, blocks[1:]):
        if is_open and block.kind == "paragraph":
            refined[-1] = replace(refined[-1], text=f"{refined[-1].text} {block.text}")
            is_open = False
            continue
        is_open = block.kind == "heading" and (
            _is_run_in(block, below) or _flows_on(page, block, below, body)
        )
        if is_open:
            refined.append(_paragraph(block, block.text or ""))
        elif refined and _is_wrapped(page, refined[-1], block):
            refined[-1] = _joined(refined[-1], block)
        else:
            refined.append(block)
    return refined


def _is_running(page: PageLines, block: LayoutBlock, below: LayoutBlock, body: Style) -> bool:
    """Whether a line is a running header: at the top, far from the text, in small letters."""
    box = box_of(block)
    if block.kind != "heading" or box.bottom > _TOP * page.height:
        return False
    lines = page.within(box)
    is_far = box_of(below).top - box.bottom > _FAR * box.height
    return is_far and bool(lines) and lines[0].style.size <= body.size


def _is_title(page: PageLines, block: LayoutBlock, body: Style) -> bool:
    """Whether a paragraph below the top of a page is a heading by the size of its letters."""
    text, box = block.text or "", box_of(block)
    words = text.split()
    if block.kind != "paragraph" or box.bottom <= _HEADER * page.height or len(words) > _MAX_WORDS:
        return False
    lines = page.within(box)
    return (
        len(_groups(lines)) == 1
        and all(line.style.size >= _LARGE * body.size for line in lines)
        and any(len(word) >= _MIN_WORD for word in words)
        and not text.endswith(_SENTENCE_ENDS)
        and _is_heading(text, lines, body, is_first=True)
    )


def _flows_on(page: PageLines, block: LayoutBlock, below: LayoutBlock | None, body: Style) -> bool:
    """Whether a line in letters of the body's size is the first one of the paragraph below it."""
    if below is None or below.kind != "paragraph":
        return False
    lines, others = page.within(box_of(block)), page.within(box_of(below))
    if not lines or not others or lines[-1].style.size > body.size:
        return False
    last, first = lines[-1], others[0]
    is_full = (
        len(others) > 1
        and last.style != first.style
        and abs(last.box.left - first.box.left) <= _ALIGNED
        and not _is_ended(last, first, others)
    )
    return _is_below(last, first) and (is_full or (below.text or "")[:1].islower())


def _is_wrapped(page: PageLines, above: LayoutBlock, below: LayoutBlock) -> bool:
    """Whether two headings are the lines of one."""
    if above.kind != "heading" or below.kind != "heading":
        return False
    lines, others = page.within(box_of(above)), page.within(box_of(below))
    return (
        bool(lines and others)
        and lines[-1].style == others[0].style
        and _is_below(lines[-1], others[0])
        and not _NUMBERED.match(below.text or "")
        and not (above.text or "").endswith(_SENTENCE_ENDS)
    )


def _joined(above: LayoutBlock, below: LayoutBlock) -> LayoutBlock:
    return replace(
        above,
        text=f"{above.text} {below.text}",
        bbox=rectangle([box_of(above), box_of(below)]),
    )


def _without_frames(page: PageLines, blocks: Sequence[LayoutBlock]) -> Iterator[LayoutBlock]:
    """Yield the blocks with the lines within frames, which count as tables of one column."""
    for block in blocks:
        rows = cells(block)
        lines = page.within(box_of(block)) if rows and max(map(len, rows)) == 1 else []
        if len(lines) > len(rows) and sum(line.letters for line in lines) == sum(
            texts.count(row[0].text) for row in rows if row
        ):
            for group in _groups(lines):
                text = " ".join(line.box.text for line in group)
                yield LayoutBlock(kind="paragraph", text=text, bbox=_around(group))
        else:
            yield block


def _parts(
    page: PageLines, block: LayoutBlock, body: Style, above: LayoutBlock | None
) -> Iterator[LayoutBlock]:
    is_text = block.kind in ("paragraph", "list_item")
    if not block.text or not (block.kind == "heading" or (is_text and not page.has_one_style)):
        yield block
        return
    lines = page.within(box_of(block))
    if block.kind == "heading":
        yield from _parts_of_heading(block, lines, body)
    else:
        is_open = above is not None and above.kind == "heading"
        open_lines = page.within(box_of(above)) if above and is_open else []
        yield from _parts_of_text(block, lines, body, open_lines)


def _parts_of_heading(
    block: LayoutBlock, lines: Sequence[TextLine], body: Style
) -> Iterator[LayoutBlock]:
    if not lines:
        yield block
    rest = block.text or ""
    groups = _groups(lines)
    for number, group in enumerate(groups, 1):
        text, rest = texts.cut(rest, group, is_last=number == len(groups))
        if text:
            is_heading = _is_heading(text, group, body, is_first=number == 1)
            yield replace(block, text=text) if is_heading else _paragraph(block, text)


def _parts_of_text(
    block: LayoutBlock, lines: Sequence[TextLine], body: Style, above: Sequence[TextLine]
) -> Iterator[LayoutBlock]:
    """Yield the parts of a paragraph or item that has headings among its lines.

    `above` are the lines of a heading before it, whose last words may be in the paragraph.
    """
    whole = f"{block.marker or ''} {block.text}" if block.kind == "list_item" else block.text or ""
    if texts.count(whole) != sum(line.letters for line in lines):
        yield block
        return
    groups = _groups(lines, is_text=True)
    marks = [_is_parted(groups, at, body) for at in range(len(groups))]
    if above and groups and groups[0][0].is_bold and not body.is_bold:
        is_wrapped = not _is_ended(above[-1], lines[0], [*above, *lines])
        marks[0] = marks[0] or (is_wrapped and _continues(above[-1], lines[0]))
    if any(marks):
        yield from _cuts(block, whole, groups, marks)
    else:
        yield block


def _cuts(
    block: LayoutBlock, rest: str, groups: Sequence[list[TextLine]], marks: Sequence[bool]
) -> Iterator[LayoutBlock]:
    at = 0
    while at < len(groups):
        behind = at + 1
        while behind < len(groups) and not marks[at] and not marks[behind]:
            behind += 1
        lines = [line for group in groups[at:behind] for line in group]
        text, rest = texts.cut(rest, lines, is_last=behind == len(groups))
        if marks[at]:
            yield replace(
                block,
                kind="heading",
                level=1,
                text=text.strip("* "),
                bbox=_around(lines),
            )
        elif at == 0 and block.kind == "list_item":
            text = text.removeprefix(block.marker or "").strip()
            yield replace(block, text=text, bbox=_around(lines))
        else:
            yield replace(
                block,
                kind="paragraph",
                level=None,
                text=text,
                bbox=_around(lines),
            )
        at = behind


def _groups(lines: Sequence[TextLine], *, is_text: bool = False) -> list[list[TextLine]]:
    """Return lines in groups of one style whose lines are near each other.

    In a text, also a bold line that ends early is the last of a group.
    """
    groups: list[list[TextLine]] = []
    for line in lines:
        above = groups[-1][-1] if groups else None
        is_ended = is_text and above and above.is_bold and _is_ended(above, line, lines)
        if above and not is_ended and _continues(above, line):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _continues(above: TextLine, below: TextLine) -> bool:
    is_numbered = _NUMBERED.match(below.box.text)
    return above.style == below.style and _is_below(above, below) and not is_numbered


def _is_below(above: TextLine, below: TextLine) -> bool:
    """Whether a line is the next one of a paragraph."""
    return 0 < below.box.top - above.box.top <= _MAX_PITCH * above.box.height


def _is_parted(groups: Sequence[list[TextLine]], at: int, body: Style) -> bool:
    """Whether a group among the lines of a paragraph is a heading of its own."""
    group = groups[at]
    text = " ".join(line.box.text for line in group).strip()
    is_strong = all(line.is_bold for line in group) and not body.is_bold
    return (
        at + 1 < len(groups)
        and is_strong
        and not groups[at + 1][0].is_bold
        and not groups[at + 1][0].box.text[:1].islower()
        and group[0].style.size >= body.size
        and _is_ended(group[-1], groups[at + 1][0], [line for some in groups for line in some])
        and len(text.split()) <= _MAX_PARTED
        and not text.endswith(_SENTENCE_ENDS)
        and not text[:1].islower()
        and _is_heading(text, group, body, is_first=True)
    )


def _is_ended(line: TextLine, below: TextLine, around: Sequence[TextLine]) -> bool:
    """Whether a line ends though the first word of the next one would have fitted."""
    right = max(line.box.right for line in around)
    words = below.box.text.split(maxsplit=1)
    return line.box.right + below.letter_width * (len(words[0] if words else "") + 1) < right


def _paragraph(block: LayoutBlock, text: str) -> LayoutBlock:
    return replace(block, kind="paragraph", level=None, text=text)


def _is_heading(text: str, lines: Sequence[TextLine], body: Style, *, is_first: bool) -> bool:
    style = lines[0].style
    signs = [char for char in text if char.isalnum()]
    is_body = style.size <= body.size and style.is_bold <= body.is_bold
    is_sentence = not is_first or len(text.split()) > _MAX_WORDS or text.endswith(_SENTENCE_ENDS)
    return (
        len(signs) > 1
        and sum(map(str.isalpha, signs)) >= _MIN_LETTERS * len(signs)
        and text.count(",") < _MAX_COMMAS
        and not (is_body and is_sentence)
        and not (style.size <= body.size and text.endswith((",", ";")))
        and not all(line.style.is_mono for line in lines)
    )


def _around(lines: Sequence[TextLine]) -> AnnotationRect:
    return rectangle([line.box for line in lines])


def _is_run_in(block: LayoutBlock, below: LayoutBlock | None) -> bool:
    """Whether a line is the begin of a paragraph whose first words are bold."""
    if below is None or below.kind != "paragraph" or not below.text:
        return False
    return below.text[:1].islower() and bool(_RUN_IN.match(block.text or ""))
