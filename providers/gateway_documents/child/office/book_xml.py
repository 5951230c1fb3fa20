"""Prepares the chapters of an EPUB for anydoc: as XML, without what they hide."""

import io
import re
import zipfile
from typing import Any

from lxml import etree, html

from gateway_documents.child.office import zip_parts
from gateway_documents.child.raised_digits import LOWERED, RAISED, shifted
from gateway_documents.errors import ENCRYPTED, NO_TEXT, Unreadable

# lxml has no public name for it.
Element = Any
_CHAPTERS = (".xhtml", ".html", ".htm")
_ENCRYPTION = "META-INF/encryption.xml"
_HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_BLOCKS = {"dt": "p", "dd": "p", "dl": "div"}


def prepared(data: bytes) -> bytes:
    """Return a book whose chapters are XML and show raised digits, ruby and lists of terms.

    Raises `Unreadable` for a book whose chapters are encrypted, or have no words.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        _refuse_encryption(archive)
        changed: dict[str, bytes] = {}
        chapters = [name for name in names if name.lower().endswith(_CHAPTERS)]
        has_words = not chapters
        for name in chapters:
            root = _chapter(archive.read(name))
            if root is None:
                continue
            _rewrite(root)
            has_words = has_words or _has_words(root)
            changed[name] = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
        if not has_words:
            raise Unreadable(NO_TEXT)
        return zip_parts.with_parts(archive, changed)


def _refuse_encryption(archive: zipfile.ZipFile) -> None:
    if _ENCRYPTION not in archive.namelist():
        return
    root, _ = zip_parts.parsed(archive.read(_ENCRYPTION))
    references = () if root is None else root.iter("{*}CipherReference")
    # Fonts may be encrypted.
    if any(one.get("URI", "").lower().endswith(_CHAPTERS) for one in references):
        raise Unreadable(ENCRYPTED)


def _chapter(part: bytes) -> Element | None:
    root, is_whole = zip_parts.parsed(part)
    if is_whole:
        return root
    charset = "utf-8"
    try:
        part.decode(charset)
    except UnicodeDecodeError:
        charset = "cp1252"
    try:
        return html.document_fromstring(part, html.HTMLParser(encoding=charset))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return root


def _rewrite(root: Element) -> None:
    for element in list(root.iter("{*}*")):
        if element.get("hidden") is not None or _HIDING.search(element.get("style", "")):
            _remove(element)
    for element in root.iter("{*}sup", "{*}sub"):
        table = RAISED if zip_parts.kind_of(element) == "sup" else LOWERED
        if not len(element):
            element.text = shifted(element.text or "", table)
    for reading in root.iter("{*}rt"):
        reading.text = f" ({''.join(reading.itertext()).strip()})"
    for element in root.iter("{*}dl", "{*}dt", "{*}dd"):
        kind = zip_parts.kind_of(element)
        element.tag = element.tag.removesuffix(kind) + _BLOCKS[kind]


def _remove(element: Element) -> None:
    """Remove an element, but not the text behind it."""
    element.tail, tail = None, element.tail
    parent, before = element.getparent(), element.getprevious()
    if parent is None:
        return
    if tail and before is not None:
        before.tail = (before.tail or "") + tail
    elif tail:
        parent.text = (parent.text or "") + tail
    parent.remove(element)


def _has_words(root: Element) -> bool:
    body = next(root.iter("{*}body"), root)
    words = any(text.strip() for text in body.itertext())
    return words or any(picture.get("alt", "").strip() for picture in body.iter("{*}img"))
