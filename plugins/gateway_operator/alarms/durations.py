"""Durations as an operator types them, such as `1h`."""

import re

from gateway.errors import WrongValue

_LENGTH = re.compile(r"([1-9][0-9]{0,5})(m|h|d)")
_UNITS_S = {"m": 60.0, "h": 3_600.0, "d": 86_400.0}
ENDS = "ends"


def parse_length(text: str) -> float | None:
    """Return seconds; None for `ends` (until the alarm ends).

    Raises `WrongValue`.
    """
    if text == ENDS:
        return None
    if text == "0":
        return 0.0
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        raise WrongValue(f"{text!r} is no length such as 30m, 1h or 1d; `{ENDS}` is until it ends.")
    return int(match[1]) * _UNITS_S[match[2]]
