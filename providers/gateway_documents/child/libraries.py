"""Loads what Python would read from disk at first use, because a child cannot open files."""

import codecs

from charset_normalizer import from_bytes

from gateway_documents.child.pdf import pdf_document
from gateway_documents.child.text.charsets import CHARSETS

_MORE_CHARSETS = ("cp437", "idna", "unicode_escape")


def load_lazy_parts() -> None:
    """Look up each charset, and use each library once."""
    for charset in (*CHARSETS, *_MORE_CHARSETS):
        codecs.lookup(charset)
    from_bytes(bytes(range(0xC0, 0x100)) * 2).best()
    pdf_document.warm_up()
