"""Rows of copies and drills, and what a copy does not know, as functions of a connection."""

import json
from typing import Any, Literal

import attrs

from gateway.store.sql import Connection, Row

# Hourly rows of half a year: 4,400.
_KEPT_S = 180 * 86_400
_COLUMNS = "id, kind, at, took_s, name, size_bytes, error, details"

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


def add(db: Connection, record: BackupRecord) -> int:
    """Insert a row and return its id; rows of more than half a year ago are deleted."""
    db.execute("DELETE FROM backups WHERE at < ?", (record.at - _KEPT_S,))
    details = None if record.details is None else json.dumps(record.details)
    row = db.execute(
        """INSERT INTO backups (kind, at, took_s, name, size_bytes, error, details)
           VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id""",
        (
            *(record.kind, record.at, record.took_s, record.name),
            *(record.size_bytes, record.error, details),
        ),
    ).fetchone()
    return int(row[0])


def newest(db: Connection, kind: Kind, *, succeeded: bool | None = None) -> BackupRecord | None:
    """Return the newest row of a kind; with `succeeded`, the newest that did or did not."""
    how = {None: "", True: "AND error IS NULL", False: "AND error IS NOT NULL"}[succeeded]
    row = db.execute(
        f"SELECT {_COLUMNS} FROM backups WHERE kind = ? {how} ORDER BY id DESC LIMIT 1",  # noqa: S608 - constants
        (kind,),
    ).fetchone()
    return None if row is None else _record_of(row)


def records(db: Connection, limit: int, kind: Kind | None = None) -> list[BackupRecord]:
    """Return the newest rows first, `limit` at most."""
    rows = db.execute(
        f"""SELECT {_COLUMNS} FROM backups WHERE kind = coalesce(?, kind)
            ORDER BY id DESC LIMIT ?""",  # noqa: S608 - constants
        (kind, limit),
    )
    return [_record_of(row) for row in rows]


def last_payment(db: Connection) -> int:
    """Return the number of the newest payment; 0 where there is none."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM payments").fetchone()[0])


def forgotten(db: Connection, last_payment_id: int, copied_at: float, now: float) -> Forgotten:
    """Return what a copy does not know whose newest payment and time these are.

    `db` is the live database. A payment that was given up before it was paid counts for nothing.
    """
    count, units = db.execute(
        """SELECT count(*), coalesce(sum(price_units), 0) FROM payments
           WHERE id > ? AND state <> 'released'""",
        (last_payment_id,),
    ).fetchone()
    return Forgotten(payments=count, units=units, seconds=max(now - copied_at, 0.0))


def _record_of(row: Row) -> BackupRecord:
    number, kind, at, took_s, name, size_bytes, error, details = row
    return BackupRecord(
        id=number,
        kind=kind,
        at=at,
        took_s=took_s,
        name=name,
        size_bytes=size_bytes,
        error=error,
        details=None if details is None else json.loads(details),
    )
