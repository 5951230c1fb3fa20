"""Prepares OpenDocument files: without hidden parts, with what the parsers drop written out."""

import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from lxml import etree

from gateway_documents.child.office import zip_parts
from gateway_documents.child.raised_digits import LOWERED, RAISED, shifted
from gateway_documents.child.word.word_styles import MAX_CHAIN, level_of

# lxml has no public name for it.
Element = Any
_CONTENT, _STYLES = "content.xml", "styles.xml"
# A tree takes several times as much memory; a larger part is read as it is.
_MAX_BYTES = 20_000_000
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
# The family and the attribute of the styles of elements that styles can hide.
_HIDEABLE = {
    f"{_TEXT}span": ("text", f"{_TEXT}style-name"),
    f"{_TEXT}p": ("paragraph", f"{_TEXT}style-name"),
    f"{_TEXT}h": ("paragraph", f"{_TEXT}style-name"),
}
_SHAPES = ("custom-shape", "rect", "ellipse", "circle", "polygon", "path", "line", "connector")
# Types of cells whose number calamine reads without its format.
_FORMATTED = ("float", "percentage", "currency", "time")
# A header or footer with a page number and fewer other letters is only that.
_MIN_LETTERS = 11
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_HIDDEN_TEXT = "Hidden text was left out."
_HIDDEN_CELLS = "Hidden rows and columns were left out."
_COMMENTS = "Comments were left out."


def prepared(data: bytes) -> tuple[bytes, Sequence[str]]:
    """Return a file whose visible content the parsers read, and sentences about the rest."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if not 0 < sizes.get(_CONTENT, 0) <= _MAX_BYTES:
            return data, ()
        root, is_whole = zip_parts.parsed(archive.read(_CONTENT))
        if root is None:
            return data, ()
        styles = zip_parts.parsed(archive.read(_STYLES))[0] if _STYLES in sizes else None
        document = _Document(root, styles)
        document.rewrite()
        if not is_whole:
            document.notes[zip_parts.DAMAGED_NOTE] = None
        content = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        return zip_parts.with_parts(archive, {_CONTENT: content}), tuple(document.notes)


def _get(element: Element, name: str) -> str:
    """Return an attribute by its name without the namespace."""
    end = f"}}{name}"
    return next((value for key, value in element.items() if key.endswith(end)), "")


def _set(element: Element, name: str, value: str) -> None:
    key = next((key for key in element.attrib if key.endswith(f"}}{name}")), None)
    if key is not None:
        element.set(key, value)


def _remove(element: Element) -> None:
    """Remove an element, but not the text behind it."""
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    if element.tail and before is not None:
        before.tail = (before.tail or "") + element.tail
    elif element.tail:
        parent.text = (parent.text or "") + element.tail
    parent.remove(element)


def _words(element: Element) -> str:
    return "".join(element.itertext()).strip()


@attrs.define
class _Document:
    root: Element
    styles: Element | None
    notes: dict[str, None] = attrs.field(factory=dict, init=False)
    """Sentences in their order, each once."""
    _by_name: dict[tuple[str, str], Element] = attrs.field(factory=dict, init=False)
    _hiding: dict[tuple[str, str], bool] = attrs.field(factory=dict, init=False)
    _levels: dict[str, str] = attrs.field(factory=dict, init=False)

    def rewrite(self) -> None:
        """Change the content in place."""
        for part in (self.styles, self.root):
            for style in () if part is None else part.iter("{*}style"):
                self._by_name[_get(style, "family"), _get(style, "name")] = style
        self._remove_hidden()
        for annotation in list(self.root.iter("{*}annotation")):
            self._remove_with(annotation, _COMMENTS)
        self._rewrite_text()
        for table in self.root.iter(f"{_TABLE}table"):
            self._remove_columns(table)
        for cell in self.root.iter(f"{_TABLE}table-cell"):
            _show_as_text(cell)
        self._insert_headers()

    def _rewrite_text(self) -> None:
        for ruby in list(self.root.iter(f"{_TEXT}ruby")):
            _write_out_ruby(ruby)
        for paragraph in list(self.root.iter(f"{_TEXT}p")):
            self._head(paragraph)
        for span in self.root.iter(f"{_TEXT}span"):
            self._shift(span)
        for shape in reversed(list(self.root.iter(*(f"{{*}}{name}" for name in _SHAPES)))):
            _move_out(shape)
        for numbered in list(self.root.iter(f"{_TEXT}numbered-paragraph")):
            for paragraph in list(numbered):
                numbered.addprevious(paragraph)
            _remove(numbered)

    def _chain(self, family: str, name: str) -> Iterator[Element]:
        for _ in range(MAX_CHAIN):
            style = self._by_name.get((family, name))
            if style is None:
                return
            yield style
            name = _get(style, "parent-style-name")

    def _remove_with(self, element: Element, note: str) -> None:
        if _words(element):
            self.notes[note] = None
        _remove(element)

    def _remove_hidden(self) -> None:
        for name, (family, style_name) in _HIDEABLE.items():
            for element in list(self.root.iter(name)):
                style = element.get(style_name)
                if style and self._is_hidden(family, style):
                    self._remove_with(element, _HIDDEN_TEXT)
        for section in list(self.root.iter(f"{_TEXT}section")):
            if _get(section, "display") == "none":
                self._remove_with(section, _HIDDEN_TEXT)
        for text in list(self.root.iter(f"{_TEXT}hidden-text")):
            if _get(text, "is-hidden") == "true":
                self._remove_with(text, _HIDDEN_TEXT)
        for row in list(self.root.iter(f"{_TABLE}table-row")):
            if row.get(f"{_TABLE}visibility") in ("collapse", "filter"):
                self._remove_with(row, _HIDDEN_CELLS)
        self._remove_slides()

    def _remove_slides(self) -> None:
        pages = list(self.root.iter("{*}page"))
        hidden = [one for one in pages if self._has(one, "drawing-page", "visibility", "hidden")]
        for page in hidden:
            _remove(page)
        if hidden:
            self.notes[f"Hidden slides, left out: {len(hidden):,}."] = None

    def _is_hidden(self, family: str, name: str) -> bool:
        if (family, name) not in self._hiding:
            shown = (_get(one, "display") for style in self._chain(family, name) for one in style)
            self._hiding[family, name] = next(filter(None, shown), "") == "none"
        return self._hiding[family, name]

    def _has(self, element: Element, family: str, name: str, value: str) -> bool:
        for style in self._chain(family, _get(element, "style-name")):
            found = next((_get(one, name) for one in style if _get(one, name)), "")
            if found:
                return found == value
        return False

    def _head(self, paragraph: Element) -> None:
        name = paragraph.get(f"{_TEXT}style-name", "")
        if name not in self._levels:
            self._levels[name] = self._level(name)
        if level := self._levels[name]:
            paragraph.tag = f"{_TEXT}h"
            paragraph.set(f"{_TEXT}outline-level", level)

    def _level(self, name: str) -> str:
        """Return the level of the headings of a style; empty for other paragraphs."""
        names = [name]
        for style in self._chain("paragraph", name):
            outline = _get(style, "default-outline-level")
            if outline.isdecimal():
                return outline
            names.append(_get(style, "display-name") or _get(style, "name"))
        levels = (level_of(one.replace("_20_", " ")) for one in names)
        return next((str(level + 1) for level in levels if level is not None), "")

    def _shift(self, span: Element) -> None:
        place = next(
            (
                _get(one, "text-position")
                for style in self._chain("text", _get(span, "style-name"))
                for one in style
                if _get(one, "text-position")
            ),
            "",
        )
        table = LOWERED if place.startswith(("sub", "-")) else RAISED
        if place and not place.startswith("0") and not len(span):
            span.text = shifted(span.text or "", table)

    def _remove_columns(self, table: Element) -> None:
        hidden: set[int] = set()
        at = 0
        for column in table.iter(f"{_TABLE}table-column"):
            count = _repeats(column, "columns")
            if _get(column, "visibility") in ("collapse", "filter"):
                hidden.update(range(at, at + min(count, 16_384)))
            at += count
        for row in table.iter(f"{_TABLE}table-row") if hidden else ():
            at = 0
            for cell in list(row):
                count = _repeats(cell, "columns")
                gone = sum(place in hidden for place in range(at, at + min(count, 16_384)))
                at += count
                if gone == count:
                    self._remove_with(cell, _HIDDEN_CELLS)
                elif gone:
                    _set(cell, "number-columns-repeated", str(count - gone))

    def _insert_headers(self) -> None:
        """Copy the paragraphs of headers before the text, and those of footers behind it."""
        body = next(self.root.iter(f"{_OFFICE}text"), None)
        if body is None or self.styles is None:
            return
        seen: set[str] = set()
        for name in ("header", "footer"):
            blocks = []
            for area in self.styles.iter(f"{{*}}{name}"):
                words = _words(area)
                is_number = next(area.iter(f"{_TEXT}page-number"), None) is not None
                if words in seen or (is_number and sum(map(str.isalpha, words)) < _MIN_LETTERS):
                    continue
                seen.add(words)
                blocks += list(area)
            for block in reversed(blocks) if name == "header" else blocks:
                body.insert(0, block) if name == "header" else body.append(block)


def _repeats(element: Element, kind: str) -> int:
    number = _get(element, f"number-{kind}-repeated")
    return int(number) if _COUNT.fullmatch(number) else 1


def _show_as_text(cell: Element) -> None:
    """Keep the text of a number, which is in its format, instead of its value."""
    kind = cell.get(f"{_OFFICE}value-type", "")
    if kind not in ("", *_FORMATTED) or cell.find(f"{_TEXT}p") is None:
        return
    for key in [key for key in cell.attrib if key.startswith(_OFFICE)]:
        del cell.attrib[key]
    cell.set(f"{_OFFICE}value-type", "string")


def _write_out_ruby(ruby: Element) -> None:
    reading = ruby.find(f"{_TEXT}ruby-text")
    if reading is not None and _words(reading):
        reading.text = f" ({_words(reading)})"


def _move_out(shape: Element) -> None:
    """Put the paragraphs of a shape behind that of its anchor, to which they would be glued."""
    anchor = next(shape.iterancestors(f"{_TEXT}p"), None)
    if anchor is None:
        return
    for paragraph in reversed(shape.findall(f"{_TEXT}p")):
        anchor.addnext(paragraph)
