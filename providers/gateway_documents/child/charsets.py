"""Decodes text files: by their mark, as UTF-8, by the declared charset, or by a guess."""

import codecs
import encodings.aliases
import re
from collections.abc import Sequence

import attrs
from charset_normalizer import from_bytes

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
# Letters outside ASCII by language, the languages by region. A Latin charset fits if one language
# explains its letters, or else one region does.
_REGIONS = tuple(
    tuple(frozenset(letters + letters.upper()) for letters in region.split())
    for region in (
        (
            "àâæçèéêëîïôùûüœÿ äöüßé áéíñóúü àáâãçéêíóôõúü àèéìîòù àçèéíïòóúü åäöæøéü éëïóöüèá "
            "áæðéíóöúýþ çë"
        ),
        "áčďéěíňóřšťúůýž áäčďéíĺľňóôŕšťúýž ąćęłńóśźż áéíóöőúüű ăâîșțşţ ćčđšž",
        "çğıİöşüâîû",
        "āčēģīķļņšūžõŗ ąčęėįšųūž äõöüšž",
    )
)
_ALPHABETS = tuple(alphabet for region in _REGIONS for alphabet in region)
_REGIONAL_ALPHABETS = tuple(frozenset().union(*region) for region in _REGIONS)
# A sign between letters shows the wrong charset; apostrophes, dashes and quotes do not.
_SIGN_IN_WORD = re.compile(
    r"[^\W\d_](?:[^\w\s\x21-\x7e'\u2019·\-\u2013—“”«»…\xad\xa0]|[²³¹¼½¾])+[^\W\d_]"
)
# The words that tell Latin charsets apart, and how many of them are enough.
_WORD = re.compile(rb"[\x27-\x7e]{0,30}[\x80-\xff][\x27-\xff]{0,30}")
_MAX_WORDS = 5_000
_NOT_ASCII = 0x80
_SURE_FROM_BYTES = 200
# Tab to carriage return, escape and DEL occur in real text; NEL to U+009F do not.
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffe\uffff]")


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
    if control := _NOT_TEXT.search(found.text):
        code = f"U+{ord(control[0]):04X}"
        raise Unreadable(f"The kind of the file is unknown: text has no control character {code}.")
    return found


def _known(data: bytes, *, may_declare: bool) -> Decoded | None:
    declared = _declared(data) if may_declare else None
    # As browsers do: the latter charset has the same characters and more.
    wider = {"latin_1": "cp1252", "shift_jis": "cp932", "gb2312": "gb18030"}.get(declared or "")
    for charset in (_marked(data), "utf_8", declared, wider):
        text = _try(data, charset) if charset is not None else None
        # ISO-2022 and UTF-16 without a mark are valid UTF-8, with control characters.
        if text is not None and "\x1b" not in text and not _NOT_TEXT.search(text):
            return Decoded(text)
    return None


def _marked(data: bytes) -> str | None:
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def _declared(data: bytes) -> str | None:
    """Return the charset that a page names, if it is one of `CHARSETS`."""
    found = _DECLARATION.search(data[:_DECLARATION_BYTES])
    if found is None:
        return None
    name = encodings.normalize_encoding(found[1].decode("ascii")).lower()
    module = encodings.aliases.aliases.get(name, name)
    return module if module in CHARSETS else None


def _guessed(data: bytes) -> Decoded | None:
    if (charset := _wide_charset(data)) and (text := _try(data, charset)) is not None:
        return Decoded(text)
    best = from_bytes(data, cp_isolation=[*_EAST_ASIAN, *_OTHER_SCRIPTS, *_LATIN]).best()
    if best is not None and best.encoding not in _LATIN:
        return Decoded(str(best), None if _is_long(data) else _label(best.encoding))
    return _latin(data) or (Decoded(str(best), _label(best.encoding)) if best else None)


def _latin(data: bytes) -> Decoded | None:
    """Return the text in the first Latin charset whose letters belong to one language or region."""
    words = b" ".join(_WORD.findall(data)[:_MAX_WORDS])
    for alphabets in (_ALPHABETS, _REGIONAL_ALPHABETS):
        fitting: dict[str, str] = {}
        for charset in _LATIN:
            sample = _try(words, charset)
            if sample is not None and _is_plausible(sample, alphabets):
                fitting.setdefault(sample, charset)
        for charset in fitting.values():
            if (text := _try(data, charset)) is not None:
                is_sure = len(fitting) == 1 or _is_long(data)
                return Decoded(text, None if is_sure else _label(charset))
    return None


def _is_plausible(text: str, alphabets: Sequence[frozenset[str]]) -> bool:
    signs = {char for char in set(text) if char > "\x7f"}
    if any(char < "\xa0" for char in signs) or _SIGN_IN_WORD.search(text):
        return False
    letters = {char for char in signs if char.isalpha()} - {"ª", "º"}
    return any(letters <= alphabet for alphabet in alphabets)


def _wide_charset(data: bytes) -> str | None:
    """Return the charset of UTF-16 or UTF-32 without a mark: many of its bytes are NUL."""
    sample = data[:4096]
    nul = tuple(sample[at::4].count(0) > len(sample) / 10 for at in range(4))
    charsets: dict[tuple[bool, ...], str] = {
        (False, True, False, True): "utf_16_le",
        (True, False, True, False): "utf_16_be",
        (False, True, True, True): "utf_32_le",
        (True, True, True, False): "utf_32_be",
        (False, False, True, True): "utf_32_le",
        (True, True, False, False): "utf_32_be",
    }
    return charsets.get(nul)


def _is_long(data: bytes) -> bool:
    return sum(byte >= _NOT_ASCII for byte in data[:100_000]) >= _SURE_FROM_BYTES


def _label(charset: str) -> str:
    return codecs.lookup(charset).name


def _try(data: bytes, charset: str) -> str | None:
    try:
        return data.decode(charset)
    except UnicodeDecodeError:
        return None
