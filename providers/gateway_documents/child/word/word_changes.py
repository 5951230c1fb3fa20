"""Shows a part of a Word file as Word does: changes accepted, wrappers removed from their content.

anydoc finds rows, cells and paragraphs in few of the wrappers that may be around them.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from gateway_documents.child.word.word_runs import MAIN

# lxml has no public name for it.
Element = Any
_MARKUP = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_ALTERNATIVES = f"{_MARKUP}AlternateContent"
# The names of extensions that Word knows begin so.
_KNOWN = ("http://schemas.microsoft.com/", "http://schemas.openxmlformats.org/")
_WRAPPERS = frozenset(
    f"{MAIN}{name}"
    for name in ("sdt", "sdtContent", "customXml", "smartTag", "ins", "moveTo", "dir", "bdo")
)
# Properties of a wrapper, and formats before a change.
_PROPERTIES = frozenset(
    f"{MAIN}{name}"
    for name in (
        *("sdtPr", "sdtEndPr", "customXmlPr", "smartTagPr"),
        *("pPrChange", "rPrChange", "sectPrChange", "tblPrChange", "tblGridChange"),
        *("trPrChange", "tcPrChange", "tblPrExChange", "numberingChange"),
    )
)
_DELETED = frozenset((f"{MAIN}del", f"{MAIN}moveFrom"))
_PARAGRAPH, _CELL, _ROW, _TABLE = (f"{MAIN}{name}" for name in ("p", "tc", "tr", "tbl"))
_MARK, _SECTION = f"{MAIN}pPr", f"{MAIN}sectPr"
_DELETED_MARKS = tuple(f"{MAIN}rPr/{name}" for name in _DELETED)
# Between paragraphs, without text.
_POINTS = ("bookmarkStart", "bookmarkEnd", "proofErr", "permStart", "permEnd")
_RANGES = ("RangeStart", "RangeEnd")


def accept(root: Element) -> None:
    """Remove deleted and moved text, then the wrappers around what stays.

    A paragraph whose mark is deleted is joined with the next one, as in Word.
    """
    _remove(root.iter(*_PROPERTIES))
    for change in list(root.iter(*_DELETED)):
        _delete(change)
    _remove([mark.getparent().getparent() for mark in root.iter(f"{MAIN}cellDel")])
    for alternatives in list(root.iter(_ALTERNATIVES)):
        _choose(alternatives)
    for wrapper in list(root.iter(*_WRAPPERS)):
        if _is_around_content(wrapper):
            _replace(wrapper, list(wrapper))
    _remove([row for row in root.iter(_ROW) if row.find(_CELL) is None])
    _remove([table for table in root.iter(_TABLE) if table.find(_ROW) is None])
    _join_paragraphs(root)


def _remove(elements: Iterable[Element]) -> None:
    for element in list(elements):
        if (parent := element.getparent()) is not None:
            parent.remove(element)


def _delete(change: Element) -> None:
    """Remove deleted content, or the row whose properties say so; keep a paragraph's mark."""
    place = change.getparent()
    if place is None or place.tag == f"{MAIN}rPr":
        return
    if place.tag == f"{MAIN}trPr":
        _remove([place.getparent()])
    else:
        _remove([change])


def _choose(alternatives: Element) -> None:
    """Put the first content that Word can show in the place of alternatives.

    Inside of a run they are drawings, for which anydoc decides.
    """
    parent = alternatives.getparent()
    if parent is None or parent.tag == f"{MAIN}r":
        return
    choices = alternatives.findall(f"{_MARKUP}Choice")
    chosen = next(filter(_is_known, choices), alternatives.find(f"{_MARKUP}Fallback"))
    _replace(alternatives, [] if chosen is None else list(chosen))


def _is_known(choice: Element) -> bool:
    prefixes = (choice.get("Requires") or "").split()
    return all((choice.nsmap.get(prefix) or "").startswith(_KNOWN) for prefix in prefixes)


def _is_around_content(wrapper: Element) -> bool:
    """Whether it is not a mark in properties, such as that of an inserted row."""
    return wrapper.getparent() is not None and not wrapper.getparent().tag.endswith("Pr")


def _replace(wrapper: Element, content: list[Element]) -> None:
    for child in content:
        wrapper.addprevious(child)
    wrapper.getparent().remove(wrapper)


def _join_paragraphs(root: Element) -> None:
    """Put the content of paragraphs whose mark is deleted before that of the next paragraph."""
    paragraphs = [
        properties.getparent()
        for properties in root.iter(_MARK)
        if any(properties.find(path) is not None for path in _DELETED_MARKS)
    ]
    parents = dict.fromkeys(paragraph.getparent() for paragraph in paragraphs)
    for parent in parents:
        if parent is not None:
            _join_within(parent, set(paragraphs))


def _join_within(parent: Element, without_mark: AbstractSet[Element]) -> None:
    open_: list[Element] = []
    left = sum(1 for _ in parent.iterchildren(_PARAGRAPH))
    for child in list(parent):
        if child in without_mark:
            open_.append(child)
        elif child.tag == _PARAGRAPH:
            _put_before(child, open_)
            left -= len(open_)
            open_ = []
        elif not _is_point(child):
            left -= _close(open_, left)
            open_ = []
    _close(open_, left)


def _put_before(last: Element, paragraphs: Sequence[Element]) -> None:
    """Move the content of paragraphs to the beginning of the last one."""
    at = 1 if last.find(_MARK) is not None else 0
    last[at:at] = [child for paragraph in paragraphs for child in paragraph if child.tag != _MARK]
    _remove(paragraphs)


def _close(paragraphs: Sequence[Element], left: int) -> int:
    """Join paragraphs with none behind them, and return how many of the `left` ones are gone.

    An empty one goes too, unless it is the only one: a cell needs one.
    """
    if not paragraphs:
        return 0
    last = paragraphs[-1]
    _put_before(last, paragraphs[:-1])
    gone = len(paragraphs) - 1
    if gone + 1 < left and next(last.iter(f"{MAIN}r"), None) is None:
        _remove([last])
        gone += 1
    return gone


def _is_point(element: Element) -> bool:
    """Whether it is between paragraphs without text, such as a bookmark."""
    name = str(element.tag).removeprefix(MAIN)
    return not isinstance(element.tag, str) or name in _POINTS or name.endswith(_RANGES)
