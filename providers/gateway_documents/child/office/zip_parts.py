"""The parts of Office files: refuses document type declarations, parses and replaces parts."""

import contextlib
import io
import posixpath
import re
import zipfile
from collections.abc import Mapping
from typing import IO, Any
from xml.parsers import expat

from lxml import etree

from gateway_documents.child.text import controls
from gateway_documents.errors import TOO_DEEP, Unreadable

DAMAGED_NOTE = "The file is damaged in places; text may be missing there."
_CHUNK_BYTES = 65_536
_STRAY_AMPERSAND = re.compile(rb"&(?!#?\w{1,32};)")
# Entities were refused, so large parts are only that.
_SAFELY: Any = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": True,
}
_XML_ENDINGS = (".xml", ".rels")


class _Body(Exception):
    """The first element has started, so no declaration can follow."""


def refuse_doctype(data: bytes) -> None:
    """Raise `Unreadable` if an XML part of an Office file has declarations of its own.

    Refusing them stops billion laughs and external entities, whatever the parser does. OpenOffice
    names an external document type, which no parser here reads. Only the beginning of each part is
    read.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if member.filename.lower().endswith(_XML_ENDINGS):
                with archive.open(member) as part:
                    _read_prologue(part)


def with_slashes(data: bytes) -> bytes:
    """Return an archive whose names have slashes: some programs write backslashes."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if not any("\\" in name for name in names):
            return data
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
            for name in dict.fromkeys(names):
                copy.writestr(name.replace("\\", "/"), archive.read(name))
        return target.getvalue()


def with_parts(archive: zipfile.ZipFile, changed: Mapping[str, bytes | None]) -> bytes:
    """Return a copy of an archive with other contents of some parts, and without those of None."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for name in dict.fromkeys(archive.namelist()):
            part = changed[name] if name in changed else archive.read(name)
            if part is not None:
                copy.writestr(name, part)
    return target.getvalue()


def parsed(part: bytes) -> tuple[Any | None, bool]:
    """Return the root of an XML part, and whether all of it was parsed.

    The root is None for a part that is no XML. Raises `Unreadable` for one that is nested deeply.
    """
    with contextlib.suppress(etree.XMLSyntaxError):
        return etree.fromstring(part, etree.XMLParser(**_SAFELY)), True
    part = cleaned(part)
    with contextlib.suppress(etree.XMLSyntaxError):
        return etree.fromstring(part, etree.XMLParser(**_SAFELY)), True
    try:
        return etree.fromstring(part, etree.XMLParser(recover=True, **_SAFELY)), False
    except etree.XMLSyntaxError as error:
        if "depth" in str(error):
            raise Unreadable(TOO_DEEP) from None
        return None, False


def cleaned(part: bytes) -> bytes:
    """Return a part without the signs that careless programs leave in the text."""
    return _STRAY_AMPERSAND.sub(b"&amp;", controls.NOT_XML.sub(b"", part))


def kind_of(root: Any) -> str:
    """Return the name of a root without its namespace, which a broken part may not declare."""
    name: str = root.tag
    return name.rpartition("}")[2]


def links_of(name: str) -> str:
    """Return the part with the relations of a part."""
    folder, file = posixpath.split(name)
    return posixpath.join(folder, "_rels", f"{file}.rels")


def relations(archive: zipfile.ZipFile, name: str) -> dict[str, str]:
    """Return the parts that a part refers to, by the name of the relation."""
    folder, links = posixpath.dirname(name), links_of(name)
    root = parsed(archive.read(links))[0] if links in archive.namelist() else None
    found = () if root is None else root.iter("{*}Relationship")
    return {
        relation.get("Id", ""): posixpath.normpath(
            posixpath.join("/", folder, relation.get("Target", ""))
        ).lstrip("/")
        for relation in found
    }


def _read_prologue(part: IO[bytes]) -> None:
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = _stop
    chunk = b""
    try:
        while chunk := part.read(_CHUNK_BYTES):
            parser.Parse(chunk)
    except _Body:
        pass
    except expat.ExpatError:
        # What is no XML, such as a cipher, declares nothing, in ASCII or UTF-16.
        if b"<!DOCTYPE" in chunk.replace(b"\0", b""):
            raise


def _refuse(_name: str, _system: str | None, _public: str | None, declares: int) -> None:
    if not declares:
        return
    raise Unreadable("The file is damaged: it declares XML entities, which no Office program does.")


def _stop(*_: object) -> None:
    raise _Body
