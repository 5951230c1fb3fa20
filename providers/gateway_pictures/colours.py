"""The background colours that buyers may name."""

import re

from gateway import InvalidInput

_HEX = re.compile("#(?:[0-9a-f]{3}|[0-9a-f]{6})")
# The named colours of HTML 4, and some of CSS.
_NAMES = {
    "aqua": "#00ffff",
    "beige": "#f5f5dc",
    "black": "#000000",
    "blue": "#0000ff",
    "brown": "#a52a2a",
    "cyan": "#00ffff",
    "fuchsia": "#ff00ff",
    "gold": "#ffd700",
    "gray": "#808080",
    "green": "#008000",
    "grey": "#808080",
    "ivory": "#fffff0",
    "lightblue": "#add8e6",
    "lightgray": "#d3d3d3",
    "lightgrey": "#d3d3d3",
    "lime": "#00ff00",
    "magenta": "#ff00ff",
    "maroon": "#800000",
    "navy": "#000080",
    "olive": "#808000",
    "orange": "#ffa500",
    "pink": "#ffc0cb",
    "purple": "#800080",
    "red": "#ff0000",
    "silver": "#c0c0c0",
    "teal": "#008080",
    "turquoise": "#40e0d0",
    "white": "#ffffff",
    "yellow": "#ffff00",
}


def read_colour(prompt: str) -> str:
    """Return a prompt's colour as `#rrggbb`, or nothing for a transparent background.

    Raises `InvalidInput` for a prompt that is no colour.
    """
    word = prompt.strip().lower().replace(" ", "")
    if word in ("", "transparent", "none"):
        return ""
    if word in _NAMES:
        return _NAMES[word]
    if _HEX.fullmatch(word) is None:
        raise InvalidInput(
            "The prompt is no colour: send a name such as white, a code such as #ffcc00, or no "
            "prompt for a transparent background."
        )
    digits = word[1:]
    return word if len(digits) == 6 else "#" + "".join(digit * 2 for digit in digits)  # noqa: PLR2004 - #rrggbb
