"""Which libraries the warmed process loads, and which it leaves out to stay small."""

import codecs
import mimetypes
import sys
import types

from PIL import Image

from gateway_documents.text import DECLARED_CHARSETS

_MORE_CHARSETS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp437", "idna")
_LEFT_OUT = ("pandas", "numpy")  # 45 MB that markitdown wants for workbooks; `sheets` does not


class _NoMagika:
    """Stands in for magika, whose model and onnxruntime take 60 MB to guess what we know."""

    def identify_stream(self, stream: object) -> types.SimpleNamespace:  # noqa: ARG002 - magika's
        """Say that nothing was found, so that markitdown uses the StreamInfo it was given."""
        return types.SimpleNamespace(status="left out")


def leave_out_what_is_not_needed() -> None:
    """Make the imports of heavy libraries fail, or find a stand-in; call it before the parsers."""
    for name in _LEFT_OUT:  # None is the documented way to forbid an import
        sys.modules[name] = None  # type: ignore[assignment]
    magika = types.ModuleType("magika")
    magika.Magika = _NoMagika  # type: ignore[attr-defined]
    sys.modules["magika"] = magika


def load_the_rest() -> None:
    """Load what is otherwise read from disk at first use: a child can open no file."""
    mimetypes.init()
    Image.preinit()  # python-pptx asks it for the size of pictures
    for charset in (*DECLARED_CHARSETS, *_MORE_CHARSETS):
        codecs.lookup(charset)
