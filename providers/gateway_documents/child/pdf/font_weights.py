"""Stem widths that some programs write wrongly, so that ordinary fonts would count as bold."""

import re

from gateway_documents.child.pdf.layout.styles import is_bold

_STEM = re.compile(rb"(?<=/StemV )[1-9]\d\d(?=[\s/>])")
_NAME = re.compile(rb"/FontName\s*/([^\s/<>\[\]()]+)")
# PDFium takes wider stems for bold. A replacement of the same length keeps the file's offsets.
_WIDEST, _ORDINARY = 119, b"080"


def mended(data: bytes) -> bytes:
    """Return a PDF in which only fonts that are bold by name have wide stems.

    Skia, which prints for Chromium and Android, measures a letter of any font as its stem.
    """

    def replaced(found: re.Match[bytes]) -> bytes:
        start, end = data.rfind(b"<<", 0, found.start()), data.find(b">>", found.end())
        name = _NAME.search(data, start, end)
        is_wrong = name and int(found[0]) > _WIDEST and not is_bold(name[1].decode("latin-1"))
        return _ORDINARY if is_wrong else found[0]

    return _STEM.sub(replaced, data)
