"""Loads the libraries of the warm process, and keeps heavy ones out."""

import codecs
import mimetypes
import sys
import types

from PIL import Image

from gateway_documents.text import DECLARED_CHARSETS

_MORE_CHARSETS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp437", "idna")
# markitdown imports 45 MB for workbooks, which `sheets` does not need.
_LEFT_OUT = ("pandas", "numpy")


class _NoMagika:
    """Stand-in for magika, whose model takes 60 MB to guess a file type that is known here."""

    def identify_stream(self, stream: object) -> types.SimpleNamespace:  # noqa: ARG002 - of magika
        """Report no result, so that markitdown uses the given StreamInfo."""
        return types.SimpleNamespace(status="left out")


def leave_out_heavy_libraries() -> None:
    """Block or replace heavy imports. Call this before importing parsers."""
    # None in `sys.modules` is the documented way to block an import.
    for name in _LEFT_OUT:
        sys.modules[name] = None  # type: ignore[assignment]
    magika = types.ModuleType("magika")
    magika.Magika = _NoMagika  # type: ignore[attr-defined]
    sys.modules["magika"] = magika


def load_lazy_parts() -> None:
    """Load everything that Python would read from disk at first use: a child cannot open files."""
    mimetypes.init()
    # python-pptx uses Pillow for the size of pictures.
    Image.preinit()
    for charset in (*DECLARED_CHARSETS, *_MORE_CHARSETS):
        codecs.lookup(charset)
