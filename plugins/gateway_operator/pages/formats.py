"""Template filters for amounts, times and addresses."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from gateway_operator.desk import wording

UNKNOWN = "unknown"
# Stands for no value.
_NONE = "\u2013"
_MICRO_ETH = 10**12
_BYTES = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
# Of an address or a hash.
_HEAD_CHARS = 6
# Parts of user agents. The first that fits counts: Edge also names Chrome, and Chrome Safari.
_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
_TAIL_CHARS = 4


def usdc(units: int | None) -> str:
    """Return an amount in units of 10⁻⁶ with at least two decimals."""
    return UNKNOWN if units is None else wording.usdc(units)


def eth(wei: int | None) -> str:
    """Return ETH with six decimals; a smaller amount is `< 0.000001`."""
    if wei is None:
        return UNKNOWN
    millionths = wei // 10**12
    return (
        "< 0.000001"
        if wei and not millionths
        else f"{millionths // 10**6:,}.{millionths % 10**6:06}"
    )


def micro_eth(wei: int | None) -> str:
    """Return gas in millionths of an ETH."""
    return UNKNOWN if wei is None else f"{wei / _MICRO_ETH:,.2f}"


def count(number: int | None) -> str:
    """Return a number with thousands separators."""
    return UNKNOWN if number is None else f"{number:,}"


def percent(part: float | None) -> str:
    """Return a share of 1 as a percentage; 100 % and 0 % are exact."""
    if part is None:
        return _NONE
    shown = f"{part * 100:.0f}"
    if (shown == "100" and part < 1) or (shown == "0" and part > 0):
        shown = f"{part * 100:.1f}"
    return f"{shown} %"


def seconds(value: float | None) -> str:
    """Return a duration."""
    if value is None:
        return _NONE
    return f"{value:.1f} s" if value < 60 else age(value)  # noqa: PLR2004 - a minute


def age(value: float | None) -> str:
    """Return a duration in its largest unit, such as `3 min`."""
    return UNKNOWN if value is None else wording.age(value)


def size(value: int | None) -> str:
    """Return a number of bytes in a suitable unit."""
    if value is None:
        return UNKNOWN
    for step, unit in _BYTES:
        if value >= step:
            return f"{value / step:,.1f} {unit}"
    return f"{value} B"


def clock(at: float) -> str:
    """Return the UTC time of day of Unix seconds."""
    return _moment(at).strftime("%H:%M:%S")


def day_and_clock(at: float) -> str:
    """Return the UTC day and time of Unix seconds."""
    return _moment(at).strftime("%d %b %H:%M:%S")


def utc(at: float) -> str:
    """Return the full UTC time of Unix seconds."""
    return _moment(at).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(at: float) -> str:
    """Return the ISO time of Unix seconds, for `datetime` attributes."""
    return _moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def short(value: str) -> str:
    """Return the start and end of an address or a hash."""
    if len(value) <= _HEAD_CHARS + _TAIL_CHARS + 1:
        return value
    return f"{value[:_HEAD_CHARS]}…{value[-_TAIL_CHARS:]}"


def browser(agent: str) -> str:
    """Return browser and system of a user agent, such as `Firefox on Linux`; others unchanged."""
    name = next((word for mark, word in _BROWSERS if mark in agent), "")
    system = next((word for mark, word in _SYSTEMS if mark in agent), "")
    return " on ".join(filter(None, (name, system))) or agent


def words(name: str) -> str:
    """Return a state in words, such as `refund due`."""
    return name.replace("_", " ")


def as_id(value: str) -> str:
    """Return a text as the id of an element."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", value)


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


FILTERS: Mapping[str, Callable[..., Any]] = {
    one.__name__: one
    for one in (
        usdc,
        eth,
        micro_eth,
        count,
        percent,
        seconds,
        age,
        size,
        clock,
        day_and_clock,
        utc,
        iso,
        short,
        browser,
        words,
        as_id,
    )
}
