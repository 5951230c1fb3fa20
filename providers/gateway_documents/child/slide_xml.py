"""Prepares a presentation for anydoc: removes hidden parts, and marks where slides begin."""

import io
import posixpath
import re
import zipfile
from collections.abc import Sequence
from typing import Any

from lxml import etree

from gateway_documents.child import zip_parts

MARK = "\ufdd0slide\ufdd1"
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
_SLIDE = re.compile(rb"<(?:\w+:)?sld[\s>]")
_NOTES = re.compile(rb"<(?:\w+:)?Relationship\b[^<>]*/relationships/notesSlide[\"'][^<>]*>")
_ON, _OFF = ("1", "true"), ("0", "false")


def prepared(data: bytes) -> tuple[bytes, Sequence[str]]:
    """Return a .pptx without hidden slides and shapes, and sentences about them.

    The text of each slide begins with `MARK`.
    """
    changed: dict[str, bytes] = {}
    slides, shapes = 0, False
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        for name in sorted(name for name in names if name.lower().endswith(".xml")):
            part = archive.read(name)
            root = _slide(part) if _SLIDE.search(part) else None
            if root is None:
                continue
            if root.get("show") in _OFF:
                slides += 1
                _empty(root)
                folder, file = posixpath.split(name)
                links = posixpath.join(folder, "_rels", f"{file}.rels")
                if links in names:
                    changed[links] = _NOTES.sub(b"", archive.read(links))
            elif _remove_shapes(root):
                shapes = True
            _mark(root)
            changed[name] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        notes = [f"Hidden slides, left out: {slides:,}."] if slides else []
        notes += ["Hidden shapes were left out."] if shapes else []
        return zip_parts.with_parts(archive, changed), notes


def _slide(part: bytes) -> Any | None:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(part, parser)
    except etree.XMLSyntaxError:
        return None
    return root if root.tag in (f"{{{names}}}sld" for names in _DRAWINGS) else None


def _mark(root: Any) -> None:
    slides = etree.QName(root).namespace
    shape = _MARK_SHAPE.format(slides=slides, drawings=_DRAWINGS[slides], mark=MARK)
    tree = next(root.iter("{*}spTree"), None)
    if tree is not None:
        # The first two elements are the properties of the slide's group of shapes.
        tree.insert(2, etree.fromstring(shape))


def _empty(root: Any) -> None:
    for tree in list(root.iter("{*}spTree")):
        for shape in tree[2:]:
            tree.remove(shape)


def _remove_shapes(root: Any) -> bool:
    found = False
    for properties in list(root.iter("{*}cNvPr")):
        parent = properties.getparent()
        shape = parent.getparent() if parent is not None else None
        holder = shape.getparent() if shape is not None else None
        if properties.get("hidden") in _ON and shape is not None and holder is not None:
            found = found or any((text.text or "").strip() for text in shape.iter("{*}t"))
            holder.remove(shape)
    return found
