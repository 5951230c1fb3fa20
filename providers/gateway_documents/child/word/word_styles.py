"""The styles of a Word file: which text they hide, and which paragraphs are headings."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from lxml import etree

from gateway_documents.child.word.word_runs import MAIN, value_of, vanish

Element = Any
Styles = Mapping[str, Element]
"""The styles by their id."""

# Word names its styles in English in every language, other programs in their own. Words of the
# user interfaces of Word and LibreOffice.
_TITLES = (
    *("title", "titel", "titre", "título", "titolo", "tytuł", "tittel", "otsikko", "název"),
    *("cím", "başlık", "titlu", "naslov", "τίτλος", "название", "заглавие", "назва"),  # noqa: RUF001
    *("标题", "標題", "表題", "제목"),
)
_HEADINGS = (
    *("heading", "überschrift", "titre", "título", "titolo", "kop", "rubrik", "overskrift"),
    *("nagłówek", "nadpis", "otsikko", "címsor", "başlık", "titlu", "naslov"),  # noqa: RUF001
    *("επικεφαλίδα", "заголовок", "标题", "標題", "見出し", "제목"),
)
MAX_CHAIN = 50
"""A style and those that it is based on; Word's own are up to five."""
_LEVEL = re.compile(r"(.+?)\s*([1-9])")


def styles_of(root: Element | None) -> Styles:
    """Return the styles in a part."""
    found = () if root is None else root.iter(f"{MAIN}style")
    return {name: style for style in found if (name := style.get(f"{MAIN}styleId"))}


def hiding(styles: Styles) -> set[str]:
    """Return the styles that hide text, also by the style that they are based on."""
    hides: dict[str, bool] = {}
    for name in styles:
        below: list[str] = []
        at, own = name, None
        while own is None and at in styles and at not in hides:
            below.append(at)
            # Of a circle, no style hides text.
            hides[at] = False
            own = vanish(styles[at].find(f"{MAIN}rPr"))
            at = value_of(styles[at], "basedOn") or ""
        hides.update(dict.fromkeys(below, hides.get(at, False) if own is None else own))
    return {name for name in styles if hides[name]}


def chain(name: str | None, styles: Styles) -> Iterator[Element]:
    """Yield a style and those that it is based on, up to a number that no real file has."""
    for _ in range(MAX_CHAIN):
        if name is None or name not in styles:
            return
        yield styles[name]
        name = value_of(styles[name], "basedOn")


def name_headings(styles: Styles) -> None:
    """Give an outline level to styles that are headings by their name in some language."""
    for style in styles.values():
        level = level_of(value_of(style, "name") or "")
        if level is not None and style.get(f"{MAIN}type", "paragraph") == "paragraph":
            _set_level(style, level)


def head_paragraphs(root: Element, styles: Styles) -> None:
    """Give an outline level to paragraphs with the id of a heading's style that does not exist."""
    for paragraph in root.iter(f"{MAIN}p"):
        name = value_of(paragraph, "pPr/pStyle")
        level = level_of(name) if name and name not in styles else None
        if level is not None:
            _set_level(paragraph, level)


@lru_cache(maxsize=1024)
def level_of(name: str) -> int | None:
    """Return the level of a heading by the name or the id of its style, from 0."""
    name = name.strip().lower()
    if _is_one_of(name, _TITLES):
        return 0
    found = _LEVEL.fullmatch(name)
    return int(found[2]) - 1 if found and _is_one_of(found[1], _HEADINGS) else None


def _is_one_of(name: str, words: tuple[str, ...]) -> bool:
    # Ids have no letters outside ASCII.
    return name in words or (name.isascii() and name in map(_as_id, words) and name != "")


def _as_id(word: str) -> str:
    return "".join(filter(str.isascii, word))


def _set_level(holder: Element, level: int) -> None:
    properties = holder.find(f"{MAIN}pPr")
    if properties is None:
        properties = etree.Element(f"{MAIN}pPr")
        holder.insert(0 if holder.tag == f"{MAIN}p" else len(holder), properties)
    if properties.find(f"{MAIN}outlineLvl") is None:
        etree.SubElement(properties, f"{MAIN}outlineLvl").set(f"{MAIN}val", str(level))
