"""The parts of Office files: refuses document type declarations, and replaces parts."""

import contextlib
import io
import zipfile
from collections.abc import Mapping
from typing import IO
from xml.parsers import expat

from gateway_documents.errors import Unreadable

_CHUNK_BYTES = 65_536
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


def with_parts(archive: zipfile.ZipFile, changed: Mapping[str, bytes]) -> bytes:
    """Return a copy of an archive with other contents of some parts."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as copy:
        for name in dict.fromkeys(archive.namelist()):
            copy.writestr(name, changed[name] if name in changed else archive.read(name))
    return target.getvalue()


def _read_prologue(part: IO[bytes]) -> None:
    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = _stop
    # A broken part is not the document's, or its parser refuses it.
    with contextlib.suppress(_Body, expat.ExpatError):
        while chunk := part.read(_CHUNK_BYTES):
            parser.Parse(chunk)


def _refuse(_name: str, _system: str | None, _public: str | None, declares: int) -> None:
    if not declares:
        return
    raise Unreadable("The file is damaged: it declares XML entities, which no Office program does.")


def _stop(*_: object) -> None:
    raise _Body
