"""The operator's logo, and colour as a stylesheet, in tones readable on light and dark pages."""

from collections.abc import Callable, Sequence

import attrs

from gateway_shop.logo import Logo, read_logo
from gateway_shop.settings import ShopSettings

Color = tuple[int, int, int]
# The backgrounds of the pages: `--card`, `--paper` and `--sunk` of frontend/src/styles.css.
_LIGHT = ((255, 255, 255), (251, 250, 247), (244, 242, 236))
_DARK = ((26, 34, 43), (18, 24, 31), (21, 28, 36))
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
# The share of the accent in a card's background behind text in the accent's colour.
_TINT = 0.12
# WCAG 2.2, level AA, for normal text.
_CONTRAST = 4.5
_STEPS = 100


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Brand:
    """The operator's identity on the pages."""

    color: str
    logo: Logo | None
    logo_url: str

    @classmethod
    def of(cls, settings: ShopSettings) -> "Brand":
        """Read the logo; raises `SettingsError` for a file that is no safe picture."""
        logo = read_logo(settings)
        return cls(color=settings.brand_color, logo=logo, logo_url=settings.logo_url)

    @property
    def logo_path(self) -> str:
        """The address of the logo for a page; empty without one."""
        return f"/brand/{self.logo.name}" if self.logo else self.logo_url

    def describe(self) -> str:
        """Return the finding for `gateway check`: the logo, and the tones that buyers see."""
        logo = f"the logo is {self.logo.media_type}" if self.logo else "no logo file"
        return f"{logo}; {_describe_color(self.color)}"


def _describe_color(color: str) -> str:
    if not color:
        return "the pages have their own colour"
    light, dark = (_write(tone) for tone in _tones(color))
    adjusted = [
        f"{tone} on {pages} pages"
        for tone, pages in ((light, "light"), (dark, "dark"))
        if tone != color.lower()
    ]
    if not adjusted:
        return f"{color} is readable everywhere"
    return f"{color} alone would be hard to read, so buyers see {' and '.join(adjusted)}"


def stylesheet(color: str) -> str:
    """Return the rules that set the pages' accent; `color` is `#rrggbb`, checked by the settings.

    A colour with enough contrast is not changed. Text on it is white or black.
    """
    light, dark = _tones(color)
    return f":root{{{_rules(light)}}}@media(prefers-color-scheme:dark){{:root{{{_rules(dark)}}}}}"


def _tones(color: str) -> tuple[Color, Color]:
    chosen = _parse(color)
    return _readable(chosen, _LIGHT, _BLACK), _readable(chosen, _DARK, _WHITE)


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colours, from 1 to 21 (WCAG 2.2)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _rules(accent: Color) -> str:
    is_white = contrast(accent, _WHITE) >= contrast(accent, _BLACK)
    text, away = (_WHITE, _BLACK) if is_white else (_BLACK, _WHITE)
    rules = {"--accent": accent, "--on-accent": text, "--off-accent": away}
    return ";".join(f"{name}:{_write(color)}" for name, color in rules.items())


def _readable(color: Color, grounds: Sequence[Color], towards: Color) -> Color:
    """Return the tone nearest to `color` with enough contrast to each ground and a tinted card."""
    tones = (_mix(color, towards, step / _STEPS) for step in range(_STEPS + 1))
    return next(tone for tone in tones if _least_contrast(tone, grounds) >= _CONTRAST)


def _least_contrast(tone: Color, grounds: Sequence[Color]) -> float:
    tinted = _mix(grounds[0], tone, _TINT)
    return min(contrast(tone, ground) for ground in (*grounds, tinted))


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
