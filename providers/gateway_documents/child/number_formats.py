"""Shows a number as Excel does with the cell's number format (ECMA-376 part 1, §18.8.31)."""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache

# Literals in quotes or behind a backslash, conditions and colours in brackets, fill and padding.
_TOKEN = re.compile(r'"([^"]*)"|\\(.)|\[([^\]]*)\]|[_*].|([0#?.,]+)|(%)|([eE][+-]0+)|(General)|(.)')
# One that is not in quotes: it separates the formats of positive, negative and zero.
_SEMICOLON = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*\Z)')
_CURRENCY = re.compile(r"\$([^-\]]*)")
# Number formats of ECMA-376 part 1, §18.8.30, by their number.
BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)",
    48: "##0.0E+0",
}
# A larger float would show digits that it does not hold.
_EXACT_BELOW = 1e15


def general(value: float) -> str:
    """Return a number without a format, as short as it is exact."""
    if value == int(value) and abs(value) < _EXACT_BELOW:
        return str(int(value))
    return f"{value:.15g}"


@lru_cache(maxsize=1024)
def formatter(code: str) -> Callable[[float], str]:
    """Return the function that shows a number with a format code."""
    sections = _SEMICOLON.split(code)
    if any(re.search(r"\[[<>=]", section) for section in sections):
        return general

    def show(value: float) -> str:
        section, shown = sections[0], value
        if value < 0 and len(sections) > 1:
            section, shown = sections[1], -value
        elif value == 0 and len(sections) > 2:  # noqa: PLR2004 - the third one is for zero
            section = sections[2]
        return _show(section, shown)

    return show


def _show(section: str, value: float) -> str:
    before, digits, after, percent = "", "", "", False
    for quoted, escaped, bracket, places, sign, exponent, is_general, other in _TOKEN.findall(
        section
    ):
        is_mask = bool(places and after)  # as of telephone numbers
        if exponent or is_general or is_mask or other in ("/", "@"):
            return general(value)
        literal = quoted or escaped or sign or other
        if bracket:
            currency = _CURRENCY.match(bracket)
            literal = currency[1] if currency else ""
        if places:
            digits += places
        elif digits:
            after += literal
        else:
            before += literal
        percent = percent or bool(sign)
    if not digits:
        return before
    number = _digits(digits, abs(value) * (100 if percent else 1))
    minus = "-" if value < 0 and number.strip("0.,") else ""
    return f"{minus}{before}{number}{after}".strip()


def _digits(places: str, value: float) -> str:
    """Return a number with the decimals, padding and thousands that the places ask for."""
    whole, _, decimals = places.partition(".")
    # Commas behind the last digit scale by thousands, before or behind the decimals.
    scale = (
        len(places)
        - len(places.rstrip(","))
        + (len(whole) - len(whole.rstrip(",")) if decimals else 0)
    )
    grouped = "," in whole.rstrip(",")
    fixed, optional = decimals.count("0"), len(decimals.replace(",", ""))
    try:
        rounded = Decimal(repr(value / 1000**scale)).quantize(
            Decimal(1).scaleb(-optional), ROUND_HALF_UP
        )
    except InvalidOperation:
        return general(value)
    head, _, tail = f"{rounded:f}".partition(".")
    while len(tail) > fixed and tail.endswith("0"):
        tail = tail[:-1]
    head = head.lstrip("0").zfill(whole.count("0"))
    if grouped and head:
        head = f"{int(head):,}".zfill(whole.count("0"))
    return f"{head}.{tail}" if tail else head
