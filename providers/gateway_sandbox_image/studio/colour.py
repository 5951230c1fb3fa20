"""Colours as `#rrggbb`, mixed in OKLab for clean gradients."""

from functools import cache

_Triple = tuple[float, float, float]
_GAMMA_KNEE = 0.0031308  # where sRGB turns from a line into a curve


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue, 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@cache
def mix(first: str, second: str, share: float) -> str:
    """Return the colour `share` (0 to 1) of the way from `first` to `second`."""
    share = min(1.0, max(0.0, share))
    a, b = _to_oklab(first), _to_oklab(second)
    return _from_oklab(
        (
            a[0] + (b[0] - a[0]) * share,
            a[1] + (b[1] - a[1]) * share,
            a[2] + (b[2] - a[2]) * share,
        )
    )


def ramp(colours: tuple[str, ...], position: float) -> str:
    """Return the colour at `position` (0 to 1) along evenly spaced colours."""
    place = min(1.0, max(0.0, position)) * (len(colours) - 1)
    index = min(int(place), len(colours) - 2)
    return mix(colours[index], colours[index + 1], place - index)


@cache
def _to_oklab(colour: str) -> _Triple:
    """Convert after Björn Ottosson, https://bottosson.github.io/posts/oklab."""
    r, g, b = (_linear(channel / 255) for channel in rgb(colour))
    l_ = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    m_ = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    s_ = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * l_ + 0.7936177850 * m_ - 0.0040720468 * s_,
        1.9779984951 * l_ - 2.4285922050 * m_ + 0.4505937099 * s_,
        0.0259040371 * l_ + 0.7827717662 * m_ - 0.8086757660 * s_,
    )


def _from_oklab(lab: _Triple) -> str:
    lightness, a, b = lab
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    channels = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _encoded(channel)):02x}" for channel in channels)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 - the sRGB standard's knee


def _encoded(channel: float) -> float:
    channel = min(1.0, max(0.0, channel))
    if channel <= _GAMMA_KNEE:
        return channel * 12.92
    return float(1.055 * channel ** (1 / 2.4) - 0.055)
