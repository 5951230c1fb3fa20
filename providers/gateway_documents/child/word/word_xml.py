"""Rewrites what anydoc drops or flattens in a Word file, before anydoc reads it."""

import io
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from lxml import etree

from gateway_documents.child.office import chart_xml, diagram_xml, zip_parts
from gateway_documents.child.office.slide_xml import drop_names
from gateway_documents.child.word import word_changes, word_runs, word_styles
from gateway_documents.child.word.word_headers import insert_headers
from gateway_documents.child.word.word_lists import Lists
from gateway_documents.child.word.word_runs import MAIN, text_of
from gateway_documents.errors import Unreadable

# lxml has no public name for it.
Element = Any
_STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
_STORIES = frozenset(("document", "footnotes", "endnotes", "comments", "hdr", "ftr"))
HIDDEN_NOTE = "Hidden text was left out."
_COMMENTS_NOTE = "Comments were left out."
# Places of files inside of a document.
_MAX_CHUNKS = 1_000


@attrs.frozen
class Prepared:
    """A .docx for anydoc, and what is left to do."""

    data: bytes
    notes: Sequence[str]
    chunks: Mapping[str, tuple[str, bytes]]
    """Files to be put into the text, by the mark in their places, with their names."""


def prepared(data: bytes) -> Prepared:
    """Return a .docx that shows what anydoc drops, and sentences about parts that are left out.

    Ruby, symbols, form fields and raised or lowered digits become characters, headers and footers
    paragraphs. Every part with text counts, whatever its name.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        document = _Document(archive)
        changed: dict[str, bytes] = {}
        for name in document.names:
            part = document.rewritten(name)
            if part is not None:
                changed[name] = part
        copy = zip_parts.with_parts(archive, changed)
        return Prepared(copy, tuple(document.notes), document.chunks)


@attrs.define
class _Document:
    archive: zipfile.ZipFile
    notes: dict[str, None] = attrs.field(factory=dict, init=False)
    """Sentences in their order, each once."""
    chunks: dict[str, tuple[str, bytes]] = attrs.field(factory=dict, init=False)
    names: Sequence[str] = attrs.field(init=False)
    # In marks, so that no text contains one.
    _secret: str = attrs.field(factory=lambda: os.urandom(8).hex(), init=False)
    _styles: word_styles.Styles = attrs.field(init=False)
    _hiding: set[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.names = [name for name in self.archive.namelist() if name.lower().endswith(".xml")]
        self._styles = {
            name: style
            for root in self._parts_of("styles")
            for name, style in word_styles.styles_of(root).items()
        }
        self._hiding = word_styles.hiding(self._styles)

    def rewritten(self, name: str) -> bytes | None:
        """Return a part as anydoc reads it best, or None to keep it."""
        root = self._parsed(name)
        if root is None:
            # anydoc refuses a document for such a part, and does without an empty one.
            return b""
        kind = root.tag.removeprefix(MAIN)
        if kind == "styles":
            word_styles.name_headings(word_styles.styles_of(root))
        elif kind in _STORIES:
            self._rewrite_story(root, name)
        elif zip_parts.kind_of(root) == "chartSpace":
            chart_xml.rewrite(root)
        elif zip_parts.kind_of(root) == "dataModel":
            diagram_xml.rewrite(root)
        else:
            return None
        part: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        return part

    def _rewrite_story(self, root: Element, name: str) -> None:
        if root.tag == f"{MAIN}document":
            word_styles.head_paragraphs(root, self._styles)
            self._mark_chunks(root, name)
            insert_headers(root, name, self.archive, self._parsed)
            Lists.of(next(self._parts_of("numbering"), None)).write_into(root, self._styles)
        elif root.tag == f"{MAIN}comments" and text_of(root):
            self.notes[_COMMENTS_NOTE] = None
        drop_names(root)
        if word_runs.rewrite(root, self._hiding):
            self.notes[HIDDEN_NOTE] = None

    def _mark_chunks(self, root: Element, name: str) -> None:
        links = zip_parts.relations(self.archive, name)
        names = set(self.archive.namelist())
        marks: dict[str, str] = {}
        found = list(root.iter(f"{MAIN}altChunk"))
        if len(found) > _MAX_CHUNKS:
            raise Unreadable(f"The file is too large: it contains {len(found):,} files.")
        for chunk in found:
            link = next((value for key, value in chunk.items() if key.endswith("}id")), "")
            part = links.get(link, "")
            if part not in names:
                continue
            if part not in marks:
                marks[part] = f"\ufdd2{len(self.chunks)}-{self._secret}\ufdd3"
                self.chunks[marks[part]] = part, self.archive.read(part)
            chunk.tag = f"{MAIN}p"
            chunk.append(word_runs.run_of(marks[part]))

    def _parts_of(self, kind: str) -> Iterator[Element]:
        for name in self.names:
            if name.endswith(f"{kind}.xml") and (root := self._parsed(name)) is not None:
                yield root

    def _parsed(self, name: str) -> Element | None:
        """Return the root of a part in the namespace of Word, with its changes; None if no XML."""
        if name not in self.archive.namelist():
            return None
        root, is_whole = zip_parts.parsed(self.archive.read(name))
        if not is_whole:
            self.notes[zip_parts.DAMAGED_NOTE] = None
        for element in () if root is None else list(root.iter(f"{_STRICT}*")):
            element.tag = element.tag.replace(_STRICT, MAIN)
            for key in [key for key in element.attrib if key.startswith(_STRICT)]:
                element.set(key.replace(_STRICT, MAIN), element.attrib.pop(key))
        if root is not None and root.tag.removeprefix(MAIN) in _STORIES:
            word_changes.accept(root)
        return root
