"""Amounts, times and lists as words."""

from collections.abc import Iterable

_UNITS = 10**6
_PERIODS_S = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))
_MINUS = "\u2212"


def usdc(units: int) -> str:
    """Return an amount in units of 10⁻⁶ with at least two decimals."""
    whole, rest = divmod(abs(units), _UNITS)
    decimals = f"{rest:06}".rstrip("0").ljust(2, "0")
    return f"{_MINUS if units < 0 else ''}{whole:,}.{decimals}"


def age(seconds: float) -> str:
    """Return a duration in its largest unit, such as `3 min`."""
    for size, unit in _PERIODS_S:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def counted(number: int, word: str) -> str:
    """Return a number of things, such as `1 refund` or `1,200 refunds`."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def join(words: Iterable[str]) -> str:
    """Return words as a list in a sentence, such as `a, b and c`."""
    found = list(words)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"


def sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?")) else f"{text}."
