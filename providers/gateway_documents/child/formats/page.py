"""HTML pages, by markdownify: without hidden elements, and with spans of tables filled in."""

import re
from collections.abc import Mapping

import markdownify
from bs4 import BeautifulSoup
from bs4.element import PreformattedString, Tag

from gateway_documents.child import tables
from gateway_documents.child.charsets import decode
from gateway_documents.child.formats.text import guess_note
from gateway_documents.child.parsed import Parsed
from gateway_documents.child.raised_digits import LOWERED, RAISED
from gateway_documents.errors import NO_TEXT, Unreadable

_NEVER_SHOWN = ("script", "style", "template", "noscript", "head", "datalist", "object", "svg")
_HIDDEN_STYLE = re.compile(
    r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)\b", re.IGNORECASE
)
# Fields of forms, which browsers draw apart.
_FIELDS = ("option", "button", "label", "textarea", "input", "select", "legend", "dt", "dd")
_IMAGE = re.compile(r"!\[\]\([^)]*\)")
_BREAKS = re.compile(r"[\t\n\r]+")
_SPACES = "".join(map(chr, range(0x21)))
_BLANK_LINES = re.compile(r"\n{3,}")
# More columns or rows of one cell are a mistake or an attack; browsers stop at 1,000.
_MAX_SPAN = 1000


def parse(data: bytes) -> Parsed:
    """Return a page as Markdown."""
    decoded = decode(data, may_declare=True)
    soup = BeautifulSoup(decoded.text, "lxml")
    _prepare(soup)
    try:
        markdown = _Converter().convert_soup(soup)
    except RecursionError:
        # Nested too deeply for its structure; the words are still there.
        markdown = soup.get_text("\n", strip=True)
    text = _BLANK_LINES.sub("\n\n", markdown).strip()
    if not _IMAGE.sub("", text).strip():
        raise Unreadable(NO_TEXT)
    return Parsed([text], guess_note(decoded.guess))


def _prepare(soup: BeautifulSoup) -> None:
    for comment in soup.find_all(string=lambda text: isinstance(text, PreformattedString)):
        comment.extract()
    for tag in soup.find_all(_is_hidden):
        tag.decompose()
    for tag in soup.find_all(_FIELDS):
        if tag.name == "input":
            tag.replace_with(f" {_value_of(tag)} ")
        else:
            tag.insert_before(" ")
            tag.insert_after(" ")


def _is_hidden(tag: Tag) -> bool:
    return (
        tag.name in _NEVER_SHOWN
        or tag.has_attr("hidden")
        or bool(_HIDDEN_STYLE.search(str(tag.get("style") or "")))
        or (tag.name == "img" and str(tag.get("src") or "").startswith("data:"))
    )


def _value_of(field: Tag) -> str:
    kind = str(field.get("type") or "text").lower()
    if kind in ("checkbox", "radio"):
        return "[x]" if field.has_attr("checked") else "[ ]"
    return "" if kind in ("hidden", "password") else str(field.get("value") or "")


class _Converter(markdownify.MarkdownConverter):
    """markdownify with links that a reader can follow and tables whose rows are equally long."""

    def __init__(self) -> None:
        super().__init__(heading_style=markdownify.ATX, bullets="-")
        # By `id` of a cell's tag. Children are converted before their table.
        self._cells: dict[int, str] = {}

    def convert_a(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Return a link, or its text if it leads to a script or within the page."""
        # Browsers ignore the line breaks and the outer spaces.
        target = _BREAKS.sub("", str(el.get("href") or "")).strip(_SPACES)
        scheme = target.partition(":")[0].lower()
        if target.startswith("#") or scheme in ("javascript", "vbscript", "data"):
            return text
        el["href"] = target.translate({32: "%20", 40: "%28", 41: "%29"})
        link: str = super().convert_a(el, text, parent_tags)  # type: ignore[misc]
        return link

    def convert_sup(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return raised digits as characters, and other text as it is."""
        return _shifted(text, RAISED)

    def convert_sub(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return lowered digits as characters, and other text as it is."""
        return _shifted(text, LOWERED)

    def convert_table(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return a table; one inside another's cell becomes lines of that cell."""
        rows = _grid(el, self._cells)
        if {"td", "th"} & parent_tags:
            return "\n" + "\n".join(" / ".join(filter(None, row)) for row in rows) + "\n"
        caption = el.find("caption")
        title = f"{caption.get_text(' ', strip=True)}\n\n" if caption else ""
        return f"\n\n{title}{tables.to_markdown(rows, keep_columns=True)}\n\n"

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Keep a cell's text for its table."""
        self._cells[id(el)] = tables.cell_text(text)
        return text

    convert_th = convert_td

    def convert_tr(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        """Return the text of a row, which only matters outside a table."""
        return text


def _grid(table: Tag, texts: Mapping[int, str]) -> list[list[str]]:
    """Return a table's cells by row and column; a span leaves the cells it covers empty."""
    found = [row for row in table.find_all("tr") if row.find_parent("table") is table]
    rows: list[dict[int, str]] = [{} for _ in found]
    for at, row in enumerate(found):
        column = 0
        for cell in row.find_all(("td", "th"), recursive=False):
            while column in rows[at]:
                column += 1
            right, below = _span(cell, "colspan"), min(_span(cell, "rowspan"), len(found) - at)
            for covered in rows[at : at + below]:
                covered.update(dict.fromkeys(range(column, column + right), ""))
            rows[at][column] = texts.get(id(cell), "")
            column += right
    width = max((max(row, default=-1) for row in rows), default=-1) + 1
    if width * len(rows) > tables.MAX_CELLS:
        raise Unreadable("The file is too large: its tables have too many cells.")
    return [[row.get(at, "") for at in range(width)] for row in rows]


def _shifted(text: str, table: Mapping[int, int | str]) -> str:
    return text.translate(table) if all(ord(char) in table for char in text) else text


def _span(cell: Tag, name: str) -> int:
    value = str(cell.get(name) or "")
    return min(max(int(value), 1), _MAX_SPAN) if value.isascii() and value.isdigit() else 1
