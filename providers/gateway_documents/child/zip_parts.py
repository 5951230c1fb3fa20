"""The parts of Office files: refuses document type declarations, and replaces parts."""

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
    """Raise `Unreadable` if an XML part of an Office file has a document type declaration.

    ECMA-376 part 2 forbids declarations. Refusing them stops billion laughs and external entities,
    whatever the parser does. Only the beginning of each part is read.
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
    try:
        while chunk := part.read(_CHUNK_BYTES):
            parser.Parse(chunk)
    except _Body:
        pass


def _refuse(*_: object) -> None:
    raise Unreadable("The file is damaged: it declares XML entities, which no Office program does.")


def _stop(*_: object) -> None:
    raise _Body
