"""Writes the symbols of a text as words, where the voice would leave them out."""

import re
import unicodedata

# The voice reads these signs beside a number.
CURRENCIES = {
    "$": "dollars",
    "£": "pounds",
    "€": "euros",
    "¥": "yen",
    "₹": "rupees",
    "₩": "won",
    "¢": "cents",
}
_REPLACED = str.maketrans(
    {
        "×": " times ",
        "÷": " divided by ",
        "±": " plus or minus ",
        "−": " minus ",
        "⋅": " times ",
        "√": " the square root of ",
        "∞": " infinity ",
        "≈": " about ",
        "≤": " at most ",
        "≥": " at least ",
        "≠": " is not ",
        "→": " to ",
        "⁄": "/",
        "∕": "/",
        "™": "",
        "®": "",
        "©": " copyright ",
        "№": "No. ",
        "‘": "'",
        "’": "'",
        "‐": "-",
        "‑": "-",
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
_FRACTION = re.compile(r"(\d[ \u00a0\u202f]?)?([¼-¾⅐-⅞↉])(?=(\w)?)")
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_POWER = re.compile(rf"(\w+|\)|)([⁺⁻]?)([{_RAISED}]+)")
# The letters of a formula or a unit, such as mc² and km²; longer words have footnotes.
_MOST_BASE = 3
_POWERS = {"2": " squared ", "3": " cubed "}
_GROUPED = re.compile(r"(?<![\d.,-])\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})+(?![\d.,-])")
_ABOUT = re.compile(r"(?<![^\s(])~(?=[$£€]?\d)")
_MONEY_BEHIND = re.compile(
    r"(?<![\w.,$£€¥₹₩])(\d[\d.,]{0,40})[ \u00a0]?([$£€¥₹₩])(?![ \u00a0]?\d|\w)"
)
_LONE_SIGN = re.compile(r"([£€¥₹₩])(?![ \u00a0]?\d)")
_SPACES = re.compile(r"[^\S\n]+")


def without_marks(text: str) -> str:
    """Drop what is not seen, such as soft hyphens, and fold forms such as full width."""
    if not text.isascii():
        text = "".join(char for char in text if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", text)


def spoken(text: str) -> str:
    """Return the text with its symbols as words; characters without a sound are left out."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = _GROUPED.sub(lambda found: re.sub(r"\s", ",", found[0]), text)
        text = _FRACTION.sub(_read_fraction, text)
        text = _POWER.sub(_read_power, text)
        text = without_marks(text.translate(_REPLACED)).translate(_REPLACED)
    text = _ABOUT.sub(" about ", text)
    text = _MONEY_BEHIND.sub(_turn_money, text)
    text = _LONE_SIGN.sub(lambda found: f" {CURRENCIES[found[1]]} ", text)
    text = _LONE_GREEK.sub(lambda found: f" {_GREEK.get(found[1].lower(), '')} ", text)
    # Long runs of spaces would slow the next patterns down.
    return _SPACES.sub(" ", "".join(map(_sound, text)))


def _sound(char: str) -> str:
    if char.isascii() or char in "\n°" or char in CURRENCIES:
        return char
    kind = unicodedata.category(char)[0]
    if kind == "M":
        return ""
    return " " if kind in "CS" else char


def _read_fraction(found: re.Match[str]) -> str:
    whole = f"{found[1].strip()} and " if found[1] else ""
    number = unicodedata.normalize("NFKC", found[2]).replace("⁄", "/")
    return f"{whole}{number}{' ' if found[3] else ''}"


def _read_power(found: re.Match[str]) -> str:
    """Read 10⁶, x² and m²; leave out the number of a footnote."""
    base, sign, raised = found.groups()
    power = unicodedata.normalize("NFKC", raised)
    if base.isalpha() and len(base) > _MOST_BASE:
        return f"{base} "
    if not base:
        return f" {sign and '-'}{power} "
    if not sign and power in _POWERS:
        return base + _POWERS[power]
    return f"{base} to the power of {'-' if sign == '⁻' else ''}{power} "


def _turn_money(found: re.Match[str]) -> str:
    number = found[1].rstrip(".,")
    return f"{found[2]}{number}{found[1][len(number) :]}"
