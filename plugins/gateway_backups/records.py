"""Rows of copies and drills, and the payments missing from a copy, as functions of a connection."""

import json
from typing import Any, Literal

import attrs

from gateway.store.sql import Connection, Row

# Half a year: 4,400 hourly rows.
_RETENTION_S = 180 * 86_400
_COLUMNS = "id, kind, at, took_s, name, size_bytes, error, details"

Kind = Literal["backup", "drill"]


@attrs.frozen(kw_only=True)
class BackupRecord:
    """One copy or one drill, successful or failed."""

    kind: Kind

    # When it began (Unix seconds), and its duration in seconds.
    at: float
    took_s: float

    # The copy's name; empty if there was none yet.
    name: str
    size_bytes: int | None = None

    # A sentence; None: it succeeded.
    error: str | None = None

    # Of a drill: `Forgotten` as a dictionary.
    details: dict[str, Any] | None = None

    # 0 before the row is written.
    id: int = 0


@attrs.frozen(kw_only=True)
class Forgotten:
    """Data in the live database that a copy lacks: the loss of a restore."""

    payments: int
    # Their price, in units of 10⁻⁶ USDC.
    units: int
    # From the copy to the comparison.
    seconds: float

    def __str__(self) -> str:
        payments = "1 payment" if self.payments == 1 else f"{self.payments:,} payments"
        return f"{payments} and {_duration(self.seconds)}"


def _duration(seconds: float) -> str:
    """Return a readable duration: 41 s, 3 min, 5 h, 2 d."""
    for unit, unit_s, until_s in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < until_s:
            return f"{max(seconds, 0) / unit_s:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def add(db: Connection, record: BackupRecord) -> int:
    """Insert a row and return its id. Rows older than half a year are deleted."""
    db.execute("DELETE FROM backups WHERE at < ?", (record.at - _RETENTION_S,))
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
    """Return the newest row of a kind; with `succeeded`, only of that outcome."""
    how = {None: "", True: "AND error IS NULL", False: "AND error IS NOT NULL"}[succeeded]
    row = db.execute(
        f"SELECT {_COLUMNS} FROM backups WHERE kind = ? {how} ORDER BY id DESC LIMIT 1",  # noqa: S608 - constants
        (kind,),
    ).fetchone()
    return None if row is None else _record_of(row)


def records(db: Connection, limit: int, kind: Kind | None = None) -> list[BackupRecord]:
    """Return up to `limit` rows, newest first."""
    rows = db.execute(
        f"""SELECT {_COLUMNS} FROM backups WHERE kind = coalesce(?, kind)
            ORDER BY id DESC LIMIT ?""",  # noqa: S608 - constants
        (kind, limit),
    )
    return [_record_of(row) for row in rows]


def last_payment(db: Connection) -> int:
    """Return the id of the newest payment; 0 if there is none."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM payments").fetchone()[0])


def last_change(db: Connection) -> tuple[int, float]:
    """Return the id and the time of the newest change of a payment's state; (0, 0.0) if none."""
    row = db.execute("SELECT id, at FROM payment_events ORDER BY id DESC LIMIT 1").fetchone()
    return (0, 0.0) if row is None else (int(row[0]), float(row[1]))


def forgotten(db: Connection, last_payment_id: int, copied_at: float, now: float) -> Forgotten:
    """Return the data that the live database `db` has and a copy lacks.

    `last_payment_id` and `copied_at` are the copy's. Payments that were released unpaid do not
    count.
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
