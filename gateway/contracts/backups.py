"""What the store keeps of copies and drills."""

from typing import Any, Literal

import attrs

Kind = Literal["backup", "drill"]


@attrs.frozen(kw_only=True)
class BackupRecord:
    """One copy that was made, or one drill that restored a copy; failed ones as well."""

    kind: Kind

    # When it began (Unix seconds), and how many seconds it took.
    at: float
    took_s: float

    # Of the copy, in its bucket or folder; empty where there was none yet.
    name: str
    size_bytes: int | None = None

    # A sentence; None: it succeeded.
    error: str | None = None

    # Of a drill: `Forgotten` as a dictionary.
    details: dict[str, Any] | None = None

    # The row's number; 0 before it is written.
    id: int = 0


@attrs.frozen(kw_only=True)
class Forgotten:
    """What the live database knows and a copy does not: what a restore would forget."""

    payments: int
    # What those payments paid, in units of 10⁻⁶ USDC.
    units: int
    # From the copy to the comparison.
    seconds: float

    def __str__(self) -> str:
        payments = "1 payment" if self.payments == 1 else f"{self.payments:,} payments"
        return f"{payments} and {_duration(self.seconds)}"


def _duration(seconds: float) -> str:
    """Return a time as people say it: 41 s, 3 min, 5 h, 2 d."""
    for unit, unit_s, until_s in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < until_s:
            return f"{max(seconds, 0) / unit_s:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
