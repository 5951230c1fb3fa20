"""Decodes text files: by their mark, as UTF-8, by the declared charset, or by a guess."""

import codecs
import encodings.aliases
import re
import unicodedata

import attrs
from charset_normalizer import CharsetMatch, from_bytes

from gateway_documents.child.text import languages
from gateway_documents.child.text.controls import NOT_TEXT
from gateway_documents.errors import EMPTY, Unreadable

# Charsets that a page may declare or that are guessed, as modules of `encodings`. The child loads
# them before the fork. EBCDIC and fonts' private charsets are left out: they fit any bytes.
_UNICODE = ("utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be")
_EAST_ASIAN = (
    *("cp932", "shift_jis", "euc_jp", "iso2022_jp", "gb18030", "gbk", "gb2312", "hz"),
    *("big5", "big5hkscs", "euc_kr", "cp949", "iso2022_kr", "johab"),
)
_OTHER_SCRIPTS = (
    *("koi8_r", "koi8_u", "cp866", "cp855", "mac_cyrillic", "cp1251", "iso8859_5"),
    *("cp1253", "iso8859_7", "cp1255", "iso8859_8", "cp1256", "iso8859_6", "tis_620", "cp874"),
)
# In the order in which they are tried.
_LATIN = (
    *("cp1252", "cp1250", "cp1254", "cp1257", "iso8859_2", "iso8859_15", "cp850", "mac_roman"),
    *("cp852", "iso8859_9", "iso8859_4", "iso8859_13", "iso8859_16"),
)
CHARSETS = (
    *_UNICODE,
    *_EAST_ASIAN,
    *_OTHER_SCRIPTS,
    *_LATIN,
    *("ascii", "latin_1", "utf_8", "utf_8_sig", "cp1258", "iso8859_3", "iso8859_10", "iso8859_14"),
)

_MARKS = (
    (codecs.BOM_UTF8, "utf_8_sig"),
    (codecs.BOM_UTF32_LE, "utf_32"),
    (codecs.BOM_UTF32_BE, "utf_32"),
    (codecs.BOM_UTF16_LE, "utf_16"),
    (codecs.BOM_UTF16_BE, "utf_16"),
)
_DECLARATION = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]{0,200}?(?:charset|encoding)\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE
)
# The HTML standard reads the first kilobyte; long comments and scripts precede some declarations.
_DECLARATION_BYTES = 16_384
# Browsers read these as the latter, which has the same characters and more.
_WIDER = {"latin_1": "cp1252", "iso8859_9": "cp1254", "iso8859_11": "cp874", "tis_620": "cp874"}
_EXTENDED = {"shift_jis": "cp932", "gb2312": "gb18030", "big5": "big5hkscs", "euc_kr": "cp949"}
_LABELS = {"windows_31j": "cp932", "iso_8859_8_i": "iso8859_8", "unicode_1_1_utf_8": "utf_8"}
_VENDOR = re.compile(r"^(?:x_)*(?:windows_(?=\d))?")
# The words that tell Latin charsets apart, and how many of them are enough.
_WORD = re.compile(rb"[\x27-\x7e]{0,30}[\x80-\xff][\x27-\xff]{0,30}")
_MAX_WORDS = 5_000
_NOT_ASCII = 0x80
_SURE_FROM_BYTES = 200
# Of all characters, and of those outside ASCII. Browsers read such text, too.
_MAX_CONTROLS, _MAX_DAMAGED = 0.01, 0.05
_DAMAGED = "\ufffd"
# DOS and CP/M end text with it.
_END_OF_FILE = "\x1a"
# Rich text begins here, and the heads of a page saved with its pictures end here.
_START = 2_000
_WEB_ARCHIVE = re.compile(
    r"(?:[\w-]+:.*\r?\n(?:[ \t]+.*\r?\n)*)*?content-type:\s*multipart/related", re.IGNORECASE
)
_WHITE = " \t\n\r\f\v\ufeff"
_ISO_2022 = re.compile(r"\x1b(?:\$|\(J)")
_SAMPLE_BYTES = 4096
# Every text has a space, a line break or a full stop, of ASCII or of East Asia.
_WITH_SIGNS = (0x00, 0x30)
# Of the bytes of UTF-16 that are all below 0x80, half name an alphabet below U+2000.
_MIN_CONTROLS = 0.4
# Greek; a text is never only of letters with accents.
_FIRST_ALPHABET = 0x03
_HALF_WIDTH = re.compile(r"[\uff66-\uff9d]{2}")


@attrs.frozen
class Decoded:
    """The text of a file, and the charset's name if it is an uncertain guess."""

    text: str
    guess: str | None = None


def decode(data: bytes, *, may_declare: bool = False) -> Decoded:
    """Return the text of a file in any common charset.

    HTML and XML (`may_declare`) may name the charset in their first 16 KB.
    Raises `Unreadable` for an empty file and for bytes that are no text.
    """
    if not data.strip(b"\0\t\n\r \x0b\x0c"):
        raise Unreadable(EMPTY)
    found = _known(data, may_declare=may_declare) or _guessed(data)
    if found is None:
        raise Unreadable("The character set of the file is unknown: save it as UTF-8.")
    _refuse_other_kinds(found.text)
    return attrs.evolve(found, text=_without_controls(found.text))


def _refuse_other_kinds(text: str) -> None:
    """Raise `Unreadable` for formats of other programs that are text."""
    if text[:_START].lstrip(_WHITE).startswith("{\\rtf"):
        raise Unreadable("The kind of the file is unknown: it is rich text, so name it .rtf.")
    if _WEB_ARCHIVE.match(text[:_START]):
        raise Unreadable(
            "The kind of the file is unknown: it is a web archive, so save it as HTML."
        )


def _without_controls(text: str) -> str:
    """Return a text without a few stray control characters; many show that it is none."""
    text = text.strip("\0").removesuffix(_END_OF_FILE)
    if not text.strip(_WHITE):
        raise Unreadable(EMPTY)
    controls = NOT_TEXT.findall(text)
    if len(controls) > _MAX_CONTROLS * len(text):
        code = f"U+{ord(controls[0]):04X}"
        raise Unreadable(f"The kind of the file is unknown: text has no control character {code}.")
    return NOT_TEXT.sub("", text) if controls else text


def _known(data: bytes, *, may_declare: bool) -> Decoded | None:
    """Return the text by its mark, as UTF-8, or by its declaration, even if it is damaged."""
    marked = _marked(data)
    charsets = [marked] if marked else ["utf_8", *(_declared(data) if may_declare else ())]
    for errors in ("strict", "replace"):
        for charset in charsets:
            text = _try(data, charset, errors)
            if text is None or not _is_text(text) or not _is_likely(text, charset):
                continue
            if errors == "strict" or _is_readable(text, is_marked=charset == marked):
                return Decoded(text)
    return None


def _is_text(text: str) -> bool:
    """Whether few characters are controls, and none is of an escape of ISO-2022."""
    controls = len(NOT_TEXT.findall(text.strip("\0").removesuffix(_END_OF_FILE)))
    return controls <= _MAX_CONTROLS * len(text) and not _ISO_2022.search(text)


def _is_likely(text: str, charset: str) -> bool:
    """Whether the charset is none for Latin script, or the script is Latin."""
    return charset not in (*_LATIN, "latin_1") or languages.has_ascii_letters(text)


def _is_readable(text: str, *, is_marked: bool) -> bool:
    """Whether few characters are damaged; the last one of a file may be cut."""
    damaged = text.count(_DAMAGED)
    if is_marked:
        return damaged <= 1 + _MAX_DAMAGED * len(text)
    others = sum(char > "\x7f" for char in text) - damaged
    return others > 0 and damaged - text.endswith(_DAMAGED) <= _MAX_DAMAGED * others


def _marked(data: bytes) -> str | None:
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def _declared(data: bytes) -> list[str]:
    """Return the charset that a page names, and the ones that extend it, in order of preference."""
    found = _DECLARATION.search(data[:_DECLARATION_BYTES])
    if found is None:
        return []
    name = encodings.normalize_encoding(found[1].decode("ascii")).lower()
    name = _LABELS.get(name) or _VENDOR.sub(_code_page, name)
    module = encodings.aliases.aliases.get(name, name)
    # The declaration itself would not be readable in UTF-16.
    likely = (_WIDER.get(module), module, _EXTENDED.get(module))
    return [one for one in likely if one in CHARSETS and one not in _UNICODE]


def _code_page(found: re.Match[str]) -> str:
    return "cp" if found[0].endswith("windows_") else ""


def _guessed(data: bytes) -> Decoded | None:
    if (charset := _wide_charset(data)) and (text := _try(data, charset, "replace")) is not None:
        return Decoded(text)
    data = data.strip(b"\0")
    found = from_bytes(data, cp_isolation=[*_EAST_ASIAN, *_OTHER_SCRIPTS, *_LATIN])
    others = (
        one for one in found if one.encoding not in _LATIN and languages.is_other_script(str(one))
    )
    best, other = found.best(), next(others, None)
    if best is None:
        return _latin(data) or _japanese(data)
    if best.encoding in _LATIN or other is None:
        return _latin(data) or _match(other or best, data)
    return _match(other, data)


def _match(found: CharsetMatch, data: bytes) -> Decoded:
    is_sure = found.encoding not in _LATIN and _is_long(data)
    return Decoded(str(found), None if is_sure else _label(found.encoding))


def _latin(data: bytes) -> Decoded | None:
    """Return the text in the first Latin charset whose letters and words are of one language."""
    sample = b" ".join(_WORD.findall(data)[:_MAX_WORDS])
    readings: dict[str, str] = {}
    for charset in _LATIN:
        if (reading := _try(sample, charset)) is not None:
            readings.setdefault(reading, charset)
    words = languages.common_words(_WORD.sub(b" ", data[:_DECLARATION_BYTES]).decode())
    fitting = languages.by_likelihood(readings, words)
    for reading in fitting:
        if (text := _try(data, readings[reading])) is not None:
            is_sure = len(fitting) == 1 or _is_long(data)
            return Decoded(text, None if is_sure else _label(readings[reading]))
    return None


def _japanese(data: bytes) -> Decoded | None:
    """Return a text in Shift-JIS with katakana of half width, which statistics do not know."""
    text = _try(data, "cp932")
    return Decoded(text, _label("cp932")) if text and _HALF_WIDTH.search(text) else None


def _wide_charset(data: bytes) -> str | None:
    """Return the charset of UTF-16 or UTF-32 without a mark: some of its bytes are controls."""
    sample = data[:_SAMPLE_BYTES]
    plain = sample.decode("latin_1")
    controls = len(NOT_TEXT.findall(plain))
    if not controls or _ISO_2022.search(plain):
        return None
    if sample.isascii() and controls < _MIN_CONTROLS * len(sample):
        return None
    readings = {
        charset: codecs.getincrementaldecoder(charset)("replace").decode(sample)
        for charset in ("utf_32_le", "utf_32_be", "utf_16_le", "utf_16_be")
    }
    likely = {
        charset: _likelihood(text)
        for charset, text in readings.items()
        if _is_wide(text, needs_signs="16" in charset)
    }
    return max(likely, key=likely.__getitem__, default=None)


def _is_wide(text: str, *, needs_signs: bool) -> bool:
    """Whether nearly all are characters, and some of them signs, or all are of one alphabet."""
    strange = sum(char == _DAMAGED or _is_strange(char) for char in text)
    blocks = _blocks(text) if needs_signs else {0}
    has_signs = not blocks.isdisjoint(_WITH_SIGNS)
    if not text or strange > _MAX_CONTROLS * len(text):
        return False
    return has_signs or (len(blocks) == 1 < len(text) and min(blocks) >= _FIRST_ALPHABET)


def _likelihood(text: str) -> tuple[float, int]:
    """Return a greater value for the right order of bytes: more ASCII, and fewer alphabets."""
    return sum(map(str.isascii, text)) / len(text), -len(_blocks(text))


def _blocks(text: str) -> set[int]:
    return {ord(char) >> 8 for char in text}


def _is_strange(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cn", "Co", "Cs") and char not in "\t\n\r\f\v"


def _is_long(data: bytes) -> bool:
    return sum(byte >= _NOT_ASCII for byte in data[:100_000]) >= _SURE_FROM_BYTES


def _label(charset: str) -> str:
    return codecs.lookup(charset).name


def _try(data: bytes, charset: str, errors: str = "strict") -> str | None:
    try:
        return data.decode(charset, errors)
    except UnicodeDecodeError:
        return None
