"""Brings an HTML page into the shape that browsers show, before it becomes Markdown."""

from bs4 import BeautifulSoup
from bs4.element import PageElement, PreformattedString, Tag

from gateway_documents.child import style_sheets

# Never shown, or shown only by browsers without the feature.
_NEVER_SHOWN = (
    *("script", "style", "template", "noscript", "head", "datalist", "object", "svg"),
    *("canvas", "video", "audio", "iframe", "rp"),
)
# Fields of forms, which browsers draw apart.
_FIELDS = ("option", "button", "label", "textarea", "input", "select", "legend")
# Blocks that the converter takes for inline text, and old names of `pre`.
_RENAMED = {
    **dict.fromkeys(
        ("details", "summary", "dialog", "fieldset", "address", "main", "header", "footer", "nav"),
        "div",
    ),
    **dict.fromkeys(("aside", "figure", "figcaption", "center", "form", "hgroup", "search"), "div"),
    "menu": "ul",
    **dict.fromkeys(("xmp", "listing", "plaintext"), "pre"),
}
_LEAVES = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "li", "dt", "dd")
BLOCKS = (
    *_LEAVES,
    *("body", "section", "article", "blockquote", "pre", "ul", "ol", "dl", "table", "hr"),
)
_SECTIONS = ("thead", "tbody", "tfoot")
_CELLS = ("td", "th")
_PARTS = {"table": (*_SECTIONS, "tr", "caption", "colgroup", "col"), "tr": _CELLS}


def repair(soup: BeautifulSoup) -> bool:
    """Leave out hidden elements, and move shown ones; return whether a style hid text."""
    for comment in soup.find_all(string=lambda text: isinstance(text, PreformattedString)):
        comment.extract()
    hidden = style_sheets.hidden_parts(soup)
    hid_text = any(
        part.get_text(strip=True)
        for part in hidden
        if not isinstance(part, Tag) or part.name not in _NEVER_SHOWN
    )
    for tag in (*hidden, *soup.find_all(_is_hidden)):
        tag.decompose()
    for tag in soup.find_all(_RENAMED):
        tag.name = _RENAMED[tag.name]
    for table in soup.find_all("table"):
        _repair_table(soup, table)
    for tag in soup.find_all(("tr", *_CELLS)):
        if tag.find_parent("table") is None:
            # Browsers ignore such a tag.
            tag.insert_before(" ")
            tag.name = "span"
    for item in soup.find_all(("li", "dt", "dd")):
        _repair_item(soup, item)
    for link in soup.find_all("a", href=True):
        _move_into_block(soup, link)
    for field in soup.find_all(_FIELDS):
        _part_field(field)
    return hid_text


def rows_of(table: Tag) -> list[Tag]:
    """Return the rows of a repaired table as browsers order them."""
    rows: dict[str, list[Tag]] = {"thead": [], "tbody": [], "tfoot": []}
    for part in table.find_all((*_SECTIONS, "tr"), recursive=False):
        if part.name == "tr":
            rows["tbody"].append(part)
        else:
            rows[part.name] += part.find_all("tr", recursive=False)
    return [*rows["thead"], *rows["tbody"], *rows["tfoot"]]


def _is_hidden(tag: Tag) -> bool:
    return (
        tag.name in _NEVER_SHOWN
        or tag.has_attr("hidden")
        or (tag.name == "dialog" and not tag.has_attr("open"))
        or (tag.name == "img" and str(tag.get("src") or "").startswith("data:"))
    )


def _repair_table(soup: BeautifulSoup, table: Tag) -> None:
    """Move content outside cells before the table, and cells outside rows into a row."""
    _repair_part(soup, table, table)
    for section in table.find_all(_SECTIONS, recursive=False):
        _repair_part(soup, table, section)
    rows = rows_of(table)
    for row in rows:
        _repair_part(soup, table, row)
    cells = [cell for row in rows for cell in row.find_all(_CELLS, recursive=False)]
    if len(cells) == 1 or table.get("role") in ("presentation", "none"):
        # A table for the layout only.
        parts = (*table.find_all((*_SECTIONS, "caption"), recursive=False), *rows, *cells)
        for tag in (table, *parts):
            tag.name = "div"


def _repair_part(soup: BeautifulSoup, table: Tag, part: Tag) -> None:
    allowed = _PARTS["tr" if part.name == "tr" else "table"]
    row: Tag | None = None
    children: list[PageElement] = list(part.children)
    while children:
        child = children.pop(0)
        if isinstance(child, Tag) and child.name in allowed:
            row = None
        elif isinstance(child, Tag) and child.name in _CELLS:
            if row is None:
                row = soup.new_tag("tr")
                child.insert_before(row)
            row.append(child)
        elif isinstance(child, Tag) and child.name != "table" and child.find(("tr", *_CELLS)):
            children[:0] = list(child.children)
            child.unwrap()
        elif isinstance(child, Tag) or str(child).strip():
            table.insert_before(child)


def _repair_item(soup: BeautifulSoup, item: Tag) -> None:
    parent = item.parent
    if item.name == "li" and parent is not None and parent.name not in ("ul", "ol"):
        item.wrap(soup.new_tag("ul"))
    elif item.name != "li" and parent is not None and parent.name in ("dt", "dd"):
        # The tag before was not closed.
        parent.insert_after(item)


def _move_into_block(soup: BeautifulSoup, link: Tag) -> None:
    """Put a link that is around blocks into the first of them."""
    blocks = [tag for tag in link.find_all(_LEAVES) if tag.find(BLOCKS) is None]
    if link.find(BLOCKS) is None:
        return
    block = next((tag for tag in blocks if tag.get_text(strip=True)), None)
    if block is not None:
        inner = soup.new_tag("a", href=str(link["href"]))
        inner.extend(list(block.children))
        block.append(inner)
    link.unwrap()


def _part_field(field: Tag) -> None:
    if field.name == "input":
        field.replace_with(f" {_value_of(field)} ")
    else:
        field.insert_before(" ")
        field.insert_after(" ")


def _value_of(field: Tag) -> str:
    kind = str(field.get("type") or "text").lower()
    if kind in ("checkbox", "radio"):
        return "[x]" if field.has_attr("checked") else "[ ]"
    return "" if kind in ("hidden", "password") else str(field.get("value") or "")
