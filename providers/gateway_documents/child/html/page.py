"""HTML pages, by markdownify: without hidden elements, and with spans of tables filled in."""

import re
import warnings
from collections.abc import Mapping
from typing import Any

import markdownify
from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning
from bs4.element import NavigableString, PageElement, Tag

from gateway_documents.child import escaping, tables
from gateway_documents.child.html import html_repair, mathml
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.raised_digits import LOWERED, RAISED, shifted
from gateway_documents.child.text.charsets import decode
from gateway_documents.child.text.plain_text import guess_note
from gateway_documents.errors import NO_TEXT, Unreadable

_IMAGE = re.compile(r"!\[\]\([^)]*\)")
_BREAKS = re.compile(r"[\t\n\r]+")
_IN_LINKS = {32: "%20", 40: "%28", 41: "%29"}
_IN_DESCRIPTIONS = {91: "\\[", 93: "\\]"}
_SPACES = "".join(map(chr, range(0x21)))
_HIDDEN_NOTE = ("Text that the page's style hides was left out.",)
# Soft hyphens, spaces without a width, and DEL.
_UNSEEN = dict.fromkeys((0x7F, 0xAD, 0x200B, 0xFEFF))
_TICKS = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")
# More columns or rows of one cell are a mistake or an attack; browsers stop at 1,000.
_MAX_SPAN = 1000


def parse(data: bytes) -> Parsed:
    """Return a page as Markdown."""
    decoded = decode(data, may_declare=True)
    with warnings.catch_warnings(action="ignore", category=XMLParsedAsHTMLWarning):
        soup = BeautifulSoup(decoded.text.replace("\f", " "), "lxml", element_classes={Tag: _Tag})
    hid_text = html_repair.repair(soup)
    try:
        markdown = _Converter().convert_soup(soup)
    except RecursionError:
        # Nested too deeply for its structure; the words are still there.
        markdown = escaping.paragraph(soup.get_text("\n", strip=True))
    text = _BLANK_LINES.sub("\n\n", markdown.translate(_UNSEEN)).strip()
    if not _IMAGE.sub("", text).strip():
        raise Unreadable(NO_TEXT)
    return Parsed([text], (*guess_note(decoded.guess), *(_HIDDEN_NOTE if hid_text else ())))


class _Tag(Tag):
    """A tag that finds its parents quickly: markdownify asks for one of each tag."""

    def find_parent(self, name: Any = None, attrs: Any = None, **more: Any) -> Tag | None:
        """Return the next parent with a name, or as bs4 finds it."""
        if not isinstance(name, str) or attrs or more:
            return super().find_parent(name, attrs or {}, **more)
        parent = self.parent
        while parent is not None and parent.name != name:
            parent = parent.parent
        return parent


class _Converter(markdownify.MarkdownConverter):
    """markdownify with links that a reader can follow and tables whose rows are equally long."""

    def __init__(self) -> None:
        super().__init__(heading_style=markdownify.ATX, bullets="-", wrap=True, wrap_width=None)
        # By `id` of a cell's tag. Children are converted before their table.
        self._cells: dict[int, str] = {}

    def escape(self, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Escape what Markdown would take for its signs."""
        return escaping.inline(text)

    def process_text(self, el: NavigableString, parent_tags: set[str] | None = None) -> str:
        """Return a text that starts no block, as `- ` would."""
        text: str = super().process_text(el, parent_tags)  # type: ignore[misc]
        is_plain = not parent_tags or parent_tags.isdisjoint(("_noformat", "_inline"))
        if is_plain and (escaped := escaping.starts(text)) != text and _starts_line(el):
            return escaped
        return text

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a link, or its text if it leads to a script or within the page."""
        # Browsers ignore the line breaks and the outer spaces.
        target = _BREAKS.sub("", str(el.get("href") or "")).strip(_SPACES)
        scheme = target.partition(":")[0].lower()
        if target.startswith("#") or scheme in ("javascript", "vbscript", "data"):
            return text
        el["href"] = target.translate(_IN_LINKS)
        link: str = super().convert_a(el, text, parent_tags)  # type: ignore[misc]
        return link

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a picture by its description and address."""
        description = " ".join(str(el.get("alt") or "").split())
        el["alt"] = escaping.inline(description).translate(_IN_DESCRIPTIONS)
        el["src"] = _BREAKS.sub("", str(el.get("src") or "")).strip(_SPACES).translate(_IN_LINKS)
        picture: str = super().convert_img(el, text, parent_tags)  # type: ignore[misc]
        return picture

    def convert_math(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return a formula in one line."""
        return mathml.to_markdown(el)

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return code in a fence that it does not contain; in a cell, its lines."""
        if "_inline" in parent_tags:
            return "\n".join(map(escaping.inline, text.strip("\n").split("\n")))
        code: str = super().convert_pre(el, text, parent_tags)  # type: ignore[misc]
        fence = "`" * (max(map(len, _TICKS.findall(text)), default=2) + 1)
        inside = code.strip("\n")[3:-3]
        return f"\n\n{fence}{inside}{fence}\n\n" if code else ""

    def convert_rt(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return the reading of a word behind it."""
        return f" ({text.strip()})" if text.strip() else ""

    def convert_sup(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return raised digits as characters, and other text as it is."""
        return shifted(text, RAISED)

    def convert_sub(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return lowered digits as characters, and other text as it is."""
        return shifted(text, LOWERED)

    def convert_table(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return a table; one inside another's cell becomes lines of that cell."""
        rows = _grid(el, self._cells)
        if {"td", "th"} & parent_tags:
            return "\n" + "\n".join(" / ".join(filter(None, row)) for row in rows) + "\n"
        caption = el.find("caption")
        title = f"{escaping.paragraph(caption.get_text(' ', strip=True))}\n\n" if caption else ""
        return f"\n\n{title}{tables.to_markdown(rows, keep_columns=True)}\n\n"

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Keep a cell's text for its table."""
        self._cells[id(el)] = tables.cell_markdown(text)
        return text

    convert_th = convert_td

    def convert_tr(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return the text of a row, which only matters outside a table."""
        return text


def _grid(table: Tag, texts: Mapping[int, str]) -> list[list[str]]:
    """Return a table's cells by row and column; a span leaves the cells it covers empty."""
    found = html_repair.rows_of(table)
    rows: list[dict[int, str]] = [{} for _ in found]
    left = [1] * len(found)
    for at in range(len(found) - 2, -1, -1):
        left[at] += left[at + 1] if found[at].parent is found[at + 1].parent else 0
    for at, row in enumerate(found):
        column = 0
        for cell in html_repair.children(row, ("td", "th")):
            while column in rows[at]:
                column += 1
            right = max(_span(cell, "colspan"), 1)
            # A row span of 0 reaches to the end of the section, and no other further.
            below = min(_span(cell, "rowspan") or len(found), left[at])
            for covered in rows[at : at + below]:
                covered.update(dict.fromkeys(range(column, column + right), ""))
            rows[at][column] = texts.get(id(cell), "")
            column += right
    width = max((max(row, default=-1) for row in rows), default=-1) + 1
    if width * len(rows) > tables.MAX_CELLS:
        raise Unreadable("The file is too large: its tables have too many cells.")
    return [[row.get(at, "") for at in range(width)] for row in rows]


def _starts_line(text: NavigableString) -> bool:
    """Whether a text is the first in its block or its line."""
    node: PageElement | None = text
    while node is not None:
        before = node.previous_sibling
        while isinstance(before, NavigableString) and not before.strip():
            before = before.previous_sibling
        if before is not None:
            return isinstance(before, Tag) and before.name in ("br", *html_repair.BLOCKS)
        node = node.parent
        if isinstance(node, Tag) and node.name in html_repair.BLOCKS:
            return True
    return True


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name) or "")
    return min(int(value), _MAX_SPAN) if value.isascii() and value.isdigit() else 1
