"""Characters of the fonts Symbol and Wingdings, which Office files number instead of naming."""

# From U+F020, U+F0A0 and U+F0F1.
_SYMBOL = (
    (0x20, " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟ"),  # noqa: RUF001 - signs that look like others
    (0x50, "ΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"),  # noqa: RUF001 - signs that look like others
    (0xA0, "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉"),  # noqa: RUF001 - signs that look like others
    (0xD0, "∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪"),  # noqa: RUF001 - signs that look like others
    (0xF1, "〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭"),
)
_WINGDINGS = (
    (0x28, "☎✆✉"),
    (0x46, "☞☟✌☺"),
    (0x4C, "☹"),
    (0x6C, "●"),
    (0x6E, "■□"),
    (0x71, "❑❒"),
    (0x76, "❖"),
    (0x81, "①②③④⑤⑥⑦⑧⑨⑩"),
    (0x8C, "❶❷❸❹❺❻❼❽❾❿"),
    (0x9F, "•"),
    (0xA7, "▪□"),
    (0xAB, "★"),
    (0xD8, "➢"),
    (0xDF, "←→↑↓"),
    (0xE8, "➔"),
    (0xEF, "⇦⇨⇧⇩⬄"),
    (0xFB, "✗✓☒☑"),
)
_WINGDINGS_2 = ((0x4F, "✗✓☒☑☒"), (0x97, "●"), (0xA3, "☐"))
_TABLES = {"symbol": _SYMBOL, "wingdings": _WINGDINGS, "wingdings 2": _WINGDINGS_2}
_CHARS = {
    font: {start + at: char for start, chars in table for at, char in enumerate(chars)}
    for font, table in _TABLES.items()
}
# Office puts the 256 characters of such a font here.
_PRIVATE = 0xF000


def character(font: str, code: int) -> str:
    """Return the character of a font by its code; empty for one that has no name."""
    table = _CHARS.get(font.lower())
    place = code & 0xFF if _PRIVATE <= code <= _PRIVATE + 0xFF else code
    if table is not None:
        return table.get(place, "")
    return chr(code) if place == code and 0x20 <= code < 0xD800 else ""  # noqa: PLR2004 - Unicode


def written_out(text: str, font: str) -> str:
    """Return a text with the private characters of a symbol font replaced."""
    first, last = chr(_PRIVATE), chr(_PRIVATE + 0xFF)
    return "".join(
        character(font or "symbol", ord(char)) if first <= char <= last else char for char in text
    )
