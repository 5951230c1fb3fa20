"""Decodes text files, and refuses files that are not text."""

import codecs
import encodings.aliases
import re

from gateway_documents.errors import Unreadable

# Modules of `encodings` that an HTML page may declare; the child loads them before the fork.
DECLARED_CHARSETS = (
    *(f"iso8859_{number}" for number in (*range(2, 12), 13, 14, 15, 16)),
    *(f"cp{number}" for number in (*range(1250, 1259), 932, 949)),
    *("ascii", "latin_1", "utf_8", "koi8_r", "koi8_u", "mac_roman"),
    *("shift_jis", "euc_jp", "iso2022_jp", "euc_kr", "gb2312", "gbk", "gb18030", "big5"),
)

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARATION = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]{0,200}?(?:charset|encoding)=["']?([\w.:-]+)""", re.IGNORECASE
)
# The HTML standard searches no further.
_DECLARATION_BYTES = 1024
# Control characters that text does not have; tab to \r and escape are allowed.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def decode(data: bytes, *, declares_charset: bool = False) -> str:
    """Decode a UTF-8, UTF-16 (with byte order mark) or Windows-1252 file.

    An HTML page (`declares_charset`) may declare another charset in its first kilobyte. Raises
    `Unreadable` if none of them fits, or if control characters show that it is not text.
    """
    declared = _declared_charset(data) if declares_charset else None
    for charset in filter(None, (_marked_charset(data), "utf-8", declared, "cp1252")):
        try:
            text = data.decode(charset)
        except UnicodeDecodeError:
            continue
        return _checked_text(text)
    raise Unreadable("The file is not text in UTF-8, UTF-16 or Windows-1252: save it as UTF-8.")


def _marked_charset(data: bytes) -> str | None:
    return next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), None)


def _declared_charset(data: bytes) -> str | None:
    """Return the declared charset if it is in `DECLARED_CHARSETS`."""
    found = _DECLARATION.search(data[:_DECLARATION_BYTES])
    if found is None:
        return None
    name = encodings.normalize_encoding(found[1].decode("ascii")).lower()
    module = encodings.aliases.aliases.get(name, name)
    return module if module in DECLARED_CHARSETS else None


def _checked_text(text: str) -> str:
    found = _NOT_TEXT.search(text)
    if found is None:
        return text
    raise Unreadable(
        f"The file is not text: there is a control character (U+{ord(found[0]):04X}) in it."
    )
