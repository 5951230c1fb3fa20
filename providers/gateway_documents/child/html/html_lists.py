"""Puts what is in a list but in no item into its items, where browsers show it."""

from bs4 import BeautifulSoup
from bs4.element import NavigableString, PageElement, Tag

LISTS = ("ul", "ol")
# Their own structure, which may have lists of its own.
_WHOLE = ("table", "dl", "select")


def repair(soup: BeautifulSoup, lists: list[Tag]) -> None:
    """Repair the lists of a page.

    Editors of mails and Word write a list into a list; it belongs to the item before.
    """
    for one in lists:
        if any(_is_stray(child) for child in one.children):
            _repair(soup, one)


def _is_stray(child: PageElement) -> bool:
    if isinstance(child, Tag):
        return child.name not in ("li", "br")
    return bool(str(child).strip())


def _repair(soup: BeautifulSoup, outer: Tag) -> None:
    _open_wrappers(outer)
    if all(isinstance(child, Tag) and child.name in LISTS for child in _content(outer)):
        # Indented twice or more, without an item of its own.
        outer.name = "div"
        return
    content = [child.extract() for child in list(outer.children)]
    item: Tag | None = None
    for child in content:
        if isinstance(child, Tag) and child.name == "li":
            item = child
        elif _is_stray(child) and item is not None:
            item.append(child if isinstance(child, Tag) else _block(soup, child))
            continue
        elif _is_stray(child) and not (isinstance(child, Tag) and child.name in LISTS):
            outer.insert_before(child)
            continue
        elif _is_stray(child):
            item = soup.new_tag("li")
            item.append(child)
            child = item  # noqa: PLW2901
        outer.append(child)


def _content(outer: Tag) -> list[PageElement]:
    return [child for child in outer.children if isinstance(child, Tag) or str(child).strip()]


def _open_wrappers(outer: Tag) -> None:
    """Replace wrappers that are around items or lists by their content."""
    wrappers = [child for child in outer.children if isinstance(child, Tag)]
    while wrappers:
        child = wrappers.pop()
        if child.name not in ("li", *LISTS, *_WHOLE) and child.find(("li", *LISTS)):
            wrappers += [inner for inner in child.children if isinstance(inner, Tag)]
            child.unwrap()


def _block(soup: BeautifulSoup, text: PageElement) -> Tag:
    block = soup.new_tag("div")
    block.append(NavigableString(str(text)))
    return block
