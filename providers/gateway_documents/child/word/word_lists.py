"""The list numbers of a Word file, as Word counts them."""

from typing import Any

import attrs
from lxml import etree

from gateway_documents.child.word import word_styles
from gateway_documents.child.word.word_runs import MAIN, value_of

Element = Any


@attrs.define
class Lists:
    """Finds out which list continues in a paragraph.

    anydoc counts each `w:num` apart and ignores the levels in styles. Word lets the lists of one
    definition continue each other, until one of them restarts.
    """

    _definitions: dict[str, str]
    """The definition of each list that counts as its definition says."""
    _restarting: set[str]
    """Lists that restart at their first paragraph."""
    _levels: dict[tuple[str, str], str]
    """The level of a definition that belongs to a style."""
    _current: dict[str, str] = attrs.field(factory=dict, init=False)

    @classmethod
    def of(cls, numbering: Element | None) -> "Lists":
        """Return the lists of a numbering part."""
        lists = [] if numbering is None else list(numbering.iter(f"{MAIN}num"))
        levels = [] if numbering is None else list(numbering.iter(f"{MAIN}lvl"))
        # A list with levels of its own is another definition.
        plain = [one for one in lists if one.find(f"{MAIN}lvlOverride/{MAIN}lvl") is None]
        return cls(
            {_id(one, "numId"): value_of(one, "abstractNumId") or "" for one in plain},
            {_id(one, "numId") for one in plain if one.find(f"{MAIN}lvlOverride") is not None},
            {
                (_id(level.getparent(), "abstractNumId"), style): _id(level, "ilvl")
                for level in levels
                if (style := value_of(level, "pStyle"))
            },
        )

    def write_into(self, root: Element, styles: word_styles.Styles) -> None:
        """Give each numbered paragraph its list and level."""
        for paragraph in root.iter(f"{MAIN}p") if self._definitions else ():
            number, level = self._place(paragraph, styles)
            definition = self._definitions.get(number or "")
            if number is None or definition is None:
                continue
            if number in self._restarting or definition not in self._current:
                self._restarting.discard(number)
                self._current[definition] = number
            _set_place(paragraph, self._current[definition], level)

    def _place(self, paragraph: Element, styles: word_styles.Styles) -> tuple[str | None, str]:
        own = paragraph.find(f"{MAIN}pPr")
        number, level = value_of(own, "numPr/numId"), value_of(own, "numPr/ilvl")
        for style in word_styles.chain(value_of(own, "pStyle"), styles):
            if number is not None:
                break
            number = value_of(style, "pPr/numPr/numId")
            linked = (self._definitions.get(number or "", ""), _id(style, "styleId"))
            level = level or self._levels.get(linked) or value_of(style, "pPr/numPr/ilvl")
        return number, level or "0"


def _id(element: Element, name: str) -> str:
    return element.get(f"{MAIN}{name}") or ""


def _set_place(paragraph: Element, number: str, level: str) -> None:
    properties = paragraph.find(f"{MAIN}pPr")
    place = properties.find(f"{MAIN}numPr")
    if place is None:
        place = etree.SubElement(properties, f"{MAIN}numPr")
    for child in list(place):
        place.remove(child)
    etree.SubElement(place, f"{MAIN}ilvl").set(f"{MAIN}val", level)
    etree.SubElement(place, f"{MAIN}numId").set(f"{MAIN}val", number)
