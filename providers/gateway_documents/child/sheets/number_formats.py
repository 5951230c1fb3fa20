"""Shows a number as Excel does with the cell's number format (ECMA-376 part 1, §18.8.31)."""

import re
from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache

import attrs

# Literals in quotes or behind a backslash, conditions and colours in brackets, fill and padding.
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[(?P<bracket>[^\]]*)\]|[_*].'
    r"|(?P<place>[0#?])|(?P<point>\.)|(?P<comma>,)|(?P<percent>%)|[eE](?P<exponent>[+-])"
    r"|(?P<slash>/)|(?P<general>General)|(?P<text>@)|(?P<other>.)"
)
# One that is not in quotes: it separates the formats of positive, negative and zero.
_SEMICOLON = re.compile(r';(?=(?:[^"]*"[^"]*")*[^"]*\Z)')
_CURRENCY = re.compile(r"\$([^-\]]*)")
_CONDITION = re.compile(r"\[(<=|>=|<>|<|>|=)\s*(-?[\d.]+)\]")
_TESTS: dict[str, Callable[[float, float], bool]] = {
    "<": float.__lt__,
    "<=": float.__le__,
    ">": float.__gt__,
    ">=": float.__ge__,
    "=": float.__eq__,
    "<>": float.__ne__,
}
_NOT_FORMAT = re.compile(r'"[^"]*"|\\.|\[(?!h+\]|m+\]|s+\])[^\]]*\]|[_*].|General', re.IGNORECASE)
_DATE = re.compile(r"[ymdhs]", re.IGNORECASE)
_ELAPSED = re.compile(r"\[(h+|m+|s+)\](?::(m+|s+))?(?::(s+))?(\.0+)?", re.IGNORECASE)
_SECONDS = {"h": 3600, "m": 60, "s": 1}
# Number formats of ECMA-376 part 1, §18.8.30, by their number, and those that Excel adds.
BUILT_IN = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: '"$"#,##0;("$"#,##0)',
    6: '"$"#,##0;("$"#,##0)',
    7: '"$"#,##0.00;("$"#,##0.00)',
    8: '"$"#,##0.00;("$"#,##0.00)',
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)",
    41: '#,##0;(#,##0);"-"',
    42: '"$"#,##0;"$"(#,##0);"$"-',
    43: '#,##0.00;(#,##0.00);"-"',
    44: '"$"#,##0.00;"$"(#,##0.00);"$"-',
    48: "##0.0E+0",
}
# Literals, digits and decimals, literals. Each sign stands for a token.
_USUAL = re.compile(r"(L*)(#,##0|0+)(\.0+)?([L%]*)")
# A larger float would show digits that it does not hold.
_EXACT_BELOW = 1e15
_MAX_SECTIONS = 4
_POSITIVE, _NEGATIVE, _ZERO = 0, 1, 2


def general(value: float) -> str:
    """Return a number without a format, as short as it is exact."""
    if value == int(value) and abs(value) < _EXACT_BELOW:
        return str(int(value))
    return f"{value:.15g}"


def is_date(code: str) -> bool:
    """Whether a format shows a number as a date or a time."""
    return bool(_DATE.search(_NOT_FORMAT.sub("", _SEMICOLON.split(code)[0])))


def elapsed(code: str, seconds: float) -> str | None:
    """Return a duration in the format such as `[h]:mm`; None with another format."""
    found = _ELAPSED.search(code)
    if found is None:
        return None
    parts = [part.lower() for part in found.groups()[:-1] if part]
    decimals = len(found[4]) - 1 if found[4] else 0
    left = abs(Decimal(seconds)).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    shown = []
    for at, part in enumerate(parts):
        count, left = divmod(left, _SECONDS[part[0]])
        is_last = at == len(parts) - 1
        number = f"{count + left:.{decimals}f}" if is_last and part[0] == "s" else f"{count:.0f}"
        width = len(part) + (decimals + 1 if decimals and is_last else 0)
        shown.append(number.zfill(width))
    return f"{'-' if seconds < 0 else ''}{':'.join(shown)}"


@lru_cache(maxsize=1024)
def formatter(code: str) -> Callable[[float], str]:
    """Return the function that shows a number with a format code."""
    sections = [_Section.of(section) for section in _SEMICOLON.split(code)[:_MAX_SECTIONS]]
    if len(sections) > _NEGATIVE and not any(section.condition for section in sections):
        sections[_NEGATIVE] = attrs.evolve(sections[_NEGATIVE], is_negative=True)

    has_conditions = any(section.condition for section in sections)

    def show(value: float) -> str:
        try:
            chosen = _meeting(value, sections) if has_conditions else _by_sign(value, sections)
            return chosen.show(value)
        except (InvalidOperation, OverflowError):
            return general(value)

    return show


@lru_cache(maxsize=1024)
def text_formatter(code: str) -> Callable[[str], str] | None:
    """Return the function that shows a text with a format code, if that has a part for texts."""
    sections = _SEMICOLON.split(code)
    section = sections[-1] if len(sections) in (1, _MAX_SECTIONS) else ""
    tokens = list(_tokens(section))
    if not any(kind == "text" for kind, _ in tokens):
        return None
    return lambda text: "".join(
        text if kind == "text" else sign for kind, sign in tokens if kind in ("text", "literal")
    )


def _meeting(value: float, sections: Sequence["_Section"]) -> "_Section":
    fitting = (one for one in sections if one.condition is None or one.condition(value))
    return next(fitting, sections[-1])


def _by_sign(value: float, sections: Sequence["_Section"]) -> "_Section":
    if value < 0 and len(sections) > _NEGATIVE:
        return sections[_NEGATIVE]
    return sections[_ZERO if value == 0 and len(sections) > _ZERO else _POSITIVE]


def _tokens(section: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each token; what only takes up room is left out."""
    for found in _TOKEN.finditer(section):
        kind, sign = found.lastgroup or "", found[found.lastgroup or 0]
        if kind == "bracket":
            currency = _CURRENCY.match(sign)
            yield "literal", currency[1] if currency else ""
        elif kind in ("quoted", "escaped", "other"):
            yield "literal", sign
        elif kind:
            yield kind, sign


@attrs.frozen
class _Section:
    """One of the formats that semicolons separate."""

    tokens: Sequence[tuple[str, str]]
    condition: Callable[[float], bool] | None = None
    is_negative: bool = False
    """Whether it is for negative numbers only, so that it has the sign itself."""
    _show: Callable[[float], str] = attrs.field(init=False)

    @_show.default
    def _(self) -> Callable[[float], str]:
        return _way(self.tokens)

    @classmethod
    def of(cls, section: str) -> "_Section":
        """Return a section, with its condition such as `[<100]`."""
        found = _CONDITION.search(section)
        condition = None
        if found is not None:
            test, limit = _TESTS[found[1]], float(found[2])

            def condition(value: float) -> bool:
                return test(float(value), limit)

        # A condition that only negative numbers meet.
        is_negative = found is not None and found[1] in ("<", "<=") and float(found[2]) <= 0
        return cls(list(_tokens(section)), condition, is_negative)

    def show(self, value: float) -> str:
        """Return a number as this section shows it."""
        shown = self._show(abs(value))
        is_negative = value < 0 and not self.is_negative and shown.strip("0.,% ")
        return f"-{shown}".strip() if is_negative else shown.strip()


def _way(tokens: Sequence[tuple[str, str]]) -> Callable[[float], str]:
    """Return the function that shows a positive number."""
    kinds = {kind for kind, _ in tokens}
    if kinds & {"general", "text"}:
        return lambda size: _joined(tokens, general(size))
    if "place" not in kinds:
        return lambda _: _joined(tokens, "") if kinds & {"literal", "percent"} else ""
    if "slash" in kinds:
        return lambda size: _fraction(tokens, size)
    if "exponent" in kinds:
        return lambda size: _scientific(tokens, size)
    return _usual(tokens) or (lambda size: _plain(tokens, size))


def _usual(tokens: Sequence[tuple[str, str]]) -> Callable[[float], str] | None:
    """Return the function for formats such as `#,##0.00`, five times as fast as `_plain`."""
    found = _USUAL.fullmatch("".join("L" if kind == "literal" else sign for kind, sign in tokens))
    if found is None:
        return None
    before = "".join(sign for _, sign in tokens[: found.end(1)])
    after = "".join(sign for _, sign in tokens[found.start(4) :])
    unit = Decimal(1).scaleb(-max(len(found[3] or "") - 1, 0))
    percents = 2 * found[4].count("%")
    style = ",f" if "," in found[2] else "f"
    width = len(found[2]) + len(found[3] or "") if style == "f" else 0

    def show(size: float) -> str:
        number = Decimal(repr(size)).scaleb(percents).quantize(unit, ROUND_HALF_UP)
        return f"{before}{format(number, style).zfill(width)}{after}"

    return show


def _joined(tokens: Sequence[tuple[str, str]], value: str) -> str:
    """Return the literals of a section, with the value where it belongs."""
    return "".join(
        value if kind in ("general", "text") else sign
        for kind, sign in tokens
        if kind in ("general", "text", "literal", "percent")
    )


def _plain(tokens: Sequence[tuple[str, str]], size: float) -> str:
    kinds = [kind for kind, _ in tokens]
    point = kinds.index("point") if "point" in kinds else len(kinds)
    last = max((at for at in range(point) if kinds[at] == "place"), default=-1)
    # Commas behind the last digit scale by thousands, before or behind the decimals.
    is_grouped = "comma" in kinds[: last + 1]
    thousands = kinds.count("comma") - kinds[: last + 1].count("comma")
    scaled = Decimal(repr(size)).scaleb(2 * kinds.count("percent") - 3 * thousands)
    decimals = kinds[point:].count("place")
    rounded = scaled.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    whole, _, tail = f"{rounded:f}".partition(".")
    head = _whole(tokens[:point], whole.lstrip("0"), is_grouped=is_grouped)
    return head + _decimals(tokens[point:], tail)


def _whole(tokens: Sequence[tuple[str, str]], digits: str, *, is_grouped: bool) -> str:
    """Return the digits in their places, from the right; the first place takes all others."""
    shown: list[str] = []
    places = [at for at, (kind, _) in enumerate(tokens) if kind == "place"]
    count, left = 0, digits
    for at in range(len(tokens) - 1, -1, -1):
        kind, sign = tokens[at]
        if kind != "place":
            shown.append(sign if kind in ("literal", "percent") else "")
            continue
        wanted = max(len(left), 1) if at == places[0] else 1
        for _ in range(wanted):
            digit = left[-1:] or {"0": "0", "?": " "}.get(sign, "")
            left = left[:-1]
            if digit and digit != " " and is_grouped and count and count % 3 == 0:
                shown.append(",")
            shown.append(digit)
            count += bool(digit.strip())
    return "".join(reversed(shown)) if places else digits + "".join(reversed(shown))


def _decimals(tokens: Sequence[tuple[str, str]], digits: str) -> str:
    places = [sign for kind, sign in tokens if kind == "place"]
    needed = len(digits)
    while needed and digits[needed - 1] == "0" and places[needed - 1] != "0":
        needed -= 1
    shown, at = "." if needed else "", 0
    for kind, sign in tokens:
        if kind == "place":
            shown += digits[at] if at < needed else ""
            at += 1
        elif kind in ("literal", "percent"):
            shown += sign
    return shown


def _scientific(tokens: Sequence[tuple[str, str]], size: float) -> str:
    kinds = [kind for kind, _ in tokens]
    at = kinds.index("exponent")
    point = kinds.index("point") if "point" in kinds[:at] else at
    step = max(kinds[:point].count("place"), 1)
    number = Decimal(repr(size))
    power = number.adjusted() // step * step if size else 0
    mantissa = _plain(tokens[:at], float(number.scaleb(-power)))
    if len(mantissa.partition(".")[0]) > step:
        # Rounding has added a digit, as of 9.99.
        power += step
        mantissa = _plain(tokens[:at], float(number.scaleb(-power)))
    sign = "-" if power < 0 else "+" if tokens[at][1] == "+" else ""
    behind = tokens[at + 1 :]
    digits = str(abs(power)).zfill([kind for kind, _ in behind].count("place"))
    return f"{mantissa}E{sign}{digits}{_joined(behind, '')}"


def _fraction(tokens: Sequence[tuple[str, str]], size: float) -> str:
    kinds = [kind for kind, _ in tokens]
    slash = kinds.index("slash")
    first = next((at for at in range(slash - 1, -1, -1) if kinds[at] != "place"), -1) + 1
    behind = "".join(sign for kind, sign in tokens[slash + 1 :] if kind in ("place", "literal"))
    fixed = re.match(r"[1-9]\d*", behind)
    places = len(behind) - len(behind.lstrip("0#?"))
    is_mixed = "place" in kinds[:first]
    whole = int(size) if is_mixed else 0
    rest = Decimal(repr(size)) - whole
    if fixed:
        below = int(fixed[0])
        above = int((rest * below).quantize(Decimal(1), ROUND_HALF_UP))
    else:
        part = Fraction(rest).limit_denominator(10 ** max(places, 1) - 1)
        above, below = part.numerator, part.denominator
    if is_mixed and above == below:
        whole, above = whole + 1, 0
    before = "".join(sign for kind, sign in tokens[:first] if kind == "literal").strip(" ")
    after = behind[len(fixed[0]) if fixed else places :]
    parts = [str(whole)] if is_mixed and (whole or not above) else []
    parts += [f"{above}/{below}"] if above or not is_mixed else []
    return f"{before}{' '.join(parts)}{after}"
