"""Copies the headers and footers of a Word file into its text, each once."""

from collections.abc import Callable, Mapping
from typing import Any
from zipfile import ZipFile

import attrs

from gateway_documents.child.office import zip_parts
from gateway_documents.child.word.word_runs import MAIN, TEXT_PATH, text_of

Element = Any
# A header or footer with a page number and fewer other letters is only that.
_MIN_LETTERS = 11


def insert_headers(
    root: Element, name: str, archive: ZipFile, parsed: Callable[[str], Element | None]
) -> None:
    """Copy the headers of each section before its text, and its footers behind it.

    One that an earlier section has, too, is left out. `parsed` returns the root of a part.
    """
    body = root.find(f"{MAIN}body")
    copies = _Copies(zip_parts.relations(archive, name), parsed)
    for first, last, section in _sections(body) if body is not None else ():
        for block in copies.blocks_of(section, "headerReference"):
            first.addprevious(block)
        after = copies.blocks_of(section, "footerReference")
        for block in after if last is section else reversed(after):
            last.addprevious(block) if last is section else last.addnext(block)


def _sections(body: Element) -> list[tuple[Element, Element, Element]]:
    """Return the first and the last block of each section, and its properties."""
    found = []
    first = None
    for block in body:
        first = block if first is None else first
        section = next(block.iter(f"{MAIN}sectPr"), None)
        if section is not None:
            found.append((first, block, section))
            first = None
    return found


@attrs.define
class _Copies:
    """Copies each header and footer once, by its part and by its text."""

    _links: Mapping[str, str]
    _parsed: Callable[[str], Element | None]
    _parts: set[str] = attrs.field(factory=set, init=False)
    _texts: set[str] = attrs.field(factory=set, init=False)

    def blocks_of(self, section: Element, kind: str) -> list[Element]:
        """Return the blocks of a section's headers or footers that no earlier section has."""
        blocks = []
        for reference in section.findall(f"{MAIN}{kind}"):
            link = next((value for key, value in reference.items() if key.endswith("}id")), "")
            part = self._links.get(link, "")
            if part not in self._parts:
                self._parts.add(part)
                blocks += self._copy(self._parsed(part))
        return blocks

    def _copy(self, root: Element | None) -> list[Element]:
        if root is None or not _is_worth_it(root) or text_of(root) in self._texts:
            return []
        self._texts.add(text_of(root))
        _cut_links(root)
        return list(root)


def _is_worth_it(root: Element) -> bool:
    text = text_of(root) or "".join(art.get("string") or "" for art in root.iter(TEXT_PATH))
    codes = "".join(code.text or "" for code in root.iter(f"{MAIN}instrText"))
    codes += "".join(field.get(f"{MAIN}instr") or "" for field in root.iter(f"{MAIN}fldSimple"))
    letters = sum(map(str.isalpha, text))
    return bool(text) and ("PAGE" not in codes or letters >= _MIN_LETTERS)


def _cut_links(root: Element) -> None:
    """Remove what belongs to the relations of the header's own part."""
    for drawing in list(root.iter(f"{MAIN}drawing", f"{MAIN}pict")):
        if not text_of(drawing) and next(drawing.iter(TEXT_PATH), None) is None:
            drawing.getparent().remove(drawing)
    for link in root.iter(f"{MAIN}hyperlink"):
        link.attrib.clear()
