"""Removes what a presentation hides, before anydoc reads it."""

import io
import posixpath
import re
import zipfile
from collections.abc import Sequence
from typing import Any

from lxml import etree

from gateway_documents.child import zip_parts

_NAMES = "http://schemas.openxmlformats.org/presentationml/2006/main"
_STRICT = "http://purl.oclc.org/ooxml/presentationml/main"
_WORTH_IT = re.compile(rb"""\b(?:show\s*=\s*["'](?:0|false)|hidden\s*=\s*["'](?:1|true))["']""")
_NOTES = re.compile(rb"<(?:\w+:)?Relationship\b[^<>]*/relationships/notesSlide[\"'][^<>]*>")
_ON, _OFF = ("1", "true"), ("0", "false")


def prepared(data: bytes) -> tuple[bytes, Sequence[str]]:
    """Return a .pptx without hidden slides and shapes, and sentences about them."""
    changed: dict[str, bytes] = {}
    slides, shapes = 0, False
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = set(archive.namelist())
        for name in sorted(name for name in names if name.lower().endswith(".xml")):
            part = archive.read(name)
            root = _slide(part) if _WORTH_IT.search(part) else None
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
            changed[name] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        notes = [f"Hidden slides, left out: {slides:,}."] if slides else []
        notes += ["Hidden shapes were left out."] if shapes else []
        return (zip_parts.with_parts(archive, changed) if changed else data), notes


def _slide(part: bytes) -> Any | None:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(part, parser)
    except etree.XMLSyntaxError:
        return None
    return root if root.tag in (f"{{{_NAMES}}}sld", f"{{{_STRICT}}}sld") else None


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
