"""Key-value metadata and login attempts."""

import secrets

from gateway.store.sql import Connection, locked


def find_or_make(db: Connection, key: str, made: str) -> str:
    """Return the value of a key, storing `made` first if there is none."""
    db.execute("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING", (key, made))
    value: str = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()[0]
    return value


def note_wallet(db: Connection, wallet: str, now: float) -> str | None:
    """Record the wallet of this start; return the one of the start before, if it was another."""
    before: str | None = _value(db, "wallet")
    if before == wallet:
        return None
    _put(db, "wallet", wallet)
    if before is not None:
        _put(db, "wallet_before", f"{before} {now}")
    return before


def earlier_wallet(db: Connection, wallet: str) -> str | None:
    """Return the wallet that took this database's payments before `wallet`, or None."""
    known = _value(db, "wallet")
    if known is not None and known != wallet:
        return known
    before = _value(db, "wallet_before")
    return None if before is None else before.partition(" ")[0]


def _value(db: Connection, key: str) -> str | None:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else str(row[0])


def _put(db: Connection, key: str, value: str) -> None:
    db.execute(
        "INSERT INTO meta (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def note_write(db: Connection, now: float) -> None:
    """Record when a write was last attempted. The value always changes, so something is written."""
    _put(db, "written_at", str(now))


def write_something(db: Connection) -> None:
    """Test for free space: write and delete more than one page of incompressible data."""
    text = secrets.token_hex(20_000)
    db.execute(
        "INSERT INTO meta (key, value) VALUES ('room', ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (text,),
    )
    db.execute("DELETE FROM meta WHERE key = 'room'")


# The number of attempts in a window must not change under us.
@locked("logins")
def count_login_attempt(
    db: Connection,
    address: str,
    *,
    limit: int,
    window_s: int,
    total: tuple[int | None, int] = (None, 0),
    now: float,
) -> float:
    """Count a login attempt. Returns 0, or the seconds until the next attempt is allowed.

    `total` is the limit over all addresses (None: no limit) and its window in seconds. Refused
    attempts are not stored, so the limits also bound the number of rows.
    """
    total_limit, total_window_s = total
    oldest = now - max(window_s, total_window_s)
    db.execute("DELETE FROM login_attempts WHERE at <= ?", (oldest,))
    nth_newest = "ORDER BY at DESC LIMIT 1 OFFSET ?"
    row = db.execute(
        f"SELECT at FROM login_attempts WHERE address = ? AND at > ? {nth_newest}",  # noqa: S608 - a constant
        (address, now - window_s, limit - 1),
    ).fetchone()
    if row is not None:
        return float(row[0]) + window_s - now
    if total_limit is not None:
        row = db.execute(
            f"SELECT at FROM login_attempts WHERE at > ? {nth_newest}",  # noqa: S608 - a constant
            (now - total_window_s, total_limit - 1),
        ).fetchone()
        if row is not None:
            return float(row[0]) + total_window_s - now
    db.execute("INSERT INTO login_attempts (address, at) VALUES (?, ?)", (address, now))
    return 0.0
