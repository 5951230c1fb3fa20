"""Copies the headers and footers of a Word file into its text, each once."""

from collections.abc import Callable, Mapping
from typing import Any
from zipfile import ZipFile

from gateway_documents.child import zip_parts
from gateway_documents.child.word_runs import MAIN, TEXT_PATH, text_of

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
    links = zip_parts.relations(archive, name)
    seen: set[str] = set()
    for first, last, section in _sections(body) if body is not None else ():
        for block in _blocks_of(section, "headerReference", links, parsed, seen):
            first.addprevious(block)
        after = _blocks_of(section, "footerReference", links, parsed, seen)
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


def _blocks_of(
    section: Element,
    kind: str,
    links: Mapping[str, str],
    parsed: Callable[[str], Element | None],
    seen: set[str],
) -> list[Element]:
    blocks = []
    for reference in section.findall(f"{MAIN}{kind}"):
        link = next((value for key, value in reference.items() if key.endswith("}id")), "")
        root = parsed(links.get(link, ""))
        if root is not None and _is_worth_it(root) and text_of(root) not in seen:
            seen.add(text_of(root))
            _cut_links(root)
            blocks += list(root)
    return blocks


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
