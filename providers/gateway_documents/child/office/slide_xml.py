"""Prepares a presentation for anydoc: without hidden parts, with what anydoc drops, and marked."""

import io
import itertools
import os
import posixpath
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from lxml import etree

from gateway_documents.child.office import chart_xml, diagram_xml, zip_parts
from gateway_documents.child.raised_digits import LOWERED, RAISED, shifted
from gateway_documents.errors import DAMAGED, NO_TEXT, Unreadable

# lxml has no public name for it.
Element = Any
# Random, so that no text contains it.
MARK = f"\ufdd0{os.urandom(8).hex()}\ufdd1"
# The namespaces of slides and of their drawings, in ECMA-376's two editions.
_DRAWINGS = {
    "http://schemas.openxmlformats.org/presentationml/2006/main": (
        "http://schemas.openxmlformats.org/drawingml/2006/main"
    ),
    "http://purl.oclc.org/ooxml/presentationml/main": "http://purl.oclc.org/ooxml/drawingml/main",
}
# A shape above and left of all others, so that it is read first.
_MARK_SHAPE = (
    '<p:sp xmlns:p="{slides}" xmlns:a="{drawings}">'
    '<p:nvSpPr><p:cNvPr id="0" name=""/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr>'
    '<p:spPr><a:xfrm><a:off x="-2000000000" y="-2000000000"/><a:ext cx="1" cy="1"/></a:xfrm>'
    '</p:spPr><p:txBody><a:bodyPr/><a:p><a:r><a:rPr b="0" i="0" u="none" strike="noStrike"/>'
    "<a:t>{mark}</a:t></a:r></a:p></p:txBody></p:sp>"
)
# The same in both editions.
_NOTES = "/relationships/notesSlide"
_NOTES_TYPE = f"http://schemas.openxmlformats.org/officeDocument/2006{_NOTES}"
# Programs describe a picture by its file.
_PICTURE_FILE = re.compile(r".{0,200}\.(?:png|jpe?g|gif|bmp|tiff?|emf|wmf|svg|webp)", re.IGNORECASE)
_RUNNING = ("ftr", "hdr", "dt")
# A line break in a text, as PowerPoint writes it (ECMA-376 part 1, §22.4.2.4).
_BREAK = re.compile("_x000[BbDd]_")
_ON, _OFF = ("1", "true"), ("0", "false")


def prepared(data: bytes) -> tuple[bytes, Sequence[str]]:
    """Return a .pptx without hidden slides and shapes, and sentences about them.

    Raised and lowered digits become characters, and footers shapes of the first slide that has
    them. Notes that only refer to their slide are linked. Each slide's text begins with `MARK`.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        deck = _Deck(archive)
        names = sorted(name for name in archive.namelist() if name.lower().endswith(".xml"))
        for name in names:
            deck.rewrite(name)
        if not deck.has_slides:
            raise Unreadable(DAMAGED if zip_parts.DAMAGED_NOTE in deck.notes() else NO_TEXT)
        deck.link_notes()
        return zip_parts.with_parts(archive, deck.changed), deck.notes()


@attrs.define
class _Deck:
    archive: zipfile.ZipFile
    changed: dict[str, bytes] = attrs.field(factory=dict, init=False)
    _hidden: set[str] = attrs.field(factory=set, init=False)
    """The names of hidden slides."""
    _footers: set[str] = attrs.field(factory=set, init=False)
    _speaker_notes: list[str] = attrs.field(factory=list, init=False)
    _has_hidden_shapes: bool = attrs.field(default=False, init=False)
    _has_comments: bool = attrs.field(default=False, init=False)
    _is_whole: bool = attrs.field(default=True, init=False)
    has_slides: bool = attrs.field(default=False, init=False)

    def notes(self) -> list[str]:
        """Return the sentences about what was left out."""
        found = {
            f"Hidden slides, left out: {len(self._hidden):,}.": self._hidden,
            "Hidden shapes were left out.": self._has_hidden_shapes,
            "Comments were left out.": self._has_comments,
            zip_parts.DAMAGED_NOTE: not self._is_whole,
        }
        return [note for note, is_so in found.items() if is_so]

    def rewrite(self, name: str) -> None:
        """Change a part as anydoc reads it best."""
        root, is_whole = zip_parts.parsed(self.archive.read(name))
        self._is_whole = self._is_whole and is_whole
        if root is None:
            return
        kind = zip_parts.kind_of(root)
        if kind == "sld":
            self._rewrite_slide(root, name)
            _mark(root)
            self.has_slides = True
        elif kind == "chartSpace":
            chart_xml.rewrite(root)
        elif kind == "dataModel":
            diagram_xml.rewrite(root)
        elif kind == "notes":
            self._speaker_notes.append(name)
        elif kind == "cmLst" and any(_texts(root)):
            self._has_comments = True
        if kind in ("sld", "chartSpace", "dataModel") or not is_whole:
            self._change(name, root)

    def link_notes(self) -> None:
        """Let slides refer to their notes, which some programs leave out."""
        by_slide = {
            slide: notes
            for notes in self._speaker_notes
            for slide in zip_parts.relations(self.archive, notes).values()
            if posixpath.basename(posixpath.dirname(slide)) == "slides"
        }
        for slide, notes in by_slide.items():
            if slide not in self._hidden:
                self._link(slide, notes)

    def _link(self, slide: str, notes: str) -> None:
        links = self._links_of(slide)
        if links is None or next(_notes_of(links), None) is not None:
            return
        name = f"{{{etree.QName(links).namespace}}}Relationship"
        etree.SubElement(links, name, Id="unlinkedNotes", Target=f"/{notes}", Type=_NOTES_TYPE)
        self._change(zip_parts.links_of(slide), links)

    def _unlink_notes(self, slide: str) -> None:
        links = self._links_of(slide)
        if links is not None:
            for relation in list(_notes_of(links)):
                links.remove(relation)
            self._change(zip_parts.links_of(slide), links)

    def _links_of(self, slide: str) -> Element | None:
        try:
            part = self.archive.read(zip_parts.links_of(slide))
        except KeyError:
            return None
        return zip_parts.parsed(part)[0]

    def _change(self, name: str, root: Element) -> None:
        self.changed[name] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")

    def _rewrite_slide(self, root: Element, name: str) -> None:
        if root.get("show") in _OFF:
            self._hidden.add(name)
            _empty(root)
            self._unlink_notes(name)
            return
        if _remove_shapes(root):
            self._has_hidden_shapes = True
        for alternatives in list(root.iter("{*}AlternateContent")):
            _choose(alternatives)
        for run in root.iter("{*}r"):
            _shift(run)
        drop_names(root)
        for holder in root.iter("{*}nvPr"):
            self._keep_footer(holder)

    def _keep_footer(self, holder: Element) -> None:
        """Make a footer an ordinary shape, unless it is a number or was on an earlier slide."""
        place = holder.find("{*}ph")
        if place is None or place.get("type") not in _RUNNING:
            return
        shape = next(itertools.islice(holder.iterancestors(), 1, None), None)
        if shape is None or next(shape.iter("{*}fld"), None) is not None:
            return
        text = " ".join(_texts(shape))
        if text and text not in self._footers:
            self._footers.add(text)
            holder.remove(place)


def _notes_of(links: Element) -> Iterator[Element]:
    for relation in links.iterfind("{*}Relationship"):
        if relation.get("Type", "").endswith(_NOTES):
            yield relation


def drop_names(root: Element) -> None:
    """Remove descriptions that are names of files, and objects, which only have a name."""
    for properties in root.iter("{*}cNvPr", "{*}docPr"):
        if _PICTURE_FILE.fullmatch(properties.get("descr", "").strip()):
            del properties.attrib["descr"]
    for frame in list(root.iter("{*}graphicFrame")):
        if next(frame.iter("{*}oleObj"), None) is not None:
            frame.getparent().remove(frame)


def _texts(root: Element) -> Iterator[str]:
    for element in root.iter("{*}t", "{*}text"):
        if text := (element.text or "").strip():
            yield text


def _choose(alternatives: Element) -> None:
    """Replace alternatives inside a paragraph, which anydoc drops, by the first one."""
    paragraph = alternatives.getparent()
    if paragraph is None or zip_parts.kind_of(paragraph) != "p":
        return
    first = alternatives.find("*")
    for child in () if first is None else list(first):
        alternatives.addprevious(child)
    paragraph.remove(alternatives)


def _shift(run: Element) -> None:
    properties, text = run.find("{*}rPr"), run.find("{*}t")
    shift = properties.get("baseline", "0") if properties is not None else "0"
    if text is None or not text.text:
        return
    text.text = _BREAK.sub(" ", text.text)
    if shift == "0":
        return
    text.text = shifted(text.text, LOWERED if shift.startswith("-") else RAISED)


def _mark(root: Element) -> None:
    slides = root.tag.rpartition("}")[0].removeprefix("{")
    if slides not in _DRAWINGS:
        return
    shape = _MARK_SHAPE.format(slides=slides, drawings=_DRAWINGS[slides], mark=MARK)
    tree = next(root.iter("{*}spTree"), None)
    if tree is not None:
        # The first two elements are the properties of the slide's group of shapes.
        tree.insert(2, etree.fromstring(shape))


def _empty(root: Element) -> None:
    for tree in list(root.iter("{*}spTree")):
        for shape in tree[2:]:
            tree.remove(shape)


def _remove_shapes(root: Element) -> bool:
    found = False
    for properties in list(root.iter("{*}cNvPr")):
        parent = properties.getparent()
        shape = parent.getparent() if parent is not None else None
        holder = shape.getparent() if shape is not None else None
        if properties.get("hidden") in _ON and shape is not None and holder is not None:
            found = found or any(_texts(shape))
            holder.remove(shape)
    return found
