"""Rewrites what anydoc drops or flattens in a Word file, before anydoc reads it."""

import io
import posixpath
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from lxml import etree

from gateway_documents.child import zip_parts
from gateway_documents.child.raised_digits import LOWERED, RAISED

# lxml has no public name for it.
Element = Any
_MAIN = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_STORIES = frozenset(("document", "footnotes", "endnotes", "comments", "hdr", "ftr"))
# Words that a part must have to be worth parsing; the names of styles that hide come on top.
_WORTH_IT = (b"vanish", b"ruby", b"vertAlign", b"noBreakHyphen", b"headerRef", b"footerRef")
# A shorter header or footer with a page number is only that.
_MIN_HEADER_CHARS = 20
_HIDDEN_NOTE = "Hidden text was left out."
_COMMENTS_NOTE = "Comments were left out."
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_OFF = ("0", "false", "off", "none")


def prepared(data: bytes) -> tuple[bytes, Sequence[str]]:
    """Return a .docx that shows what anydoc drops, and sentences about parts that are left out.

    Ruby and raised or lowered digits become characters, headers and footers paragraphs. Every part
    with text counts, whatever its name.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if name.lower().endswith(".xml")]
        hiding = {
            style
            for name in names
            if name.endswith("styles.xml")
            for style in _hiding_styles(_parsed(archive.read(name)))
        }
        words = (*_WORTH_IT, *(style.encode() for style in hiding))
        changed: dict[str, bytes] = {}
        notes: dict[str, None] = {}
        for name in names:
            part = archive.read(name)
            if not part.startswith(_UTF_16) and not any(word in part for word in words):
                continue
            root = _parsed(part)
            if root is None or root.tag.removeprefix(_MAIN) not in _STORIES:
                continue
            if _rewrite(root, hiding):
                notes[_HIDDEN_NOTE] = None
            if root.tag == f"{_MAIN}document":
                _insert_headers(root, archive, name)
            changed[name] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        if any(_has_comment(archive.read(name)) for name in names if "comments" in name):
            notes[_COMMENTS_NOTE] = None
        return (zip_parts.with_parts(archive, changed) if changed else data), tuple(notes)


def _parsed(part: bytes) -> Element | None:
    """Return the root of a part in the namespace of Word, or None for broken XML."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(part, parser)
    except etree.XMLSyntaxError:
        return None
    for element in list(root.iter(f"{_STRICT}*")):
        element.tag = element.tag.replace(_STRICT, _MAIN)
        for name in [name for name in element.attrib if name.startswith(_STRICT)]:
            element.set(name.replace(_STRICT, _MAIN), element.attrib.pop(name))
    return root


def _hiding_styles(root: Element | None) -> Iterator[str]:
    """Yield the names of styles that hide text, also by the style that they are based on."""
    styles = (
        {}
        if root is None
        else {style.get(f"{_MAIN}styleId"): style for style in root.iter(f"{_MAIN}style")}
    )
    for name in filter(None, styles):
        at, seen = name, set()
        while at in styles and at not in seen:
            seen.add(at)
            hides = _vanish(styles[at].find(f"{_MAIN}rPr"))
            if hides:
                yield name
            if hides is not None:
                break
            base = styles[at].find(f"{_MAIN}basedOn")
            at = base.get(f"{_MAIN}val") if base is not None else None


def _vanish(properties: Element | None) -> bool | None:
    """Return whether properties hide text; None without such a property."""
    hidden = properties.find(f"{_MAIN}vanish") if properties is not None else None
    return None if hidden is None else hidden.get(f"{_MAIN}val") not in _OFF


def _has_comment(part: bytes) -> bool:
    root = _parsed(part)
    return root is not None and root.tag == f"{_MAIN}comments" and bool(_text(root))


def _text(element: Element) -> str:
    return "".join(text.text or "" for text in element.iter(f"{_MAIN}t")).strip()


def _rewrite(root: Element, hiding: AbstractSet[str]) -> bool:
    """Write out what anydoc drops and remove hidden text; return whether there was some."""
    for hyphen in root.iter(f"{_MAIN}noBreakHyphen"):
        # anydoc drops it, which joins the parts of a number.
        hyphen.tag, hyphen.text = f"{_MAIN}t", "-"
    for ruby in list(root.iter(f"{_MAIN}ruby")):
        _write_out_ruby(ruby)
    hid_text = False
    for run in list(root.iter(f"{_MAIN}r")):
        if _is_hidden(run, hiding):
            hid_text = hid_text or bool(_text(run))
            run.getparent().remove(run)
        elif (properties := run.find(f"{_MAIN}rPr")) is not None:
            _shift(run, properties)
    return hid_text


def _is_hidden(run: Element, hiding: AbstractSet[str]) -> bool:
    properties = run.find(f"{_MAIN}rPr")
    own = _vanish(properties)
    if own is not None or not hiding:
        return bool(own)
    paragraph = next(run.iterancestors(f"{_MAIN}p"), None)
    places = ((properties, "rStyle"), (paragraph, f"pPr/{_MAIN}pStyle"))
    named = (place.find(f"{_MAIN}{name}") for place, name in places if place is not None)
    return any(style is not None and style.get(f"{_MAIN}val") in hiding for style in named)


def _shift(run: Element, properties: Element) -> None:
    shifted = properties.find(f"{_MAIN}vertAlign")
    place = shifted.get(f"{_MAIN}val") if shifted is not None else None
    table = {"superscript": RAISED, "subscript": LOWERED}.get(place or "")
    texts = list(run.iter(f"{_MAIN}t"))
    if table and all(ord(char) in table for text in texts for char in text.text or ""):
        for text in texts:
            text.text = (text.text or "").translate(table)


def _insert_headers(root: Element, archive: zipfile.ZipFile, name: str) -> None:
    """Copy the headers of the first section before the text, and its footers behind it."""
    body = root.find(f"{_MAIN}body")
    section = next(root.iter(f"{_MAIN}sectPr"), None)
    if body is None or section is None:
        return
    parts = _relations(archive, name)
    before: list[Element] = []
    after: list[Element] = []
    for reference in section:
        kind = reference.tag.removeprefix(_MAIN)
        if kind in ("headerReference", "footerReference"):
            link = next((value for key, value in reference.items() if key.endswith("}id")), "")
            blocks = _header_blocks(archive, parts.get(link, ""))
            (before if kind.startswith("header") else after).extend(blocks)
    for block in reversed(before):
        body.insert(0, block)
    last = body[-1]
    for block in after:
        if last.tag == f"{_MAIN}sectPr":
            last.addprevious(block)
        else:
            body.append(block)


def _relations(archive: zipfile.ZipFile, name: str) -> Mapping[str, str]:
    """Return the parts that a part refers to, by the name of the relation."""
    folder, file = posixpath.split(name)
    links = posixpath.join(folder, "_rels", f"{file}.rels")
    root = _parsed(archive.read(links)) if links in archive.namelist() else None
    return (
        {}
        if root is None
        else {
            relation.get("Id", ""): posixpath.normpath(
                posixpath.join("/", folder, relation.get("Target", ""))
            ).lstrip("/")
            for relation in root.iter(_RELATION)
        }
    )


def _header_blocks(archive: zipfile.ZipFile, name: str) -> list[Element]:
    root = _parsed(archive.read(name)) if name in archive.namelist() else None
    if root is None:
        return []
    _rewrite(root, frozenset())
    text = _text(root)
    codes = "".join(code.text or "" for code in root.iter(f"{_MAIN}instrText"))
    codes += "".join(field.get(f"{_MAIN}instr") or "" for field in root.iter(f"{_MAIN}fldSimple"))
    if not text or ("PAGE" in codes and len(text) < _MIN_HEADER_CHARS):
        return []
    for drawing in list(root.iter(f"{_MAIN}drawing", f"{_MAIN}pict")):
        # Its picture belongs to the header's own relations.
        if not _text(drawing):
            drawing.getparent().remove(drawing)
    for link in root.iter(f"{_MAIN}hyperlink"):
        link.attrib.clear()
    return list(root)


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
