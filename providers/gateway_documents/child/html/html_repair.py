"""Brings an HTML page into the shape that browsers show, before it becomes Markdown."""

from collections.abc import Collection, Iterable, Mapping

from bs4 import BeautifulSoup
from bs4.element import PageElement, PreformattedString, Tag

from gateway_documents.child.html import html_lists, style_sheets

# Never shown, or shown only by browsers without the feature.
_NEVER_SHOWN = (
    *("script", "style", "template", "noscript", "title", "datalist", "object", "svg"),
    *("noembed", "canvas", "video", "audio", "iframe", "rp"),
)
# Fields of forms, which browsers draw apart.
_FIELDS = ("option", "optgroup", "button", "label", "textarea", "input", "select", "legend")
# Blocks that the converter takes for inline text, and old names of `pre`.
_RENAMED = {
    **dict.fromkeys(
        ("details", "summary", "dialog", "fieldset", "address", "main", "header", "footer", "nav"),
        "div",
    ),
    **dict.fromkeys(("aside", "figure", "figcaption", "center", "form", "hgroup", "search"), "div"),
    **dict.fromkeys(("menu", "dir"), "ul"),
    # lxml leaves the start of a page without a body tag in the head.
    "head": "div",
    **dict.fromkeys(("xmp", "listing", "plaintext"), "pre"),
}
_INLINE = ("a", "b", "strong", "i", "em", "u", "small", "label", "code", "mark", "time", "cite")
_LEAVES = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "div", "li", "dt", "dd")
BLOCKS = (
    *_LEAVES,
    *("body", "section", "article", "blockquote", "pre", "ul", "ol", "dl", "table", "hr"),
)
_SECTIONS = ("thead", "tbody", "tfoot")
_CELLS = ("td", "th")
_CELL_ROLES = ("row", "cell", "gridcell", "columnheader", "rowheader")
_PARTS = {"table": (*_SECTIONS, "tr", "caption", "colgroup", "col"), "tr": _CELLS}


def repair(soup: BeautifulSoup) -> bool:
    """Leave out hidden elements, and move shown ones; return whether a style hid text."""
    hid_text = _leave_out_hidden(soup)
    # One walk: a search of the whole page for each kind of tag takes seconds.
    tags: dict[str, list[Tag]] = {}
    for tag in _tags_in(soup):
        tag.name = _RENAMED.get(tag.name, tag.name)
        tags.setdefault(tag.name, []).append(tag)
        if tag.get("role") in _CELL_ROLES:
            _part_block(tag)
    for table in tags.get("table", ()):
        _repair_table(soup, table)
    for tag in _of(tags, ("tr", *_CELLS)):
        if tag.name in ("tr", *_CELLS) and tag.find_parent("table") is None:
            # Browsers ignore such a tag.
            tag.insert_before(" ")
            tag.name = "span"
    html_lists.repair(soup, _of(tags, html_lists.LISTS))
    for item in _of(tags, ("li", "dt", "dd")):
        _repair_item(soup, item)
    for link in tags.get("a", ()):
        if link.has_attr("href"):
            _move_into_block(soup, link)
    for field in _of(tags, _FIELDS):
        _part_field(field)
    return hid_text


def _leave_out_hidden(soup: BeautifulSoup) -> bool:
    for text in list(soup.descendants):
        if isinstance(text, PreformattedString):
            text.extract()
    style = style_sheets.styled(_tags_in(soup))
    hid_text = any(
        part.get_text(strip=True)
        for part in style.hidden
        if not isinstance(part, Tag) or part.name not in _NEVER_SHOWN
    )
    for tag in (*style.hidden, *filter(_is_hidden, _tags_in(soup))):
        tag.decompose()
    for tag in style.blocks:
        _part_block(tag)
    return hid_text


def _tags_in(soup: BeautifulSoup) -> list[Tag]:
    return [part for part in soup.descendants if isinstance(part, Tag)]


def _of(tags: Mapping[str, list[Tag]], names: Iterable[str]) -> list[Tag]:
    return [tag for name in names for tag in tags.get(name, ())]


def children(tag: Tag, names: Collection[str]) -> list[Tag]:
    """Return the children with these names."""
    return [child for child in tag.children if isinstance(child, Tag) and child.name in names]


def rows_of(table: Tag) -> list[Tag]:
    """Return the rows of a repaired table as browsers order them."""
    head: list[Tag] = []
    body: list[Tag] = []
    foot: list[Tag] = []
    for part in children(table, (*_SECTIONS, "tr")):
        rows = [part] if part.name == "tr" else children(part, ("tr",))
        if part.name == "thead" and not head:
            head = rows
        elif part.name == "tfoot" and not foot:
            foot = rows
        else:
            body += rows
    return [*head, *body, *foot]


def _is_hidden(tag: Tag) -> bool:
    return (
        tag.name in _NEVER_SHOWN
        or tag.has_attr("hidden")
        or tag.has_attr("popover")
        or (tag.name == "dialog" and not tag.has_attr("open"))
        or (tag.name == "img" and str(tag.get("src") or "").startswith("data:"))
    )


def _repair_table(soup: BeautifulSoup, table: Tag) -> None:
    """Move content outside cells before the table, and cells outside rows into a row."""
    _repair_part(soup, table, table)
    for section in children(table, _SECTIONS):
        _repair_part(soup, table, section)
    rows = rows_of(table)
    for row in rows:
        _repair_part(soup, table, row)
    cells = [cell for row in rows for cell in children(row, _CELLS)]
    if len(cells) == 1 or table.get("role") in ("presentation", "none"):
        # A table for the layout only.
        parts = (*children(table, (*_SECTIONS, "caption")), *rows, *cells)
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
    if item.name == "li" and parent is not None and parent.name not in html_lists.LISTS:
        item.wrap(soup.new_tag("ul"))
    elif item.name != "li" and parent is not None and parent.name in ("dt", "dd"):
        # The tag before was not closed.
        parent.insert_after(item)


def _move_into_block(soup: BeautifulSoup, link: Tag) -> None:
    """Put a link that is around blocks into the first of them."""
    inside = [part for part in link.descendants if isinstance(part, Tag)]
    if not any(tag.name in BLOCKS for tag in inside):
        return
    blocks = [tag for tag in inside if tag.name in _LEAVES and tag.find(BLOCKS) is None]
    block = next((tag for tag in blocks if tag.get_text(strip=True)), None)
    if block is not None:
        inner = soup.new_tag("a", href=str(link["href"]))
        inner.extend(list(block.children))
        block.append(inner)
    link.unwrap()


def _part_block(tag: Tag) -> None:
    if tag.decomposed or tag.parent is None:
        return
    if tag.name == "span":
        tag.name = "div"
    elif tag.name in _INLINE:
        tag.insert_before(" ")
        tag.insert_after(" ")


def _part_field(field: Tag) -> None:
    if field.name == "input":
        field.replace_with(f" {_value_of(field)} ")
        return
    field.insert_before(" ")
    field.insert_after(" ")
    if field.name == "optgroup" and field.get("label"):
        field.insert(0, f"{field['label']} ")


def _value_of(field: Tag) -> str:
    kind = str(field.get("type") or "text").lower()
    if kind in ("checkbox", "radio"):
        return "[x]" if field.has_attr("checked") else "[ ]"
    return "" if kind in ("hidden", "password") else str(field.get("value") or "")
