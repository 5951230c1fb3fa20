"""Rewrites what anydoc drops or flattens in a Word file, before anydoc reads it."""

import io
import zipfile
from collections.abc import Iterator
from typing import Any

from lxml import etree

from gateway_documents.child import zip_parts
from gateway_documents.child.raised_digits import LOWERED, RAISED

# lxml has no public name for it.
Element = Any
_MAIN = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
# Parts with text. Words that a part must have to be worth parsing.
_PARTS = ("word/document.xml", "word/footnotes.xml", "word/endnotes.xml")
_WORTH_IT = (b"vanish", b"ruby", b"vertAlign", b"noBreakHyphen")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_OFF = ("0", "false", "off", "none")


def prepared(data: bytes) -> bytes:
    """Return a .docx without hidden text, with ruby and raised or lowered digits as characters."""
    changed: dict[str, bytes] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in set(_PARTS).intersection(archive.namelist()):
            part = archive.read(name)
            if part.startswith(_UTF_16) or any(word in part for word in _WORTH_IT):
                changed[name] = _rewritten(part)
        return zip_parts.with_parts(archive, changed) if changed else data


def _rewritten(part: bytes) -> bytes:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(part, parser)
    except etree.XMLSyntaxError:
        return part
    for element in list(root.iter(f"{_STRICT}*")):
        element.tag = element.tag.replace(_STRICT, _MAIN)
        for name in [name for name in element.attrib if name.startswith(_STRICT)]:
            element.set(name.replace(_STRICT, _MAIN), element.attrib.pop(name))
    for hyphen in root.iter(f"{_MAIN}noBreakHyphen"):
        # anydoc drops it, which joins the parts of a number.
        hyphen.tag, hyphen.text = f"{_MAIN}t", "-"
    for ruby in list(root.iter(f"{_MAIN}ruby")):
        _write_out_ruby(ruby)
    for properties in list(root.iter(f"{_MAIN}rPr")):
        run = properties.getparent()
        if run is not None and run.tag == f"{_MAIN}r":
            _rewrite_run(run, properties)
    rewritten: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
    return rewritten


def _rewrite_run(run: Element, properties: Element) -> None:
    hidden = properties.find(f"{_MAIN}vanish")
    if hidden is not None and hidden.get(f"{_MAIN}val") not in _OFF:
        run.getparent().remove(run)
        return
    shifted = properties.find(f"{_MAIN}vertAlign")
    place = shifted.get(f"{_MAIN}val") if shifted is not None else None
    table = {"superscript": RAISED, "subscript": LOWERED}.get(place or "")
    texts = list(run.iter(f"{_MAIN}t"))
    if table and all(ord(char) in table for text in texts for char in text.text or ""):
        for text in texts:
            text.text = (text.text or "").translate(table)


def _write_out_ruby(ruby: Element) -> None:
    """Replace a word and its reading by runs: 漢字 (かんじ)."""
    base, reading = ruby.find(f"{_MAIN}rubyBase"), ruby.find(f"{_MAIN}rt")
    parent = ruby.getparent()
    if base is None or parent is None:
        return
    runs = [*base, *(_reading_runs(reading) if reading is not None else ())]
    # Word puts a ruby into a run, other programs put it beside runs.
    after = parent if parent.tag == f"{_MAIN}r" else ruby
    for run in runs:
        after.addnext(run)
        after = run
    parent.remove(ruby)


def _reading_runs(reading: Element) -> Iterator[Element]:
    text = "".join(element.text or "" for element in reading.iter(f"{_MAIN}t"))
    if text:
        run = etree.Element(f"{_MAIN}r")
        etree.SubElement(run, f"{_MAIN}t").text = f" ({text})"
        run[0].set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
        yield run
