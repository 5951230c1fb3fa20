"""Writes dates, phone numbers and other numbers in a form that the voice reads rightly.

The voice itself reads times, most dates, years, ranges of them, money and grouped numbers.
"""

import re

# Longer runs are identifiers or phone numbers, which people read digit by digit.
_MOST_DIGITS_AS_NUMBER = 12
_LEAST_PHONE, _MOST_PHONE = 7, 15
_ONE_GROUP = 4
_LEAST_IDENTIFIER, _LEAST_CARD = 9, 16
_DOTTED_DAY = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.((?:19|20)\d\d)(?!\d|\.\d)")
_DASHED_DAY = re.compile(r"(?<![\w.-])(\d{1,2})-(\d{1,2})-((?:19|20)\d\d)(?![\w-])")
_YEAR_FIRST = re.compile(r"(?<![\w./])((?:19|20)\d\d)[/.](\d{1,2})[/.](\d{1,2})(?![\w/]|\.\d)")
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::00|(:\d\d))?(?:\.\d{1,9})?(Z?)(?!\w)")
_MONTH = re.compile(
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? ?$", re.IGNORECASE
)
_DOTTED = re.compile(r"(?<![\w.])v?(\d{1,5}(?:\.\d{1,5}){2,5})(?!\.?\d)")
_GROUPS = re.compile(r"(?<![\d.,-])(?<!\d )[1-9]\d{0,2}(?: \d{3}){0,3} 000(?![\d.,-]| \d)")
_PHONE = re.compile(
    r"(?<![\w.,:/-])(?:\+\d{1,4}[\d ()/-]{5,24}\d|\(0?\d{2,4}\) ?\d{2,8}(?:[ -]\d{2,8}){0,4}"
    r"|0\d{1,4}(?:[ -]\d{2,8}){1,5})(?![\w-]|[.,:/]\d)"
)
_HYPHENED = re.compile(r"(?<![\w.-])(?!\d{4}-\d\d-\d\d(?!-))\d{1,6}(?:-\d{1,7}){2,6}(?![\w-])")
_RANGE = re.compile(
    r"(?<![\w.,-])([$£€]?\d[\d.,]{0,20}(?<=\d))[-–]([$£€]?\d[\d.,]{0,20}(?<=\d))(?![\w-]|[.,]\d)"
)
_PLAIN_RANGE = re.compile(r"\d{1,4}[-–]\d{1,4}")
_POSTAL = re.compile(r"\d{5}-\d{4}")
_TIMES = re.compile(r"(?<=\d:\d\d) ?[-–] ?(?=\d{1,2}:\d\d)")
_PRODUCT = re.compile(r"(?<=\d) ?\* ?(?=\d)")
_NEGATIVE = re.compile(r"(?<![\w.,)])(?:[-–](?=[$£€]\d)|–(?=\d))")
_EUROPEAN = re.compile(r"(?<![\w.,-])(\d{1,3}(?:\.\d{3}){1,4}),(\d\d)(?![\d.,-]\d|\w)")
_LISTED = re.compile(r"(?<![\d.])\d{1,40}(?:,+\d{1,40})+(?!\d)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3}){1,4}")
_INDIAN = re.compile(r"\d{1,2}(?:,\d\d){1,4},\d{3}")
_LONG_GROUPED = re.compile(r"\d{1,3}(?:,\d{3}){5,}")
_LONG_FRACTION = re.compile(r"(\d\.)(\d{13,})")
_LONG = re.compile(
    rf"(?<![\d.,])\d{{{_MOST_DIGITS_AS_NUMBER + 1},}}|(?<![\w.,:/-])0\d{{2,}}(?![.,:/-]?\d)"
)
_MIXED = re.compile(r"(?<!\w)(?=[a-zA-Z]*\d)(?=\d*[a-zA-Z])[a-zA-Z\d]{8,40}(?!\w)")
_ORDINAL_OR_UNIT = re.compile(r"\d+[a-zA-Z]{1,4}|[a-zA-Z]+\d{1,4}")


def spoken(text: str) -> str:
    """Return the text with its numbers as the voice reads them rightly."""
    text = _INSTANT.sub(_read_instant, text)
    text = _DOTTED_DAY.sub(lambda found: _iso(found[0], found[3], found[2], found[1]), text)
    text = _YEAR_FIRST.sub(lambda found: _iso(found[0], found[1], found[2], found[3]), text)
    text = _DASHED_DAY.sub(lambda found: found[0].replace("-", "/"), text)
    text = _PHONE.sub(_read_phone, text)
    text = _GROUPS.sub(lambda found: found[0].replace(" ", ","), text)
    text = _HYPHENED.sub(_read_hyphened, text)
    text = _RANGE.sub(_read_range, text)
    text = _TIMES.sub(" to ", text)
    text = _PRODUCT.sub(" times ", text)
    text = _NEGATIVE.sub("minus ", text)
    text = _DOTTED.sub(_read_dotted, text)
    text = _EUROPEAN.sub(lambda found: f"{found[1].replace('.', ',')}.{found[2]}", text)
    text = _LISTED.sub(_read_listed, text)
    text = _LONG_FRACTION.sub(lambda found: f"{found[1]}{found[2][:3]} and so on", text)
    text = _LONG.sub(lambda found: _digits(found[0]), text)
    return _MIXED.sub(_read_mixed, text)


def _iso(text: str, year: str, month: str, day: str) -> str:
    is_date = 1 <= int(day) <= 31 and 1 <= int(month) <= 12  # noqa: PLR2004 - a calendar
    return f"{year}-{int(month):02}-{int(day):02}" if is_date else text


def _read_instant(found: re.Match[str]) -> str:
    day, minute, seconds, zone = found.groups()
    return f"{day} at {minute}{seconds or ''}{' UTC' if zone else ''}"


def _read_phone(found: re.Match[str]) -> str:
    text = found[0]
    count = sum(map(str.isdigit, text))
    is_date = _MONTH.search(found.string[max(0, found.start() - 12) : found.start()])
    return text if is_date or not _LEAST_PHONE <= count <= _MOST_PHONE else _digits(text)


def _read_hyphened(found: re.Match[str]) -> str:
    """Read an ISBN or a card's number by its digits, and others as numbers in a row."""
    groups = found[0].split("-")
    count, lengths = sum(map(len, groups)), set(map(len, groups))
    is_identifier = count >= (_LEAST_IDENTIFIER if len(lengths) > 1 else _LEAST_CARD)
    return _digits(found[0]) if is_identifier else ", ".join(groups)


def _read_range(found: re.Match[str]) -> str:
    """Read what the voice's own rule for ranges leaves out, and a US postal code."""
    if _POSTAL.fullmatch(found[0]):
        return _digits(found[0])
    return found[0] if _PLAIN_RANGE.fullmatch(found[0]) else f"{found[1]} to {found[2]}"


def _read_dotted(found: re.Match[str]) -> str:
    """Read an IP address with dots, and a version with points."""
    parts = found[1].split(".")
    word = " dot " if len(parts) == 4 else " point "  # noqa: PLR2004 - an IPv4 address
    start = "version " if found[0][0] == "v" else ""
    return start + word.join(parts)


def _read_listed(found: re.Match[str]) -> str:
    """Leave a grouped number; one with too many groups is read by its digits, a list apart."""
    text = found[0]
    if _GROUPED.fullmatch(text):
        return text
    if _INDIAN.fullmatch(text):
        return f"{int(text.replace(',', '')):,}"
    if _LONG_GROUPED.fullmatch(text):
        return _digits(text.replace(",", ""))
    return re.sub(",+", ", ", text)


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
        size = len(text) if len(text) <= _ONE_GROUP else 3
        groups = [text[at : at + size] for at in range(0, len(text), size)]
    plus = "plus " if text.startswith("+") else ""
    return plus + ", ".join(" ".join(group) for group in groups)
