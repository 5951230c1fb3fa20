"""The names of copies, with their time and gateway, and which copies are kept."""

import calendar
import hashlib
import re
import time
from collections.abc import Iterable

import attrs

_NAME = re.compile(r"gateway-(\d{8}T\d{6}Z)-([0-9a-f]{16})(?:-before-(\d{1,4}))?\.db\.gz")
_STAMP = "%Y%m%dT%H%M%SZ"
# For each period: its format, and for how many of them (UTC) the newest copy is kept.
_PERIODS = (("%Y%m%d%H", 24), ("%Y%m%d", 7), ("%G-%V", 5))
_BEFORE_KEPT = 3


@attrs.frozen(kw_only=True)
class Copy:
    """One copy in its bucket or folder."""

    name: str

    # When it was begun (Unix seconds). It has nothing later.
    at: float

    # Distinguishes gateways that share one place.
    origin: str

    # For a copy from before a migration: the schema version that followed. None: a scheduled copy.
    before: int | None = None
    size_bytes: int | None = None


def origin_of(secret: str) -> str:
    """Return the origin in the names of one installation's copies."""
    return hashlib.sha256(b"copies of " + secret.encode()).hexdigest()[:16]


def make_name(origin: str, at: float, before: int | None = None) -> str:
    """Return the name of a copy begun at `at`."""
    kind = "" if before is None else f"-before-{before}"
    return f"gateway-{time.strftime(_STAMP, time.gmtime(at))}-{origin}{kind}.db.gz"


def read_name(name: str, size_bytes: int | None = None) -> Copy | None:
    """Parse a copy's name; None for any other name."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    try:
        at = calendar.timegm(time.strptime(found[1], _STAMP))
    except ValueError:
        return None
    before = None if found[3] is None else int(found[3])
    return Copy(name=name, at=at, origin=found[2], before=before, size_bytes=size_bytes)


def names_to_keep(copies: Iterable[Copy]) -> set[str]:
    """Return the names to keep: 24 hourly, 7 daily, 5 weekly, and 3 from before migrations."""
    newest_first = sorted(copies, key=lambda copy: copy.at, reverse=True)
    before = [copy.name for copy in newest_first if copy.before is not None]
    kept = set(before[:_BEFORE_KEPT])
    for period, many in _PERIODS:
        newest: dict[str, str] = {}
        for copy in newest_first:
            if copy.before is None:
                newest.setdefault(time.strftime(period, time.gmtime(copy.at)), copy.name)
        kept.update(list(newest.values())[:many])
    return kept
