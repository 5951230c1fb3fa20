"""The operator's colour as a stylesheet, in tones readable on light and dark backgrounds."""

from collections.abc import Callable

# The pages' backgrounds, as in frontend/src/styles.css.
_LIGHT = (251, 250, 247)
_DARK = (18, 24, 31)
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
# WCAG 2.2, level AA, for normal text.
_CONTRAST = 4.5
_STEPS = 20
Color = tuple[int, int, int]


def stylesheet(color: str) -> str:
    """Return the rules that set the pages' accent; `color` is `#rrggbb`, checked by the settings.

    A colour with enough contrast is not changed. Text on it is white or black.
    """
    chosen = _parse(color)
    return (
        f":root{{{_rules(_readable(chosen, _LIGHT, _BLACK))}}}"
        f"@media(prefers-color-scheme:dark){{:root{{{_rules(_readable(chosen, _DARK, _WHITE))}}}}}"
    )


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _rules(accent: Color) -> str:
    on_accent = _WHITE if contrast(accent, _WHITE) >= contrast(accent, _BLACK) else _BLACK
    return f"--accent:{_write(accent)};--on-accent:{_write(on_accent)}"


def _readable(color: Color, ground: Color, towards: Color) -> Color:
    """Return the tone nearest to `color` with enough contrast to `ground`."""
    tones = (_mix(color, towards, step / _STEPS) for step in range(_STEPS + 1))
    return next(tone for tone in tones if contrast(tone, ground) >= _CONTRAST)


def _mix(one: Color, other: Color, share: float) -> Color:
    return _each(lambda index: round(one[index] + (other[index] - one[index]) * share))


def _each(channel: Callable[[int], int]) -> Color:
    return channel(0), channel(1), channel(2)


def _luminance(color: Color) -> float:
    red, green, blue = (_linear(value / 255) for value in color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    # sRGB, as WCAG 2.2 defines relative luminance.
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4  # noqa: PLR2004


def _parse(color: str) -> Color:
    return _each(lambda index: int(color[1 + 2 * index : 3 + 2 * index], 16))


def _write(color: Color) -> str:
    return "#" + "".join(f"{value:02x}" for value in color)
