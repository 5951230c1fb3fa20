"""Writes a text as people read it aloud, where the voice's own rules fall short.

The voice itself reads plain numbers, dates, times, money, units and titles. These rules come first:
marks of Markdown, addresses, file names, versions, phone numbers, long numbers and symbols.
"""

import re
import unicodedata

from gateway_speech.child import addresses

# Longer runs are identifiers or phone numbers, which people read digit by digit.
_MOST_DIGITS_AS_NUMBER = 12
_REPLACED = str.maketrans(
    {
        "²": " squared ",
        "³": " cubed ",
        "½": " one half ",
        "¼": " one quarter ",
        "¾": " three quarters ",
        "×": " times ",
        "÷": " divided by ",
        "±": " plus or minus ",
        "≈": " about ",
        "≤": " at most ",
        "≥": " at least ",
        "≠": " is not ",
        "→": " to ",
        "™": "",
        "®": "",
        "©": " copyright ",
        "‘": "'",
        "’": "'",
    }
)
_GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "θ": "theta",
    "λ": "lambda",
    "μ": "mu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "phi",
    "χ": "chi",
    "ψ": "psi",
    "ω": "omega",
}
_LONE_GREEK = re.compile(r"(?<!\w)([Ͱ-Ͽ])(?!\w)")
_SHORT = {
    "e.g.": "for example",
    "i.e.": "that is",
    "a.k.a.": "also known as",
    "cf.": "compare",
    "w/": "with",
    "w/o": "without",
    "24/7": "twenty-four seven",
}
_SHORT_FORM = re.compile(
    r"(?<![\w/.])("
    + "|".join(re.escape(one) for one in sorted(_SHORT, key=len, reverse=True))
    + r")(?![\w/])",
    re.IGNORECASE,
)
# Marks of Markdown; a link is read as its words.
_MARKDOWN = (
    (re.compile(r"!?\[([^\[\]\n]{1,500})\]\([^()\s]{0,2000}\)"), r"\1"),
    (re.compile(r"(?m)^[ \t]{0,8}(?:#{1,6}|[-*+•]|>)[ \t]+"), ""),
    (re.compile(r"(?m)^[ \t]*(?:[-*_=][ \t]*){3,}$"), ""),
    (re.compile(r"(?m)^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*:?-*:?[ \t]*$"), ""),
    (re.compile(r"[`|\[\]{}]+"), " "),
    (re.compile(r"(?<!\w)[*_~]{1,3}(?=\S)|(?<=\S)[*_~]{1,3}(?!\w)"), ""),
)
_REPEATED = re.compile(r"([^\w\s.])\1{2,}")
_DASHES = re.compile(r"(?<=\s)-{1,3}(?=\s)|(?<=\w)--(?=\w)")
_DAY = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)(?![\d.])")
_DOTTED = re.compile(r"(?<![\w.])v?(\d{1,5}(?:\.\d{1,5}){2,5})(?!\.?\d)")
_GROUPS = re.compile(r"(?<![\d.,-])\d{1,3}(?:[ \u202f]\d{3}){1,4}(?![\d.,-]|[ \u202f]\d)")
_PHONE = re.compile(r"(?<![\w.,/-])(?:\+|\(?0|\()\d?[\d ()/-]{5,24}\d(?![\w-]|[.,:]\d)")
_HYPHENED = re.compile(r"(?<![\w.-])(?!\d{4}-\d\d-\d\d(?!-))\d{1,6}(?:-\d{1,7}){2,6}(?![\w-])")
_LONG = re.compile(rf"(?<![\d.,])(?:\d{{{_MOST_DIGITS_AS_NUMBER + 1},}}|0\d+)(?![\d.,:/-]*\d)")
_LONG_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3}){4,}(?![\d,]|\.\d)")
_LONG_FRACTION = re.compile(r"(\d\.)(\d{13,})")
_MIXED = re.compile(r"(?<!\w)(?=[a-zA-Z]*\d)(?=\d*[a-zA-Z])[a-zA-Z\d]{8,40}(?!\w)")
_ORDINAL_OR_UNIT = re.compile(r"\d+[a-zA-Z]{1,4}|[a-zA-Z]+\d{1,4}")
_PARAGRAPHS = re.compile(r"\s*\n\s*\n\s*")


def spoken(text: str) -> str:
    """Return the text for the voice; empty lines stay between paragraphs."""
    text = _plain(text)
    for pattern, replacement in _MARKDOWN:
        text = pattern.sub(replacement, text)
    text = addresses.spoken(text)
    text = _SHORT_FORM.sub(lambda found: _SHORT[found[0].lower()], text)
    text = _numbers(text)
    text = _REPEATED.sub(" ", text)
    text = _DASHES.sub(" — ", text)
    lines = (" ".join(one.split()) for one in _PARAGRAPHS.sub("\0", text).split("\0"))
    return "\n\n".join(one for one in lines if any(map(str.isalnum, one)))


def _plain(text: str) -> str:
    """Replace symbols by words, and drop those without a sound."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").translate(_REPLACED)
    text = unicodedata.normalize("NFKC", text)
    text = _LONE_GREEK.sub(lambda found: f" {_GREEK.get(found[1].lower(), '')} ", text)
    return "".join(char if _has_sound(char) else " " for char in text)


def _has_sound(char: str) -> bool:
    if char in "\n°$€£¥^`|~+<=>":
        return True
    return char.isascii() or unicodedata.category(char)[0] not in "CSM"


def _numbers(text: str) -> str:
    text = _DAY.sub(_read_day, text)
    text = _GROUPS.sub(lambda found: re.sub(r"\s", ",", found[0]), text)
    text = _PHONE.sub(lambda found: _digits(found[0]), text)
    text = _HYPHENED.sub(lambda found: _digits(found[0]), text)
    text = _DOTTED.sub(_read_dotted, text)
    text = _LONG_GROUPED.sub(lambda found: _digits(found[0].replace(",", "")), text)
    text = _LONG_FRACTION.sub(lambda found: f"{found[1]}{found[2][:3]} and so on", text)
    text = _LONG.sub(lambda found: _digits(found[0]), text)
    return _MIXED.sub(_read_mixed, text)


def _read_day(found: re.Match[str]) -> str:
    day, month = int(found[1]), int(found[2])
    is_date = 1 <= day <= 31 and 1 <= month <= 12  # noqa: PLR2004 - a calendar
    return f"{found[3]}-{month:02}-{day:02}" if is_date else found[0]


def _read_dotted(found: re.Match[str]) -> str:
    """Read an IP address with dots, and a version with points."""
    parts = found[1].split(".")
    word = " dot " if len(parts) == 4 else " point "  # noqa: PLR2004 - an IPv4 address
    start = "version " if found[0][0] == "v" else ""
    return start + word.join(parts)


def _read_mixed(found: re.Match[str]) -> str:
    """Spell an identifier such as 0x1f4aE9; leave words such as 100th and covid19."""
    word = found[0]
    return word if _ORDINAL_OR_UNIT.fullmatch(word) else _spelled(word)


def _spelled(word: str) -> str:
    groups = (word[at : at + 4] for at in range(0, len(word), 4))
    return ", ".join(" ".join(group.upper()) for group in groups)


def _digits(text: str) -> str:
    """Read digit by digit, with pauses between groups."""
    groups = re.findall(r"\d+", text)
    if len(groups) == 1:
        groups = [text[at : at + 3] for at in range(0, len(text), 3)]
    plus = "plus " if text.startswith("+") else ""
    return plus + ", ".join(" ".join(group) for group in groups)
